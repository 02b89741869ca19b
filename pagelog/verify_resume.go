package pagelog

import (
	"errors"
	"fmt"
	"io"

	"github.com/tidemark-log/tidemark/cursor"
	"github.com/tidemark-log/tidemark/frame"
)

// corrupt reports the fault, which is damage to acknowledged bytes, and looks
// for a place behind it from which to go on.
func (v *verifier) corrupt(f *fault) (goOn bool, err error) {
	if s := v.head.newest(); v.head.size < v.size || s != nil && s.Epoch != v.epoch0 {
		return false, errChanged
	}
	v.endRange()
	if v.sound == nil {
		at := v.walk.at
		v.sound = &at
	}
	if f.complete && errors.Is(f.err, errChain) {
		v.addFault(ClassCorrupt, f, fmt.Sprintf(": revision %d with previous digest %v behind revision %d with digest %v",
			f.header.Revision, cursor.Digest(f.header.Prev), v.walk.at.rev, cursor.Digest(v.walk.at.digest)))
	} else {
		v.addFault(ClassCorrupt, f, "")
	}
	from := v.walk.at.end
	next, err := v.resumeBehind(f)
	if err != nil {
		return false, err
	}
	start := v.geo.Start(next.end)
	if next.end == 0 || start <= v.resumed { // the same place twice: the file changes under us
		return false, v.pagesBetween(ClassCorrupt, from, v.proven)
	}
	v.resumed = start
	if err := v.pagesBetween(ClassCorrupt, from, next.end); err != nil {
		return false, err
	}
	v.resume(next)
	return true, nil
}

// resume lets the walk go on at another place, where another intact stretch
// begins.
func (v *verifier) resume(at point) {
	v.endRange()
	v.walk.at = at
	v.walk.win.drop()
	v.anchors = append(v.anchors, at)
	v.begun, v.gap = at, true
}

// endRange closes the intact stretch of history that ends here.
func (v *verifier) endRange() {
	at := v.walk.at
	if at.rev > v.begun.rev && len(v.report.Intact) < MaxFindings {
		v.report.Intact = append(v.report.Intact, Range{First: v.begun.rev + 1, Last: at.rev, From: v.begun.end, To: at.end})
	}
	v.begun = at
}

// resumeBehind returns a place behind a fault from which the walk can go on:
// one whose offset is certain. The point's end is 0 if there is none below F.
func (v *verifier) resumeBehind(f *fault) (point, error) {
	start := v.geo.Start(v.walk.at.end)
	probe := walker{geo: v.geo, win: window{r: v.r, limit: v.size, chunk: readChunk}}
	h := f.header
	if f.complete || v.inGap(f) {
		err := notFault(trustPage(&probe, start))
		return probe.at, err
	}
	if h != nil {
		if end := v.geo.End(start, h.Body); end > 0 && end <= v.size {
			at := point{end: end, rev: h.Revision, digest: h.Digest, epoch: h.Epoch}
			if h.Derived() {
				at.digest = h.Prev
			}
			return at, nil
		}
	}
	next, err := v.resumeAtPage(&probe)
	if err != nil || h != nil {
		return next, err
	}
	return v.rejoin(next)
}

// resumeAtPage looks for a later page whose header names a group that has at
// least a header. Group headers that it names and that do not hold are reported.
func (v *verifier) resumeAtPage(probe *walker) (point, error) {
	for page := v.geo.PageStart(v.walk.at.end) + v.geo.PageSize(); page < min(v.proven, v.size); page += v.geo.PageSize() {
		b, err := probe.win.read(page, frame.PageHeaderSize)
		if err != nil {
			return point{}, err
		}
		h, err := v.geo.DecodePage(b, page)
		if err != nil || h.First == 0 {
			continue
		}
		start := page + int64(h.First)
		err = trustPage(probe, start)
		var f *fault
		switch {
		case err == nil && start < v.proven:
			return probe.at, nil
		case err == nil:
			return point{}, nil
		case !errors.As(err, &f):
			return point{}, err
		case errors.Is(f.err, frame.ErrUnsupported):
			return point{}, fmt.Errorf("%w: %w", ErrUnsupported, f)
		case start < v.proven:
			v.add(ClassCorrupt, f.what, f.err.Error(), f.off, h.Last+1)
		}
	}
	return point{}, nil
}

// notFault returns what the file system said: an error that is no fault.
func notFault(err error) error {
	var f *fault
	if errors.As(err, &f) {
		return nil
	}
	return err
}

// trustPage puts the walker before a group that starts at start, as trust does,
// and before the header of its page, if the group begins right behind that: so
// the walk checks it.
func trustPage(w *walker, start int64) error {
	err := w.trust(start)
	if err == nil && w.at.end == start && start%w.geo.PageSize() == frame.PageHeaderSize {
		w.at.end -= frame.PageHeaderSize
	}
	return err
}

// pagesBetween reports the page headers in a stretch that was stepped over and
// do not hold.
func (v *verifier) pagesBetween(class string, from, to int64) error {
	first := v.geo.PageStart(from + v.geo.PageSize() - 1)
	var b [frame.PageHeaderSize]byte
	for page := first; page < min(to, v.size); page += v.geo.PageSize() {
		n, err := v.r.ReadAt(b[:], page)
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("read at offset %d: %w", page, err)
		}
		if _, err := v.geo.DecodePage(b[:n], page); err != nil {
			v.add(class, "page header", err.Error(), page, v.walk.at.rev+1)
		}
	}
	return nil
}

// rejoinTries bounds the groups that rejoin tries and that lead nowhere.
const rejoinTries = 64

// rejoin looks for groups behind one whose header does not hold and before
// next, the next place that is certain. With the header its length is lost, so
// where the group behind it begins is not known: every place is tried where one
// may. Bytes that look like a group may be somebody's payload, so a run of them
// counts only if it ends exactly where next begins, with the revision and the
// digest that next has before it; or, where next is none, at the durable end
// that a slot names. It returns the first such place, or next.
func (v *verifier) rejoin(next point) (point, error) {
	limit := next.end
	if limit == 0 {
		limit = v.proven
	}
	limit = min(limit, v.size)
	probe := walker{geo: v.geo, win: window{r: v.r, limit: v.size, chunk: int(v.geo.PageSize())}}
	win := window{r: v.r, limit: limit, chunk: readChunk}
	left := rejoinTries
	for off := v.geo.Start(v.walk.at.end) + 8; off < limit && left > 0; off += 8 {
		b, err := win.read(off, frame.GroupHeaderSize)
		if err != nil {
			return point{}, err
		}
		if !v.geo.IsMark(b, off) || !v.geo.MayStart(off) {
			continue
		}
		if _, err := v.geo.DecodeGroup(b, off); err != nil {
			continue
		}
		if ok, err := v.leads(&probe, off, next); err != nil {
			return point{}, err
		} else if ok {
			probe.win.drop()
			err := notFault(trustPage(&probe, off))
			return probe.at, err
		}
		left--
	}
	return next, nil
}

// leads reports whether the groups from off on lead to next.
func (v *verifier) leads(w *walker, off int64, next point) (bool, error) {
	w.win.drop()
	err := trustPage(w, off)
	for err == nil {
		switch {
		case next.end != 0 && w.at.end > v.geo.Start(next.end):
			return false, nil
		case w.at.end <= off:
		case next.end != 0 && v.geo.Start(w.at.end) == v.geo.Start(next.end):
			return w.at.rev == next.rev && w.at.digest == next.digest && w.at.epoch <= next.epoch, nil
		case next.end == 0 && v.head.slotConfirms(w.at, w.at.end):
			return true, nil
		}
		err = w.next()
	}
	var f *fault
	if errors.As(err, &f) {
		return false, nil
	}
	return false, err
}
