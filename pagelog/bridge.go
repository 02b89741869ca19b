package pagelog

import (
	"errors"

	"github.com/tidemark-log/tidemark/frame"
)

// bridge looks for a way over damage at w.at that only hit derived bytes. It is
// tried only below proven, where acknowledged history must go on: behind the
// damaged group, if its own header holds and says derived, and behind more of
// them that follow at once; else at the first group of a later page; else at the
// proven end itself, where the slot that names it records exactly the history
// reached. Whatever follows must carry on revision and chain, so no commit can
// have been in between.
//
// It returns where the walk may go on, or 0.
func bridge(w *walker, f *fault, proven int64, h *header) (int64, error) {
	if f.complete || errors.Is(f.err, frame.ErrUnsupported) || f.header != nil && !f.header.Derived() {
		return 0, nil
	}
	if f.header != nil && fits(w.at, f.header) == nil {
		end := w.geo.End(w.geo.Start(w.at.end), f.header.Body)
		for range bridgeChain {
			if end <= 0 || end > proven {
				break
			}
			next, ok, err := resumes(w, end, proven, h)
			if ok || err != nil {
				return end, err
			}
			end = next
		}
	}
	start, err := laterPage(w, proven)
	if err != nil {
		return 0, err
	}
	if start != 0 {
		if _, ok, err := resumes(w, start, proven, h); ok || err != nil {
			return start, err
		}
	}
	if proven <= w.win.limit+bridgeBeyond && h.slotConfirms(w.at, proven) {
		return proven, nil
	}
	return 0, nil
}

const (
	// bridgeChain bounds how many damaged derived groups in a row are stepped
	// over at a time, or a file full of them would take for ever.
	bridgeChain = 64
	// bridgeBeyond is how far behind the end of the file a slot may confirm
	// that history ends: a cut-off checkpoint and no more.
	bridgeBeyond = 32 << 20
)

// laterPage returns where the first group of a later page starts, below proven,
// or 0. The first valid page header that names a group decides.
func laterPage(w *walker, proven int64) (int64, error) {
	defer w.win.drop()
	g := w.geo
	for page := g.PageStart(w.at.end) + g.PageSize(); page < min(proven, w.win.limit); page += g.PageSize() {
		b, err := w.win.read(page, frame.PageHeaderSize)
		if err != nil {
			return 0, err
		}
		h, err := g.DecodePage(b, page)
		if err == nil && h.First != 0 {
			return page + int64(h.First), nil
		}
	}
	return 0, nil
}

// resumes reports whether history goes on at end: with a group that carries on,
// or because a slot says that it ends there. If what is there is one more
// derived group, damaged under a header that holds, next is where that one ends,
// else 0.
func resumes(w *walker, end, proven int64, h *header) (next int64, ok bool, err error) {
	if end >= proven {
		return 0, h.slotConfirms(w.at, end), nil
	}
	probe := walker{geo: w.geo, win: window{r: w.win.r, limit: w.win.limit, chunk: frame.MinPageSize}, at: w.at}
	probe.at.end = end
	var f *fault
	if err = probe.next(); err == nil {
		return 0, true, nil
	} else if !errors.As(err, &f) {
		return 0, false, err
	}
	if f.header != nil && f.header.Derived() && !f.complete && fits(probe.at, f.header) == nil {
		next = w.geo.End(w.geo.Start(end), f.header.Body)
	}
	return next, false, nil
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
