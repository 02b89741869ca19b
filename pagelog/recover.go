package pagelog

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/tidemark-log/tidemark/cursor"
	"github.com/tidemark-log/tidemark/frame"
	"github.com/tidemark-log/tidemark/internal/disk"
)

// Recovery decides what opening a log for writing finds, and makes it durable.
// It is a list of steps, each of which may be killed and run again:
//
//  1. find the end: walk from a point that is proven durable to E, the end of
//     the last valid group;
//  2. find the proven end F: the largest durable end that a slot or any group
//     header names, also beyond E;
//  3. judge: what is wrong at E is torn if and only if E >= F;
//  4. compare with what the host expects; nothing was written so far;
//  5. settle: write [F, E) again from the buffer that was verified, cut
//     behind E, name F in a slot under a new epoch, sync. Only now is E
//     durable, and only a later slot or header says so.
//
// Why [F, E) is written again: a sync that failed may have left pages clean in
// memory that never reached the disk. Reading them proves nothing; writing
// them makes the next sync carry them.

// Report says what opening for writing found and did.
type Report struct {
	Head       uint64 // revision of the last commit recovered
	ProvenEnd  int64  // offset up to which bytes were proven acknowledged
	End        int64  // offset where the recovered history ends
	Epoch      uint64 // of this writer
	Rewritten  int64  // bytes above the proven end that were written again
	Torn       int64  // bytes of an unacknowledged write that were cut off
	TornWhat   string // why they were no group; empty if nothing was torn
	BadSlots   int    // slots that did not hold; one may be a torn slot write
	BadCopies  int    // copies of the identity that did not hold
	Bridged    []Bridge
	BytesRead  int64 // by the walk
	FromOffset int64 // where the walk began
}

// Bridge is a stretch of damaged derived bytes that opening stepped over. No
// commit was in it.
type Bridge struct {
	From, To int64 // byte offsets
	What     string
}

// recovery is the state of one opening.
type recovery struct {
	file    disk.File
	head    *header
	walk    walker
	tail    tail
	proven  int64   // F so far
	epoch   uint64  // the largest seen anywhere
	above   []point // group ends at or above F
	bad     []badPage
	stop    *fault      // why the walk ended
	checks  checkpoints // the last one in the file
	before  frame.Place // the one that slots name beside it
	keyed   bool        // a commit that was passed has keys
	index   *index
	dirtEnd int64 // behind the last byte that is not zero
	report  Report
}

// badPage is a page header at or above F that is wrong: its group is torn.
type badPage struct {
	off    int64
	before point
	checks checkpoints
}

// floorTries bounds the floors that are tried where both slots are lost, or a
// file full of them would take for ever. A crash leaves one that is none.
const floorTries = 64

func recoverLog(f disk.File, h *header, expect *Expect) (*recovery, error) {
	r, err := walkToEnd(f, h)
	for tries := 1; err == nil && h.offChain(r.walk.at.end); tries++ {
		if tries == floorTries {
			f := fault{off: h.lost.at, what: "both slots are damaged, and the last retention floors that groups name", err: errChain}
			return nil, f.located(h.geo, r.walk.at)
		}
		if err = h.findFloor(f, h.lost.at); err == nil {
			r, err = walkToEnd(f, h)
		}
	}
	if err != nil {
		return nil, err
	}
	if err := r.judge(); err != nil {
		return nil, err
	}
	if err := r.expect(expect); err != nil {
		return nil, err
	}
	return r, r.countable()
}

// countable refuses a file whose epoch or slot numbers leave no room to count
// on: what this writer committed would not be read again. No honest log comes
// near.
func (r *recovery) countable() error {
	const most = 1 << 62
	for i := range r.head.slots {
		if s := &r.head.slots[i]; s.err == nil && s.Number >= most {
			return &CorruptError{Offset: frame.SlotOffsets[i], What: "slot number, which no writer can count on from", Err: frame.ErrField}
		}
	}
	if r.epoch >= math.MaxInt64 {
		return &CorruptError{Offset: frame.SlotOffsetA, What: "epoch, which no writer can count on from", Err: frame.ErrField}
	}
	return nil
}

func walkToEnd(f disk.File, h *header) (*recovery, error) {
	if err := h.beginsInside(); err != nil {
		return nil, err
	}
	r := &recovery{file: f, head: h, proven: h.durableEnd()}
	r.walk = walker{geo: h.geo, win: window{r: f, limit: h.size, chunk: readChunk, reads: &r.report.BytesRead}, tail: &r.tail}
	return r, r.findEnd()
}

const readChunk = 256 << 10

// findEnd walks to E and searches what lies behind it, bridging derived damage
// below F.
func (r *recovery) findEnd() error {
	for i := range r.head.slots {
		if r.head.slots[i].err != nil {
			r.report.BadSlots++
		} else {
			r.epoch = max(r.epoch, r.head.slots[i].Epoch)
		}
		if r.head.badIdentity[i] != nil {
			r.report.BadCopies++
		}
	}
	if err := r.anchor(); err != nil {
		return err
	}
	r.report.FromOffset = r.walk.at.end
	if r.walk.at.end >= r.proven {
		r.above = append(r.above, r.walk.at)
	}
	r.tail.advance(r.proven)
	if err := r.confirmSlots(point{end: r.walk.at.end - 1}, r.walk.at); err != nil {
		return err
	}
	for {
		if err := r.walkOn(); err != nil {
			return err
		}
		ev, err := search(r.file, r.head.geo, r.walk.at.end, r.head.size)
		if err != nil {
			return err
		}
		r.raise(ev.durableEnd)
		r.epoch = max(r.epoch, ev.epoch)
		r.dirtEnd = ev.dirtEnd
		if r.walk.at.end >= r.proven {
			return nil
		}
		to, err := bridge(&r.walk, r.stop, r.proven, r.head)
		if err != nil || to == 0 {
			return err
		}
		r.bridged(to)
	}
}

// bridged steps over damaged derived bytes.
func (r *recovery) bridged(to int64) {
	r.report.Bridged = append(r.report.Bridged, Bridge{From: r.walk.at.end, To: to, What: r.stop.Error()})
	r.walk.at.end = to
	r.walk.win.drop()
	if to >= r.proven {
		r.above = append(r.above, r.walk.at)
	}
	r.tail.buf = r.tail.buf[:0]
}

// walkOn walks until no group follows.
func (r *recovery) walkOn() error {
	for {
		err := r.walk.next()
		if errors.As(err, &r.stop) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := r.passed(&r.walk.cur); err != nil {
			return err
		}
	}
}

// passed takes note of a valid group.
func (r *recovery) passed(p *passed) error {
	r.epoch = max(r.epoch, p.Epoch)
	r.raise(p.DurableEnd)
	if p.badPage != 0 {
		r.bad = append(r.bad, badPage{p.badPage, p.before, r.checks})
	}
	if p.Derived() {
		r.checks.passed(p)
	} else {
		r.keyed = r.keyed || hasKeys(p.body)
	}
	r.tail.advance(r.proven)
	if p.end >= r.proven {
		r.above = append(r.above, r.walk.at)
	}
	return r.confirmSlots(p.before, r.walk.at)
}

// confirmSlots holds what the slots say of the group that was just passed
// against the bytes.
func (r *recovery) confirmSlots(before, at point) error {
	for i := range r.head.slots {
		s := &r.head.slots[i]
		d := s.Durable
		if s.err != nil || d.Offset <= before.end || d.Offset > at.end {
			continue
		}
		if d != at.place() {
			f := fault{off: frame.SlotOffsets[i], what: fmt.Sprintf(
				"slot %d names offset %d, revision %d, digest %v; the groups give offset %d, revision %d, digest %v",
				i, d.Offset, d.Revision, cursor.Digest(d.Digest), at.end, at.rev, cursor.Digest(at.digest)), err: errBoundary}
			return f.located(r.head.geo, before)
		}
	}
	return nil
}

// raise lifts F to end, if that is higher, and forgets what lies below.
func (r *recovery) raise(end int64) {
	if end <= r.proven {
		return
	}
	r.proven = end
	r.tail.advance(end)
	i, _ := slices.BinarySearchFunc(r.above, end, func(p point, end int64) int { return int(min(max(p.end-end, -1), 1)) })
	r.above = slices.Delete(r.above, 0, i)
}

// judge says whether what is wrong at E is torn or corrupt.
func (r *recovery) judge() error {
	for _, b := range r.bad {
		if b.off >= r.proven && b.before.end < r.walk.at.end {
			r.walk.at, r.checks = b.before, b.checks
			r.stop = &fault{off: b.off, what: "page header", err: frame.ErrSum}
		}
	}
	at := r.walk.at
	switch {
	case errors.Is(r.stop.err, frame.ErrUnsupported):
		return fmt.Errorf("%w: %w", ErrUnsupported, r.stop)
	case r.stop.complete && r.stop.header.Epoch >= r.epoch && errors.Is(r.stop.err, errChain):
		return fmt.Errorf("%w: a whole group at offset %d does not continue revision %d; nothing was changed",
			ErrDiverged, r.stop.off, at.rev)
	case at.end < r.proven:
		return r.stop.located(r.head.geo, at)
	case len(r.above) == 0 || r.above[0].end != r.proven:
		f := fault{off: r.proven, what: fmt.Sprintf("proven end %d", r.proven), err: errBoundary}
		return f.located(r.head.geo, at)
	case r.head.newest() == nil && at.end == r.head.geo.HeaderArea():
		f := fault{off: frame.SlotOffsetA, what: "both slots are damaged and no group is where the first should be", err: r.head.slots[0].err}
		return f.located(r.head.geo, at)
	}
	if r.report.Torn = r.dirtEnd - at.end; r.report.Torn > 0 {
		r.report.TornWhat = r.stop.Error()
	}
	return nil
}

// expect compares what was found with what the host knows.
func (r *recovery) expect(e *Expect) error {
	if e == nil {
		return nil
	}
	oldest := r.head.begin()
	switch {
	case r.walk.at.rev < e.Revision:
		return &LostError{Have: r.walk.at.rev, Want: e.Revision}
	case e.Revision < oldest.rev:
		return &cursor.CompactedError{Oldest: oldest.rev + 1}
	}
	digest, err := digestAt(r.file, r.head, r.walk.at, e.Revision)
	if err != nil {
		return err
	}
	if digest != e.Digest {
		return fmt.Errorf("%w: revision %d has digest %v, %v was expected", ErrDiverged, e.Revision, digest, e.Digest)
	}
	return nil
}

// settle makes what was found durable. It is the first thing that writes.
func (r *recovery) settle(slots *slots) error {
	at := r.walk.at
	r.tail.endAt(at.end)
	if err := r.findCheckpoint(at); err != nil {
		return err
	}
	if err := r.findKeys(at); err != nil {
		return err
	}
	slots.cur.Check, slots.cur.Features = r.named(), r.features()
	r.epoch++
	floor := r.above[0]
	if n := at.end - r.proven; n > 0 {
		if r.tail.from != r.proven || int64(len(r.tail.buf)) != n {
			panic(fmt.Sprintf("internal error: tail [%d, +%d) is not [%d, %d)", r.tail.from, len(r.tail.buf), r.proven, at.end))
		}
		if err := rewrite(r.file, r.tail.buf, r.proven); err != nil {
			return fmt.Errorf("write recovered groups again: %w", err)
		}
		r.report.Rewritten = n
	}
	if r.head.size != at.end {
		if err := r.file.Truncate(at.end); err != nil {
			return fmt.Errorf("cut behind the last group: %w", err)
		}
	}
	if err := slots.open(r.file, r.head, r.epoch, floor.place()); err != nil {
		return err
	}
	if err := r.file.Sync(); err != nil {
		return fmt.Errorf("sync recovered log: %w", err)
	}
	slots.synced()
	r.report.Head, r.report.End, r.report.ProvenEnd, r.report.Epoch = at.rev, at.end, r.proven, r.epoch
	return nil
}

// rewrite writes b at off in pieces, so that the page cache keeps small folios.
// The cached pages are dropped first: see disk.DropCache.
func rewrite(f disk.File, b []byte, off int64) error {
	if err := disk.DropCache(f); err != nil {
		return err
	}
	for len(b) > 0 {
		n := min(len(b), zeroChunk)
		if _, err := f.WriteAt(b[:n], off); err != nil {
			return err
		}
		b, off = b[n:], off+int64(n)
	}
	return nil
}
