package pagelog

import (
	"errors"

	"github.com/tidemark-log/tidemark/frame"
)

// Opening costs O(tail), not O(history): the walk begins near the end, at a
// place that is proven durable and confirmed by the bytes it names. These are,
// newest first, the durable end of a slot and the checkpoints that slots name.
// A place is confirmed by walking to it from the first group of a page at least
// checkedTail before it, so that every byte of that stretch was checked, and
// finding there the revision and digest that the slot recorded. If none can be
// confirmed, the walk begins where history does, and finds what is wrong.

// checkedTail is how much before the head every opening for writing checks.
const checkedTail = 1 << 20

// anchor puts the walk where it may begin.
func (r *recovery) anchor() error {
	begin := r.head.begin()
	r.walk.at = begin
	for _, p := range r.head.anchors() {
		if p.Offset <= begin.end+checkedTail {
			continue // walking it all costs no more
		}
		at, ok, err := r.confirm(p, begin)
		if err != nil {
			return err
		}
		if ok {
			r.walk.at = at
			return nil
		}
	}
	return nil
}

// anchors lists the places from which a walk may begin, newest first.
func (h *header) anchors() []frame.Place {
	s := h.newest()
	if s == nil {
		return nil
	}
	places := []frame.Place{s.Durable}
	for i := range h.slots {
		if o := &h.slots[i]; o.err == nil && o.Number != s.Number {
			places = append(places, o.Durable)
		}
	}
	return append(places, s.Check, s.Before)
}

// confirm walks to p and reports whether the groups say there what p says: p is
// the raw end of a group, or the start of a checkpoint.
func (r *recovery) confirm(p frame.Place, begin point) (point, bool, error) {
	w := walker{geo: r.head.geo, win: window{r: r.file, limit: r.head.size, chunk: readChunk, reads: &r.report.BytesRead}}
	pages := Reader{file: r.file, id: &r.head.id, geo: r.head.geo, begin: begin}
	start, err := pages.firstStartBefore(&w.win, p.Offset-checkedTail)
	if err != nil || start == 0 {
		return point{}, false, err
	}
	var f *fault
	for err = w.trust(start); err == nil; err = w.next() {
		if w.at.place() == p || w.cur.start == p.Offset && w.cur.Revision == p.Revision && w.cur.Digest == p.Digest && w.cur.Derived() {
			return w.at, true, nil
		}
		if w.at.end > p.Offset {
			return point{}, false, nil
		}
	}
	if errors.As(err, &f) {
		return point{}, false, nil
	}
	return point{}, false, err
}
