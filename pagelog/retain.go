package pagelog

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/tidemark-log/tidemark/checkpoint"
	"github.com/tidemark-log/tidemark/frame"
	"github.com/tidemark-log/tidemark/internal/disk"
)

// Retention drops the oldest commits. Offsets stay, and so does everything that
// is needed to go on: the keyed index is first written again behind the floor,
// and the host's last blob lies behind it already: the floor is never above the
// commit whose state the blob is, and the blob was written after that commit.
// The order is what makes a crash at any step harmless:
//
//  1. The file system must be able to free the inside of a file; else nothing
//     is done.
//  2. Runs of the index that lie below the floor are written again at the head.
//  3. A floor group and a checkpoint that repeats the floor are written at the
//     head and synced. From here on the floor counts: opening completes what a
//     crash leaves undone.
//  4. One slot that names the floor, sync; the other slot, sync. No slot is
//     left that leads below the floor.
//  5. The whole pages from the header area's end up to, not including, the page
//     that holds the floor's offset are freed.
//
// Every slot whose durable end covers the floor group names the floor, because
// both are set by the same sync. So opening meets an unfinished retention in one
// of two ways: the walk passes a floor group that no slot covers yet, or the
// slots name the floor and pages below it hold data. In both it does steps 4 and
// 5 itself.

// Errors of retention.
var (
	// ErrPinned: commits that were to be dropped are still needed: they are pinned,
	// being read by an iteration of this Log, or behind the host's last state.
	ErrPinned = errors.New("commits are still needed")
	// ErrNoPunch: this file system cannot free the inside of a file. Nothing was
	// dropped; Compact makes a smaller file instead.
	ErrNoPunch = disk.ErrNoPunch
)

// pin keeps the commits behind a revision.
type pin struct{ after atomic.Uint64 }

// maxPins bounds the pins of a log, iterations under way included.
const maxPins = 1 << 16

// Pin keeps the commits behind a revision from being dropped by Retain until
// release is called, once or more often. Errors: ErrCompacted, ErrTooLarge.
func (l *Log) Pin(after uint64) (release func(), err error) {
	p, err := l.pin(after)
	if err != nil {
		return nil, err
	}
	return func() { l.unpin(p) }, nil
}

func (l *Log) pin(after uint64) (*pin, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.pinLocked(after)
}

func (l *Log) pinLocked(after uint64) (*pin, error) {
	switch {
	case after < l.dropping:
		return nil, compacted(&bounds{begin: point{rev: l.dropping}})
	case len(l.pins) >= maxPins:
		return nil, fmt.Errorf("%w: %d pins", ErrTooLarge, len(l.pins))
	}
	if l.pins == nil {
		l.pins = map[*pin]struct{}{}
	}
	p := &pin{}
	p.after.Store(after)
	l.pins[p] = struct{}{}
	return p, nil
}

func (l *Log) unpin(p *pin) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.pins, p)
}

// hold pins the commits behind a revision for an iteration of the log's own.
func (r *Reader) hold(after uint64) (*pin, error) {
	if r.live == nil {
		return nil, nil
	}
	return r.live.pin(after)
}

// holdRest is hold for an iteration that ends where history begins by then.
func (r *Reader) holdRest(after uint64) (*pin, error) {
	if r.live == nil {
		return nil, nil
	}
	r.live.mu.Lock()
	defer r.live.mu.Unlock()
	return r.live.pinLocked(max(after, r.live.dropping))
}

func (r *Reader) letGo(p *pin) {
	if p != nil {
		r.live.unpin(p)
	}
}

// passed lets go of the commits up to a revision.
func (p *pin) passed(revision uint64) {
	if p != nil {
		p.after.Store(revision)
	}
}

// Retain drops the commits before a revision, which becomes the oldest one left,
// and frees their space. It runs beside commits and reading; readers of other
// processes that stand below get ErrCompacted. On return the floor is durable.
// Nothing happens if the log begins there already, or later.
//
// Errors: ErrNoPunch, ErrPinned, ErrNotFound beyond the head, ErrIndexDamaged
// (Reindex builds the index anew), those of Commit, and what freeing the pages
// says. After ErrUncertain the log is poisoned, and
// opening it decides whether the commits were dropped.
func (l *Log) Retain(ctx context.Context, revision uint64) error {
	l.retaining.Lock()
	defer l.retaining.Unlock()
	if err := l.unusable(); err != nil {
		return err
	}
	if revision <= l.oldest().rev+1 {
		return l.punch()
	}
	if head := l.Head().Revision; revision > head+1 {
		return fmt.Errorf("%w: %d, the head is %d", ErrNotFound, revision, head)
	}
	if l.Durable().Revision < revision-1 {
		if err := l.Sync(ctx); err != nil {
			return err
		}
	}
	if err := l.canPunch(); err != nil {
		return err
	}
	floor, err := l.reserveDrop(revision - 1)
	if err == nil {
		err = l.moveFloor(ctx, floor)
	}
	if err != nil {
		l.unreserveDrop()
		return err
	}
	return l.punch()
}

// canPunch asks the file system with a stretch behind the end of the file, where
// there is nothing to free.
func (l *Log) canPunch() error {
	info, err := l.file.Stat()
	if err != nil {
		return err
	}
	off := l.geo.PageStart(info.Size + 1<<30)
	if err := l.file.Punch(off, l.geo.PageSize()); err != nil {
		return fmt.Errorf("ask whether pages can be freed: %w", err)
	}
	return nil
}

// reserveDrop finds the floor behind the commit at a revision and, from here on,
// lets nobody pin what will be dropped.
func (l *Log) reserveDrop(revision uint64) (frame.Place, error) {
	b, err := l.bounds()
	if err != nil {
		return frame.Place{}, err
	}
	var g Group
	if err := l.at(revision, &g, &b); err != nil {
		return frame.Place{}, err
	}
	floor := frame.Place{Offset: g.end, Revision: revision, Digest: uint64(g.Digest)}
	l.mu.Lock()
	defer l.mu.Unlock()
	if state := l.checks.blob; state.Offset != 0 && state.Revision < revision {
		return floor, fmt.Errorf("%w: the host's last state is of revision %d, and going on from it takes revision %d; keep a newer one with Checkpoint first",
			ErrPinned, state.Revision, state.Revision+1)
	}
	for p := range l.pins {
		if after := p.after.Load(); after < revision {
			return floor, fmt.Errorf("%w: revision %d is pinned", ErrPinned, after+1)
		}
	}
	l.dropping = revision
	return floor, nil
}

func (l *Log) unreserveDrop() {
	oldest := l.oldest().rev
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dropping = oldest
}

// moveFloor does steps 2 to 4, and shows the floor to readers of this process.
func (l *Log) moveFloor(ctx context.Context, floor frame.Place) error {
	if err := l.liftIndex(ctx, floor.Offset); err != nil {
		return fmt.Errorf("write the index again: %w", err)
	}
	t := &Ticket{log: l, floor: &floor}
	if err := l.enqueue(ctx, t); err != nil {
		return err
	}
	if _, err := t.Wait(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	if err := l.nameTwice(); err != nil {
		return err
	}
	l.beginAt(floor)
	return nil
}

// beginAt tells the readers of this process where history begins.
func (l *Log) beginAt(floor frame.Place) {
	l.Reader.mu.Lock()
	defer l.Reader.mu.Unlock()
	l.Reader.begin = pointAt(floor)
}

// addFloor lays out a floor group behind head, and a checkpoint that repeats it.
func (l *Log) addFloor(c *checkpoints, head point, floor frame.Place, now int64) point {
	f := checkpoint.Floor{Place: floor, Generation: l.slots.cur.Generation, Features: l.features}
	body := frame.AppendRecord(nil, frame.KindFloor, 0, frame.Plain, f.Encode())
	head = l.addDerived(head, body, 1, now)
	c.floor = floor
	c.made = append(c.made, made{end: head.end, floor: floor})
	return l.addCheckpoint(c, head, nil, now)
}

// nameFloor has the next slot name a floor. It forgets checkpoints below. The
// syncing role is held.
func (s *slots) nameFloor(floor frame.Place) {
	s.cur.Floor = floor
	if s.cur.Before.Offset < floor.Offset {
		s.cur.Before = frame.Place{}
	}
	if s.cur.Check.Offset < floor.Offset {
		s.cur.Check, s.cur.Before = s.cur.Before, frame.Place{}
	}
}

// takeSync takes the syncing role, which others then cannot take before
// giveSync. mu is held; it is released while waiting.
func (l *Log) takeSync() error {
	for l.syncing && l.cause == nil {
		l.waiting++
		if l.given == nil {
			l.given = make(chan struct{})
		}
		given := l.given
		l.mu.Unlock()
		<-given
		l.mu.Lock()
		l.waiting--
	}
	if l.cause == nil && !l.closing {
		l.syncing = true
		return nil
	}
	l.handOver() // who could not sync because of us may now
	l.checkQuiet()
	if l.cause != nil {
		return l.poisonedLocked()
	}
	return ErrClosed
}

// giveSync gives the syncing role back, to who waits for it with takeSync
// first. mu is held.
func (l *Log) giveSync() {
	l.syncing = false
	if l.given != nil {
		close(l.given)
		l.given = nil
	}
}

// nameTwice leaves two slots on disk that say what the log says now.
func (l *Log) nameTwice() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.takeSync(); err != nil {
		return err
	}
	durable := l.durable
	l.slots.cur.Features = l.features
	l.mu.Unlock()
	err := l.slots.nameTwice(durable.place())
	l.mu.Lock()
	if err != nil {
		err = l.uncertain(err)
		l.poison(err)
	} else {
		l.named = durable.end
	}
	l.giveSync()
	l.handOver()
	l.checkQuiet()
	return err
}

// nameTwice writes a slot and syncs it, then the other one. The syncing role is
// held.
func (s *slots) nameTwice(durable frame.Place) error {
	for range 2 {
		if err := s.name(durable); err != nil {
			return err
		}
		if err := s.file.Sync(); err != nil {
			return fmt.Errorf("sync slots: %w", err)
		}
		s.synced()
	}
	return nil
}

// dropped is the stretch of whole pages below a floor.
func (l *Log) droppedPages() (from, to int64) {
	from = l.geo.HeaderArea()
	return from, max(l.geo.PageStart(l.oldest().end), from)
}

// punch frees what lies below the floor, which two slots on disk name.
func (l *Log) punch() error {
	from, to := l.droppedPages()
	if to == from {
		return nil
	}
	if err := l.file.Punch(from, to-from); err != nil {
		return fmt.Errorf("free the dropped pages: %w", err)
	}
	return nil
}
