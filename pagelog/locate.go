package pagelog

import (
	"errors"
	"fmt"
	"maps"
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
	age := r.directory.from(first)
	for lo, hi = r.directory.narrow(rev, lo, hi); lo < hi; {
		mid := lo + (hi-lo+1)/2
		page, last, err := r.nearestPage(win, mid, hi, age)
		if err != nil {
			return 0, err
		}
		if page < 0 || last >= rev {
			hi = mid - 1 // what is bad between is walked over
		} else {
			lo = page
		}
	}
	for page := lo; page > max(first, lo-r.groupPages()); page-- {
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
// header is bad, those of the next good one at or below hi. The page is -1 if
// there is none.
func (r *Reader) nearestPage(win *window, mid, hi int64, age uint64) (page int64, last uint64, err error) {
	for page := mid; page <= hi; page++ {
		h, ok, err := r.page(win, page)
		if ok {
			r.directory.put(age, page, h.Last)
		}
		if ok || err != nil {
			return page, h.Last, err
		}
		page = max(page, r.geo.Page(nextData(win.r, page*r.geo.PageSize()))-1) // a hole is not read
	}
	return -1, 0, nil
}

// directory remembers what page headers said: 8 bytes a page, in pieces that are
// there once one of their pages was looked at, and as long as they are in the
// log. With it, a warm lookup reads one page.
type directory struct {
	mu     sync.RWMutex
	pieces map[int64]*directoryPiece // by page number / directoryPages
	first  int64                     // the first piece
	age    uint64                    // how often it was forgotten
}

const directoryPages = 512

// directoryPiece is by page number: the last revision begun before the page,
// plus one; 0: not known.
type directoryPiece [directoryPages]uint64

// narrow bisects as far as what is known leads.
func (d *directory) narrow(rev uint64, lo, hi int64) (int64, int64) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	var piece *directoryPiece
	for at := int64(-1); lo < hi; {
		mid := lo + (hi-lo+1)/2
		if n := mid / directoryPages; n != at {
			piece, at = d.pieces[n], n
		}
		if piece == nil {
			break
		}
		switch known := piece[mid%directoryPages]; {
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
	at := page / directoryPages
	if age != d.age || at < d.first {
		return
	}
	piece := d.pieces[at]
	if piece == nil {
		if d.pieces == nil {
			d.pieces = map[int64]*directoryPiece{}
		}
		piece = new(directoryPiece)
		d.pieces[at] = piece
	}
	piece[page%directoryPages] = last + 1
}

// from drops what is known of pages below first, where history begins, and
// returns the age.
func (d *directory) from(first int64) (age uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if at := first / directoryPages; at > d.first {
		d.first = at
		maps.DeleteFunc(d.pieces, func(piece int64, _ *directoryPiece) bool { return piece < at })
	}
	return d.age
}

// forget drops everything, because the file changed.
func (d *directory) forget() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pieces, d.age = nil, d.age+1
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

// groupPages is how many pages a group may touch, and no fewer.
func (r *Reader) groupPages() int64 {
	return (frame.GroupHeaderSize+r.geo.MaxBody())/(r.geo.PageSize()-frame.PageHeaderSize) + 2
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
// that a page header names, as near as a group must begin.
func (r *Reader) firstStartBefore(win *window, end int64) (int64, error) {
	heads := window{r: win.r, limit: win.limit, chunk: frame.PageHeaderSize, reads: win.reads} // it goes backwards
	last := r.geo.Page(min(end, win.limit) - 1)
	for page := last; page >= max(r.geo.Page(r.begin.end), last-r.groupPages()); page-- {
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
