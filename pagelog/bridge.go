package pagelog

import (
	"errors"

	"github.com/tidemark-log/tidemark/frame"
)

// bridge looks for a way over damage at w.at that only hit derived bytes. It is
// tried only below proven, where acknowledged history must go on: at the first
// group behind the damage whose header holds and carries on revision and chain,
// so that no commit can have been in between; else at the proven end itself,
// where the slot that names it records exactly the history reached. Damaged
// derived groups whose headers hold are stepped over on the way.
//
// It returns where the walk may go on, or 0.
func bridge(w *walker, f *fault, proven int64, h *header) (int64, error) {
	if f.complete || errors.Is(f.err, frame.ErrUnsupported) || f.header != nil && !f.header.Derived() {
		return 0, nil
	}
	from := w.geo.Start(w.at.end) + 8
	if f.header != nil && fits(w.at, f.header) == nil {
		from = w.geo.End(f.off, f.header.Body)
	}
	to, missing, err := carriesOn(w, from, proven)
	if to != 0 || missing || err != nil {
		return to, err
	}
	if proven <= w.win.limit+bridgeBeyond && h.slotConfirms(w.at, proven) {
		return proven, nil
	}
	return 0, nil
}

// bridgeChain bounds how many damaged derived groups in a row are stepped over,
// or a file full of them would take for ever.
const bridgeChain = 64

// bridgeBeyond is how far behind the end of the file a slot may confirm that
// history ends: a cut-off checkpoint and no more.
const bridgeBeyond = 32 << 20

// carriesOn looks at every place from from up to the one behind proven where a
// group may start. At the first header that holds it returns the place before
// that group, if the group holds and carries on the history at w.at. missing
// says that it does not: a commit is damaged or gone.
func carriesOn(w *walker, from, proven int64) (to int64, missing bool, err error) {
	g := w.geo
	last := g.Start(proven)
	w.win.drop()
	probe := walker{geo: g, win: w.win}
	defer func() { w.win.buf = probe.win.buf[:0] }() // it may have grown
	for range bridgeChain {
		off, h, err := nextHeader(&probe.win, g, from, last+1)
		if off == 0 || err != nil {
			return 0, false, err
		}
		probe.at = w.at
		probe.at.end = off
		if g.Start(off) != off { // behind a page header, where the alignment does not reach
			probe.at.end -= frame.PageHeaderSize
		}
		to := probe.at.end
		if err := probe.next(); err == nil {
			if off == last {
				to = proven
			}
			return to, false, nil
		} else if f := (*fault)(nil); !errors.As(err, &f) {
			return 0, false, err
		}
		from = g.End(off, h.Body)
		if from <= off || fits(w.at, &h) != nil || !h.Derived() {
			return 0, true, nil
		}
	}
	return 0, false, nil
}

// nextHeader returns the first group header that holds and starts in
// [from, limit); off is 0 if there is none.
func nextHeader(win *window, g *frame.Geometry, from, limit int64) (off int64, h frame.GroupHeader, err error) {
	for off := (max(from, 0) + 7) &^ 7; off < limit; off += 8 {
		b, err := win.read(off, frame.GroupHeaderSize)
		if err != nil {
			return 0, h, err
		}
		if len(b) < frame.GroupHeaderSize {
			break
		}
		if g.IsMark(b, off) && g.MayStart(off) {
			if h, err := g.DecodeGroup(b, off); err == nil {
				return off, h, nil
			}
		}
		if off%searchChunk == 0 && frame.IsZero(b) { // a hole is not read
			off = max(off, nextData(win.r, off)&^7-8)
		}
	}
	return 0, h, nil
}

// slotConfirms reports whether a slot says that the history that was reached
// ends at end.
func (h *header) slotConfirms(at point, end int64) bool {
	at.end = end
	for i := range h.slots {
		if s := &h.slots[i]; s.err == nil && s.Durable == at.place() {
			return true
		}
	}
	return false
}
