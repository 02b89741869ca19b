package pagelog

import (
	"errors"
	"fmt"

	"github.com/tidemark-log/tidemark/frame"
)

// When a reader says corrupt.
//
// A reader of another process's log sees groups in flight: bytes that are not
// there yet, or there in part. So a group that does not validate means nothing
// until there is evidence that it was acknowledged: a slot, or a later header,
// whose durable end lies beyond it. The order matters. The reader finds the
// fault, then gathers the evidence, then reads the group once more; only if it
// is still bad after the evidence was seen, it is corrupt, because the bytes
// below a durable end were in the file before the durable end was.

// view is what a reader last saw of the file.
type view struct {
	header *header
	ready  bool       // tip was found
	tip    point      // last complete group
	tipAt  int64      // where the last group passed starts; 0 if none was
	seen   point      // where that group left the walk: the tip, or before a bridge
	proven int64      // durable end that slots and later headers prove
	size   int64      // of the file, and
	slot   frame.Slot // its newest slot, when the tip was last held against them
	damage error      // why the tip is not the end
	looker walker
	deep   bool // search for evidence behind the tip, even if it just moved
	idle   int  // looks in a row of one who waits and was told of no change; 0: somebody asks
}

// rests reports whether this look may do without the search behind the tip. To
// one who waits and was told of no change it brings nothing, mostly, and it
// reads all that the writer has reserved: so it is made in the first looks, then
// ever more seldom.
func (v *view) rests() bool { return v.idle&(v.idle-1) != 0 && v.idle%64 != 0 }

// inPassing is a count of looks that rests.
const inPassing = 3

// bounds is where reading begins and stops, at one moment.
type bounds struct {
	begin  point
	stop   point // last group to show
	proven int64 // durable end
	damage error // what is behind stop, if not the end
}

// boundsFor says what may be read, looking at the file only if the commit rev
// was not seen before.
func (r *Reader) boundsFor(rev uint64) (b bounds, cached bool, err error) {
	if r.live == nil {
		r.mu.Lock()
		v := &r.view
		b = bounds{begin: r.begin, stop: v.tip, proven: v.proven, damage: v.damage}
		cached = r.gone == nil && v.ready && rev > b.begin.rev && rev <= b.stop.rev && !(r.opts.Durable && v.proven < v.tip.end)
		r.mu.Unlock()
	}
	if !cached {
		b, err = r.bounds()
	}
	return b, cached, err
}

// bounds looks at the log and says what may be read now.
func (r *Reader) bounds() (bounds, error) { return r.look(0) }

// look is bounds for one who waits, and was told of no change for so many looks.
func (r *Reader) look(idle int) (bounds, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.view.idle = idle
	if r.gone != nil {
		return bounds{}, r.gone
	}
	if r.live != nil {
		if r != r.live.Reader { // retention moves that one's
			r.begin = r.live.oldest()
		}
		head, durable, err := r.live.points()
		b := bounds{begin: r.begin, stop: head, proven: durable.end}
		if r.opts.Durable {
			b.stop = durable
		}
		return b, err
	}
	if err := r.refresh(); err != nil {
		if errors.Is(err, ErrDiverged) || errors.Is(err, ErrReplaced) {
			r.gone = err
		}
		return bounds{}, err
	}
	v := &r.view
	b := bounds{begin: r.begin, stop: v.tip, proven: v.proven, damage: v.damage}
	if r.opts.Durable && v.proven < v.tip.end {
		if err := r.stopAtProven(&b); err != nil {
			return b, err
		}
	}
	return b, nil
}

// refresh finds the last complete group: slots first, then the walk.
func (r *Reader) refresh() error {
	v := &r.view
	if err := v.header.reread(r.file); err != nil {
		return err
	}
	if _, named, err := r.file.Named(); err != nil {
		return err
	} else if !named {
		return r.succeed()
	}
	if v.header.size < v.header.geo.HeaderArea() {
		return fmt.Errorf("%w under the reader: it has %d bytes", ErrReplaced, v.header.size)
	}
	s := v.header.newest()
	r.followFloor()
	v.proven = max(v.proven, v.header.durableEnd())
	if !v.ready {
		if err := r.anchor(); err != nil {
			return err
		}
		v.ready, v.deep = true, true
	} else if v.header.size < v.size || s != nil && (s.Writer != v.slot.Writer || s.Epoch != v.slot.Epoch || s.Number < v.slot.Number) {
		if err := r.proveTip(); err != nil {
			return err
		}
	}
	if v.size = v.header.size; s != nil {
		v.slot = *s
	}
	return r.walkToTip()
}

// followFloor moves where history begins to the retention floor of the newest
// slot. A tip below it was dropped: history is walked from the floor on. It
// reports whether the tip moved.
func (r *Reader) followFloor() (moved bool) {
	v := &r.view
	s := v.header.newest()
	if s == nil || s.Floor.Offset <= r.begin.end {
		return false
	}
	r.begin = pointAt(s.Floor)
	if v.tipAt < r.begin.end {
		v.tipAt = 0 // that group is gone, or will be: nothing is left to prove
	}
	if !v.ready || v.tip.end >= r.begin.end {
		return false
	}
	v.tip, v.tipAt = r.begin, 0
	v.looker.at = r.begin
	v.looker.win.drop()
	return true
}

// anchor finds a place near the end from which to walk: the durable end of a
// slot, confirmed by the bytes it names; else where history begins.
func (r *Reader) anchor() error {
	v := &r.view
	if err := v.header.beginsInside(); err != nil {
		return err
	}
	v.looker = walker{geo: r.geo, win: window{r: r.file, chunk: 64 << 10}, at: r.begin}
	v.tip = r.begin
	s := v.header.newest()
	if s == nil || s.Durable.Offset <= r.begin.end {
		return nil
	}
	w := &v.looker
	w.win.limit = min(s.Durable.Offset, v.header.size)
	ok, err := r.confirm(w, s.Durable)
	if err != nil {
		return err
	}
	if ok {
		v.tip, v.tipAt, v.seen = w.at, w.cur.start, w.at
	} else {
		w.at = r.begin
	}
	w.win.drop()
	return nil
}

// confirm walks to p from the first group of its page, or of an earlier one if
// none starts there, and reports whether the groups say the same as p.
func (r *Reader) confirm(w *walker, p frame.Place) (bool, error) {
	start, err := r.firstStartBefore(&w.win, p.Offset)
	if err != nil || start == 0 {
		return false, err
	}
	var f *fault
	if err := w.trust(start); errors.As(err, &f) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	for w.at.end < p.Offset {
		if err := w.next(); errors.As(err, &f) {
			return false, nil
		} else if err != nil {
			return false, err
		}
	}
	return w.at.place() == p, nil
}

// proveTip reads the last group again after the file changed under a new
// writer, or shrank.
func (r *Reader) proveTip() error {
	v := &r.view
	r.directory.forget()
	if v.tipAt == 0 {
		return nil
	}
	w := walker{geo: r.geo, win: window{r: r.file, limit: v.header.size, chunk: frame.MinPageSize}}
	err := w.trust(v.tipAt)
	if err == nil {
		err = w.next()
	}
	var f *fault
	if err != nil && !errors.As(err, &f) {
		return err
	}
	if f != nil || w.at.place() != v.seen.place() {
		if err := v.header.reread(r.file); err != nil {
			return err
		}
		if r.followFloor(); v.tipAt == 0 {
			return nil // retention dropped it meanwhile
		}
		return fmt.Errorf("%w: revision %d, which was read before, is gone or another; the file was restored, or lost an unacknowledged commit",
			ErrDiverged, v.tip.rev)
	}
	return nil
}

// walkToTip walks from the tip to the last complete group and judges what is
// wrong behind it.
func (r *Reader) walkToTip() error {
	v := &r.view
	w := &v.looker
	v.damage = nil
	from := v.tip.end
	for {
		w.win.limit = v.header.size
		w.win.drop()
		f, err := r.follow(w)
		if err != nil {
			return err
		}
		deep := v.deep || v.tip.end == from && !v.rests()
		again, err := r.judge(w, f, deep)
		v.deep = err != nil || again && deep
		if err != nil || !again {
			return err
		}
	}
}

// follow passes every valid group behind the tip.
func (r *Reader) follow(w *walker) (*fault, error) {
	v := &r.view
	for {
		var f *fault
		before := w.at
		err := w.next()
		if errors.As(err, &f) {
			return f, nil
		}
		if err != nil {
			return nil, err
		}
		v.proven = max(v.proven, w.cur.DurableEnd)
		if bad := w.cur.badPage; bad != 0 && bad >= v.proven { // not valid, unless it is proven
			w.at = before
			return &fault{off: bad, what: "page header", err: frame.ErrSum}, nil
		}
		v.tip, v.tipAt, v.seen = w.at, w.cur.start, w.at
	}
}

// judge says whether the walk, which met f behind the tip, is at its end. It
// sets damage if what follows was acknowledged and is bad; again means that the
// walk may go on. deep asks for a search behind the tip, which costs what lies
// there: a follower does without while new groups keep coming.
func (r *Reader) judge(w *walker, f *fault, deep bool) (again bool, err error) {
	v := &r.view
	if errors.Is(f.err, frame.ErrUnsupported) {
		return false, fmt.Errorf("%w: %w", ErrUnsupported, f)
	}
	if err := r.gather(w.at.end, deep); err != nil {
		return false, err
	}
	if r.followFloor() {
		return true, nil // retention dropped it meanwhile
	}
	if v.proven <= w.at.end {
		return false, nil // not yet
	}
	w.win.limit = v.header.size
	w.win.drop()
	err = w.next() // once more, after the evidence was seen
	if err == nil {
		v.proven = max(v.proven, w.cur.DurableEnd)
		v.tip, v.tipAt, v.seen = w.at, w.cur.start, w.at
		return true, nil
	}
	if !errors.As(err, &f) {
		return false, err
	}
	to, err := bridge(w, f, v.proven, v.header)
	if err != nil {
		return false, err
	}
	if to != 0 {
		w.at.end = to
		v.tip = w.at
		return true, nil
	}
	if f.complete && errors.Is(f.err, errChain) {
		return false, fmt.Errorf("%w: offset %d does not continue revision %d", ErrDiverged, f.off, w.at.rev)
	}
	v.damage = f.located(r.geo, w.at)
	return false, nil
}

// gather looks for evidence that bytes beyond end were acknowledged: in the
// slots, read again, and if deep in later headers.
func (r *Reader) gather(end int64, deep bool) error {
	v := &r.view
	if err := v.header.reread(r.file); err != nil {
		return err
	}
	v.proven = max(v.proven, v.header.durableEnd())
	if v.proven > end || !deep {
		return nil
	}
	ev, err := search(r.file, r.geo, end, v.header.size)
	if err != nil {
		return err
	}
	v.proven = max(v.proven, ev.durableEnd)
	return nil
}

// stopAtProven moves the stop of a Durable reader down to the last group that
// ends at or below the proven end.
func (r *Reader) stopAtProven(b *bounds) error {
	b.damage = nil
	if b.proven <= b.begin.end {
		b.stop = b.begin
		return nil
	}
	w := walker{geo: r.geo, win: window{r: r.file, limit: b.proven, chunk: 64 << 10}, at: b.begin}
	start, err := r.firstStartBefore(&w.win, b.proven)
	if err != nil {
		return err
	}
	if start != 0 {
		if err := notFault(w.trust(start)); err != nil {
			return err
		} // where that group is damaged, the walk comes to it from the beginning
	}
	for w.at.end < b.proven {
		err := w.next()
		var f *fault
		if errors.As(err, &f) {
			to, err := bridge(&w, f, b.proven, r.view.header)
			if err != nil {
				return err
			}
			if to == 0 {
				return f.located(r.geo, w.at)
			}
			w.at.end = to
			w.win.drop()
		} else if err != nil {
			return err
		}
	}
	b.stop = w.at
	return nil
}

// step passes the next group of an iteration. Below the bounds everything was
// seen to be there, so a fault is damage, or a file that changed.
func (r *Reader) step(g *Group, b *bounds) error {
	err := g.walk.next()
	if err == nil {
		return nil
	}
	return r.stepOver(g, b, err)
}

// stepOver says what an error in the middle of an iteration means, and goes on
// where only derived bytes were damaged.
func (r *Reader) stepOver(g *Group, b *bounds, err error) error {
	var f *fault
	if !errors.As(err, &f) {
		return err
	}
	if errors.Is(f.err, frame.ErrUnsupported) {
		return fmt.Errorf("%w: %w", ErrUnsupported, f)
	}
	// What the slots confirm now, or what lies behind it by the look that follows,
	// says that no commit was lost.
	h, err := r.readSlots()
	if err != nil {
		return err
	}
	// The reason may be that the file changed: look at it again first. What lies
	// behind the tip was searched when the iteration began; to search it again for
	// each damaged group would take for ever in a file that is full of them.
	fresh, err := r.look(inPassing)
	if err != nil {
		return err
	}
	if fresh.begin.end > g.walk.at.end {
		return compacted(&fresh)
	}
	if g.walk.next() == nil {
		return nil
	}
	limit := g.walk.win.limit
	g.walk.win.limit = max(limit, fresh.stop.end)
	to, err := bridge(&g.walk, f, min(fresh.proven, g.walk.win.limit), h)
	g.walk.win.limit = limit
	if err != nil {
		return err
	}
	if to == 0 {
		return f.located(r.geo, g.walk.at)
	}
	g.walk.at.end = to
	if to >= b.stop.end {
		if b.damage != nil {
			return b.damage
		}
		return errStopped
	}
	return r.step(g, b)
}

// readSlots returns the header area as it is now.
func (r *Reader) readSlots() (*header, error) {
	h := &header{id: *r.id, geo: r.geo}
	return h, h.reread(r.file)
}
