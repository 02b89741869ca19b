package pagelog

import (
	"errors"

	"github.com/tidemark-log/tidemark/frame"
)

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
			err := notFault(probe.trust(off))
			return probe.at, err
		}
		left--
	}
	return next, nil
}

// leads reports whether the groups from off on lead to next.
func (v *verifier) leads(w *walker, off int64, next point) (bool, error) {
	w.win.drop()
	err := w.trust(off)
	for err == nil {
		switch {
		case w.at.rev < v.walk.at.rev, next.end != 0 && w.at.end > next.end:
			return false, nil
		case w.at.end == off:
		case next.end != 0 && v.geo.Start(w.at.end) == next.end:
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
