package pagelog

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/tidemark-log/tidemark/frame"
	"github.com/tidemark-log/tidemark/internal/disk"
)

// How a whole log is checked.
//
// The verifier is recovery without a hand to write: the same walk from where
// history begins, the same proven end F, the same bridges, the same rule that
// damage at E is torn if and only if E >= F. It differs in what it does after
// corruption: it notes it, finds the next group whose place can be trusted, and
// walks on, so that one report names every damaged place.
//
// It trusts a later place only for one of three reasons: the damaged group's
// own header holds, and with it the group's length; a valid page header names
// it; or an unbroken run of groups leads from it to such a place. Bytes that
// merely look like a group may be somebody's payload.
//
// Other goroutines may have walked stretches of the file ahead (see
// verify_parallel.go). A stretch is adopted only if it begins exactly where the
// verifier stands, in offset, revision, digest and epoch, and only as far as
// everything in it held; so what is judged, and the report, is the same with
// any number of workers.

// verifier is the state of one check. It belongs to one goroutine.
type verifier struct {
	file      disk.File
	r         io.ReaderAt // file, ended by the context
	head      *header
	epoch0    uint64 // of the newest slot at the beginning
	size      int64  // of the file at the beginning; nothing beyond is looked at
	geo       *frame.Geometry
	walk      walker
	plan      plan
	stretches *stretches // nil: one worker
	progress  *progress
	report    VerifyReport

	proven   int64  // F so far
	epoch    uint64 // the largest seen anywhere
	searched bool   // what lies behind the first fault was searched
	dirtEnd  int64  // behind the last byte that is not zero; once searched
	counts   counts
	bad      []badAt // page headers at or above F that are wrong, in order
	marks    []mark  // what the slots name
	anchors  []point // places between groups, some megabytes apart
	begun    point   // where the current intact stretch of history begins
	resumed  int64   // start of the group at which the walk went on behind damage
	gap      bool    // history is interrupted before the next group
	sound    *point  // end of the sound prefix, once something behind it is corrupt
}

// counts is what the walk counts.
type counts struct {
	groups, derived, records uint64
	bytes                    int64
}

// badAt is a wrong page header and how things stood before its group.
type badAt struct {
	badPage
	end    int64 // of the group
	counts counts
}

func newVerifier(ctx context.Context, f disk.File, how plan, p *progress) (*verifier, error) {
	h, err := readSteady(f)
	if err == nil {
		err = h.mayRead()
	}
	if err != nil {
		return nil, err
	}
	v := &verifier{
		file: f, r: ctxReader{ctx, f}, head: h, size: h.size, geo: h.geo, plan: how, progress: p,
		proven: h.durableEnd(), anchors: []point{h.begin()}, begun: h.begin(),
	}
	v.report = VerifyReport{LogID: h.id.LogID, FileSize: h.size, Findings: []Finding{}, Intact: []Range{}}
	v.walk = walker{geo: h.geo, win: window{r: v.r, limit: h.size, chunk: readChunk}, at: h.begin()}
	if s := h.newest(); s != nil {
		v.epoch0 = s.Epoch
	}
	for i := range h.slots {
		if h.slots[i].err == nil {
			v.epoch = max(v.epoch, h.slots[i].Epoch)
		}
	}
	v.marks = h.marks()
	if err := v.checkHeader(); err != nil {
		return nil, err
	}
	if how.workers > 1 && how.visit == nil {
		v.stretches = startStretches(v)
	}
	return v, nil
}

// readSteady reads the header area, again if a slot was read while it was being
// written, and last the size: so the file holds what the slots name.
func readSteady(f disk.File) (*header, error) {
	h, err := readHeader(f)
	if err != nil {
		return nil, err
	}
	for range 3 {
		if h.slots[0].err == nil && h.slots[1].err == nil {
			break
		}
		if err := h.reread(f); err != nil {
			return nil, err
		}
	}
	info, err := f.Stat()
	h.size = info.Size
	return h, err
}

// ctxReader ends reading when its context ends.
type ctxReader struct {
	ctx context.Context
	r   io.ReaderAt
}

func (c ctxReader) ReadAt(p []byte, off int64) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.ReadAt(p, off)
}

// run walks over the whole log.
func (v *verifier) run() error {
	defer v.stretches.stop()
	for {
		f, err := v.walkOn()
		if err != nil {
			return err
		}
		goOn, err := v.judge(&f)
		if err != nil {
			return err
		}
		if !goOn {
			return v.finish(f)
		}
	}
}

// walkOn walks until no group follows.
func (v *verifier) walkOn() (*fault, error) {
	var f *fault
	for {
		if s := v.stretches.at(v.geo.Start(v.walk.at.end)); s != nil {
			before := v.walk.at.end
			if err := v.adopt(s); err != nil {
				return nil, err
			}
			if v.walk.at.end > before {
				continue // the next one may begin here
			}
		}
		err := v.walk.next()
		if err == nil {
			err = v.passed(&v.walk.cur)
		}
		if errors.As(err, &f) {
			return f, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// passed takes note of a valid group.
func (v *verifier) passed(p *passed) error {
	if p.badPage != 0 {
		v.bad = append(v.bad, badAt{badPage{off: p.badPage, before: p.before}, p.end, v.counts})
	}
	v.epoch = max(v.epoch, p.Epoch)
	v.counts.add(p)
	for i := range v.marks {
		v.marks[i].look(p, v.walk.at)
	}
	if p.end-v.anchors[len(v.anchors)-1].end >= v.plan.stretch {
		v.anchors = append(v.anchors, v.walk.at)
	}
	v.progress.at(p.end, v.size)
	if err := v.raise(p.DurableEnd); err != nil || v.plan.visit == nil {
		return err
	}
	gap := v.gap
	v.gap = false
	return v.plan.visit(p, gap)
}

func (c *counts) add(p *passed) {
	if p.Derived() {
		c.derived++
	} else {
		c.groups++
		c.records += uint64(p.Count)
	}
	c.bytes += p.end - p.start
}

func (c *counts) plus(d counts) {
	c.groups += d.groups
	c.derived += d.derived
	c.records += d.records
	c.bytes += d.bytes
}

// raise lifts F to end, if that is higher. Wrong page headers that now lie
// below it were acknowledged.
func (v *verifier) raise(end int64) error {
	v.proven = max(v.proven, end)
	for len(v.bad) > 0 && v.bad[0].off < v.proven {
		b := v.bad[0]
		v.bad = v.bad[1:]
		if err := v.badPages(b.off, b.end, b.before.rev+1); err != nil {
			return err
		}
	}
	return nil
}

// badPages reports the page at first, which is known to be wrong, and those
// behind it up to end whose headers do not hold.
func (v *verifier) badPages(first, end int64, rev uint64) error {
	var b [frame.PageHeaderSize]byte
	for page := first; page < end; page += v.geo.PageSize() {
		n, err := v.r.ReadAt(b[:], page)
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("read at offset %d: %w", page, err)
		}
		_, err = v.geo.DecodePage(b[:n], page)
		switch {
		case err != nil:
			v.add(ClassCorrupt, "page header", err.Error(), page, rev)
		case page == first:
			v.add(ClassCorrupt, "page header", "does not belong to the groups around it", page, rev)
		}
	}
	return nil
}

// judge says what the fault at v.walk.at means. It reports whether the walk may
// go on; f is then of no more use, else it is why the walk ended.
func (v *verifier) judge(f **fault) (goOn bool, err error) {
	if errors.Is((*f).err, frame.ErrUnsupported) {
		return false, fmt.Errorf("%w: %w", ErrUnsupported, *f)
	}
	if err := v.gather(); err != nil {
		return false, err
	}
	if floor := v.head.begin(); floor.end > v.walk.at.end {
		v.resume(floor) // retention dropped it meanwhile
		return true, nil
	}
	v.walk.win.drop()
	err = v.walk.next() // once more, after the evidence was seen
	if err == nil {
		return true, v.passed(&v.walk.cur)
	}
	if !errors.As(err, f) {
		return false, err
	}
	if v.walk.at.end >= v.proven {
		return false, nil
	}
	to, err := bridge(&v.walk, *f, v.proven, v.head)
	if err != nil {
		return false, err
	}
	if to == 0 {
		return v.corrupt(*f)
	}
	return true, v.bridged(*f, to)
}

// bridged steps over damaged derived bytes.
func (v *verifier) bridged(f *fault, to int64) error {
	v.addFault(ClassBridged, f, fmt.Sprintf("; no commit was in it, history goes on at offset %d", to))
	from := v.walk.at.end
	if err := v.pagesBetween(ClassBridged, from, to); err != nil {
		return err
	}
	v.walk.at.end = to
	v.walk.win.drop()
	v.anchors = append(v.anchors, v.walk.at)
	for i := range v.marks {
		v.marks[i].bridged(from, v.walk.at)
	}
	return nil
}

// gather raises F by what the slots say by now and by what lies behind the
// first fault.
func (v *verifier) gather() error {
	if err := v.head.reread(v.file); err != nil {
		return err
	}
	v.head.size = min(v.head.size, v.size) // what slots name behind the end we saw is not ours to judge
	if end := v.head.durableEnd(); end <= v.size {
		if err := v.raise(end); err != nil {
			return err
		}
	}
	if v.searched {
		return nil
	}
	ev, err := search(v.r, v.geo, v.walk.at.end, v.size)
	if err != nil {
		return err
	}
	v.searched, v.dirtEnd = true, ev.dirtEnd
	v.epoch = max(v.epoch, ev.epoch)
	return v.raise(ev.durableEnd)
}

// finish judges the end and completes the report. f is why the walk ended.
func (v *verifier) finish(f *fault) error {
	if len(v.bad) > 0 && v.walk.at.end >= v.proven { // its group was not acknowledged: it is torn
		b := v.bad[0]
		v.walk.at, v.counts = b.before, b.counts
		f = &fault{off: b.off, what: "page header", err: frame.ErrSum}
		v.dirtEnd = max(v.dirtEnd, b.end)
	}
	at := v.walk.at
	v.endRange()
	if at.end >= v.proven {
		if f.complete && f.header.Epoch >= v.epoch && errors.Is(f.err, errChain) {
			v.addFault(ClassCorrupt, f, ", and no later writer cut it off")
		} else if v.dirtEnd > at.end {
			v.addFault(ClassTorn, f, fmt.Sprintf("; up to offset %d no acknowledged commit was lost", v.dirtEnd))
		}
	}
	if err := v.checkBoundary(); err != nil {
		return err
	}
	v.checkMarks()
	if v.sound == nil {
		v.sound = &at
	}
	r, c := &v.report, v.counts
	r.Head, r.End, r.Durable, r.last = v.sound.rev, v.sound.end, v.proven, at.end
	r.Groups, r.Derived, r.Records, r.Bytes = c.groups, c.derived, c.records, c.bytes
	r.Findings = sorted(r.Findings)
	return nil
}

// checkBoundary reports an F that is not the end of a group.
func (v *verifier) checkBoundary() error {
	for i := range v.marks {
		if m := &v.marks[i]; !m.isStart && m.seen && !m.wrong && m.place.Offset == v.proven {
			return nil
		}
	}
	i := len(v.anchors) - 1
	for i > 0 && v.anchors[i].end > v.proven {
		i--
	}
	w := walker{geo: v.geo, win: window{r: v.r, limit: v.size, chunk: readChunk}, at: v.anchors[i]}
	for w.at.end < v.proven {
		before := w.at
		if err := w.next(); err != nil {
			return notFault(err)
		}
		if w.at.end > v.proven {
			v.add(ClassCorrupt, "log", fmt.Sprintf("proven end %d: %v", v.proven, errBoundary), v.proven, before.rev+1)
		}
	}
	return nil
}
