package pagelog

import (
	"errors"
	"fmt"
	"sync"

	"github.com/tidemark-log/tidemark/cursor"
	"github.com/tidemark-log/tidemark/frame"
	"github.com/tidemark-log/tidemark/internal/disk"
)

// Finding a revision. Every page header says which revision was begun before
// the page, so the page in which a commit starts is found by bisection, with no
// index: about 17 reads in 2 GiB. From the page's first group the headers lead
// on to the commit, which confirms itself. A bad page header moves to its
// neighbour.

func compacted(b *bounds) error { return &cursor.CompactedError{Oldest: b.begin.rev + 1} }

// at reads the commit rev into g.
func (r *Reader) at(rev uint64, g *Group, b *bounds) error { return r.atHint(rev, 0, g, b) }

// oneCommit is how much is read where a commit is known to lie: one of a few KiB,
// and not what follows it.
const oneCommit = 8 << 10

// atHint reads the commit rev into g, from hint if it is there.
func (r *Reader) atHint(rev uint64, hint int64, g *Group, b *bounds) error {
	switch {
	case rev > b.stop.rev && b.damage != nil:
		return b.damage
	case rev > b.stop.rev:
		return fmt.Errorf("%w: %d, the head is %d", ErrNotFound, rev, b.stop.rev)
	case rev <= b.begin.rev:
		return compacted(b)
	}
	if hint >= b.begin.end && hint < b.stop.end && r.geo.MayStart(hint) {
		r.prepare(g, b, oneCommit)
		if r.load(g, hint, rev, b) == nil {
			return nil
		}
	}
	r.prepare(g, b, int(r.geo.PageSize()))
	start, err := r.locate(&g.walk.win, rev, b)
	if err != nil {
		return err
	}
	g.walk.win.chunk = oneCommit // if it goes on beyond the page
	return r.load(g, start, rev, b)
}

// load reads the commit rev, which starts at start, into g.
func (r *Reader) load(g *Group, start int64, rev uint64, b *bounds) error {
	err := g.walk.trust(start)
	if err == nil {
		err = g.walk.next()
	}
	if err != nil {
		return r.damaged(err, rev)
	}
	if g.walk.cur.Revision != rev || g.walk.cur.Derived() {
		f := fault{off: start, what: fmt.Sprintf("group of revision %d", g.walk.cur.Revision), err: errChain}
		return f.located(r.geo, point{rev: rev - 1})
	}
	g.adopt(r, b)
	return nil
}

// damaged turns a fault in the commit rev into the error a user sees.
func (r *Reader) damaged(err error, rev uint64) error {
	var f *fault
	if errors.As(err, &f) {
		return f.located(r.geo, point{rev: rev - 1})
	}
	return err
}

// startAfter returns a group whose walker stands before the commit after+1.
func (r *Reader) startAfter(after uint64, b *bounds) (*Group, error) {
	g := &Group{}
	r.prepare(g, b, readChunk)
	switch {
	case after < b.begin.rev:
		return nil, compacted(b)
	case after > b.stop.rev && b.damage != nil:
		return nil, b.damage
	case after > b.stop.rev:
		return nil, fmt.Errorf("%w: %d, the head is %d", ErrNotFound, after, b.stop.rev)
	case after == b.begin.rev:
		g.walk.at = b.begin
		return g, nil
	case after == b.stop.rev:
		g.walk.at = b.stop
		return g, nil
	}
	start, err := r.locate(&g.walk.win, after+1, b)
	if err != nil {
		return nil, err
	}
	return g, r.damaged(g.walk.trust(start), after+1)
}

// locate returns where the commit rev starts; b.begin.rev < rev <= b.stop.rev.
func (r *Reader) locate(win *window, rev uint64, b *bounds) (int64, error) {
	from, err := r.pageOf(win, rev, b)
	if err != nil {
		return 0, err
	}
	for start := from; start < b.stop.end; {
		at, h, err := r.groupFrom(win, start, b.stop.end)
		if err != nil {
			return 0, err
		}
		start = at
		if h.Revision == rev && !h.Derived() {
			return start, nil
		}
		if h.Revision > rev {
			break
		}
		start = r.geo.Start(r.geo.End(start, h.Body))
	}
	f := fault{off: from, what: "groups of the page", err: errChain}
	return 0, f.located(r.geo, point{rev: rev - 1})
}

// pageOf returns a group start at or before that of the commit rev, in the same
// page unless page headers are damaged.
func (r *Reader) pageOf(win *window, rev uint64, b *bounds) (int64, error) {
	first := r.geo.Page(b.begin.end)
	lo, hi := first, r.geo.Page(b.stop.end-1)
	age := r.directory.grow(hi)
	for lo, hi = r.directory.narrow(rev, lo, hi); lo < hi; {
		mid := lo + (hi-lo+1)/2
		page, last, err := r.nearestPage(win, mid, lo, hi, age)
		if err != nil {
			return 0, err
		}
		switch {
		case page < 0 || last >= rev && page > mid:
			hi = lo // all between is bad: walk over it
		case last >= rev:
			hi = page - 1
		default:
			lo = page
		}
	}
	for page := lo; page > first; page-- {
		h, ok, err := r.page(win, page)
		if err != nil {
			return 0, err
		}
		if ok && h.First != 0 && h.Last < rev {
			return page*r.geo.PageSize() + int64(h.First), nil
		}
	}
	return r.geo.Start(b.begin.end), nil
}

// nearestPage returns page mid and the last revision begun before it; if its
// header is bad, those of the nearest good one at or below mid and above lo, or
// else above mid and at or below hi. The page is -1 if there is none.
func (r *Reader) nearestPage(win *window, mid, lo, hi int64, age uint64) (page int64, last uint64, err error) {
	for page := mid; page > lo; page-- {
		last, ok, err := r.lastBefore(win, page, age)
		if ok || err != nil {
			return page, last, err
		}
	}
	for page := mid + 1; page <= hi; page++ {
		last, ok, err := r.lastBefore(win, page, age)
		if ok || err != nil {
			return page, last, err
		}
	}
	return -1, 0, nil
}

// lastBefore returns the last revision begun before a page.
func (r *Reader) lastBefore(win *window, page int64, age uint64) (last uint64, ok bool, err error) {
	h, ok, err := r.page(win, page)
	if ok {
		r.directory.put(age, page, h.Last)
	}
	return h.Last, ok, err
}

// directory remembers what page headers said: 8 bytes a page, filled as pages
// are looked at. With it, a warm lookup reads one page.
type directory struct {
	mu   sync.RWMutex
	last []uint64 // by page number, plus one; 0: not known
	age  uint64   // how often it was forgotten
}

// narrow bisects as far as what is known leads.
func (d *directory) narrow(rev uint64, lo, hi int64) (int64, int64) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	for lo < hi && hi < int64(len(d.last)) {
		mid := lo + (hi-lo+1)/2
		switch known := d.last[mid]; {
		case known == 0:
			return lo, hi
		case known-1 >= rev:
			hi = mid - 1
		default:
			lo = mid
		}
	}
	return lo, hi
}

// put remembers what a page said to a lookup that began at an age. If it was
// forgotten meanwhile, the page may have been of the file as it was before.
func (d *directory) put(age uint64, page int64, last uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if age == d.age && page < int64(len(d.last)) {
		d.last[page] = last + 1
	}
}

// grow makes room for pages up to hi and returns the age.
func (d *directory) grow(hi int64) (age uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if n := hi + 1 - int64(len(d.last)); n > 0 {
		d.last = append(d.last, make([]uint64, n)...)
	}
	return d.age
}

// forget drops everything, because the file changed.
func (d *directory) forget() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last, d.age = nil, d.age+1
}

func (r *Reader) page(win *window, page int64) (frame.PageHeader, bool, error) {
	off := page * r.geo.PageSize()
	b, err := win.read(off, frame.PageHeaderSize)
	if err != nil {
		return frame.PageHeader{}, false, err
	}
	h, err := r.geo.DecodePage(b, off)
	return h, err == nil, nil
}

// groupFrom returns the header of the group that starts at start; if that is
// damaged, of the next one below limit that holds: what is sought may lie
// behind derived bytes that are damaged, and confirms itself.
func (r *Reader) groupFrom(win *window, start, limit int64) (int64, frame.GroupHeader, error) {
	h, err := r.groupAt(win, start)
	if !errors.Is(err, ErrCorrupt) || errors.Is(err, frame.ErrUnsupported) {
		return start, h, err
	}
	off, next, nextErr := nextHeader(win, r.geo, start+8, limit)
	if off == 0 && nextErr == nil {
		return start, h, err
	}
	return off, next, nextErr
}

func (r *Reader) groupAt(win *window, start int64) (frame.GroupHeader, error) {
	b, err := win.read(start, frame.GroupHeaderSize)
	if err != nil {
		return frame.GroupHeader{}, err
	}
	h, err := r.geo.DecodeGroup(b, start)
	if err != nil {
		f := fault{off: start, what: "group header", err: err}
		return h, f.located(r.geo, point{rev: h.Revision - 1})
	}
	return h, nil
}

// firstStartBefore returns the start of a group that begins before end: the
// first one of the last page before end in which one starts. 0: there is none
// that a page header names.
func (r *Reader) firstStartBefore(win *window, end int64) (int64, error) {
	heads := window{r: win.r, limit: win.limit, chunk: frame.PageHeaderSize, reads: win.reads} // it goes backwards
	for page := r.geo.Page(min(end, win.limit) - 1); page >= r.geo.Page(r.begin.end); page-- {
		h, ok, err := r.page(&heads, page)
		if err != nil {
			return 0, err
		}
		start := page*r.geo.PageSize() + int64(h.First)
		if ok && h.First != 0 && start < end && start >= r.begin.end {
			return start, nil
		}
	}
	return 0, nil
}

// startsBefore lists where the commits start that begin in the same page as
// rev, up to rev; first is the revision of the first one.
func (r *Reader) startsBefore(rev uint64, reuse []int64, g *Group, b *bounds) (first uint64, starts []int64, err error) {
	r.prepare(g, b, int(r.geo.PageSize()))
	start, err := r.pageOf(&g.walk.win, rev, b)
	if err != nil {
		return 0, nil, err
	}
	starts = reuse[:0]
	for start < b.stop.end {
		at, h, err := r.groupFrom(&g.walk.win, start, b.stop.end)
		if err != nil {
			return 0, nil, err
		}
		start = at
		if !h.Derived() {
			if len(starts) == 0 {
				first = h.Revision
			}
			starts = append(starts, start)
			if h.Revision >= rev {
				break
			}
		}
		start = r.geo.Start(r.geo.End(start, h.Body))
	}
	if len(starts) == 0 || first > rev || first+uint64(len(starts)) != rev+1 {
		f := fault{off: start, what: "groups of the page", err: errChain}
		return 0, nil, f.located(r.geo, point{rev: rev - 1})
	}
	return first, starts, nil
}

// digestAt returns the digest at a revision of a file that recovery walked to
// at.
func digestAt(f disk.File, h *header, at point, rev uint64) (cursor.Digest, error) {
	r := &Reader{file: f, id: &h.id, geo: h.geo, begin: h.begin()}
	return r.digestAt(rev, &bounds{begin: r.begin, stop: at, proven: at.end})
}
