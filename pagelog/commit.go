package pagelog

import (
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"
	"time"

	"github.com/tidemark-log/tidemark/cursor"
	"github.com/tidemark-log/tidemark/frame"
	"github.com/tidemark-log/tidemark/internal/disk"
)

// How callers share one write and one sync.
//
// Goal: a lone caller pays for one positioned write and one sync in its own
// goroutine; many callers share both; nobody waits on a timer.
//
// There are two roles, each held by at most one goroutine at a time: writing
// (lay out groups and write them) and syncing (one sync of the file). Whoever
// waits for a ticket takes up what roles are free and needed (work), does that
// until its own ticket is settled, and then hands over to another waiter, or to
// a goroutine of the log's own if nobody waits for what is left (handOver).
//
// Invariants, under mu:
//
//   - Tickets are taken in the order of the queue, and that is the order of
//     revisions and of the file.
//   - A durable ticket is taken only when no sync runs; a complete-only one may
//     be written meanwhile. So at most one sync is in flight, and what it made
//     durable is what was written when it was issued.
//   - head moves only after the write returned, durable only after the sync
//     did. Neither moves once the log is poisoned.
//   - If there is work that may be done, somebody is doing it or was signalled.
//
// The simpler design, a goroutine per log that does all the work, costs a lone
// caller two hand-overs per commit and a thousand idle logs a thousand stacks.

// maxWrite bounds the bytes of groups that share one write.
const maxWrite = 1 << 20

// work does what may be done until own is settled, or, if own is nil, until
// nothing may be done. mu is held; it is released during I/O.
func (l *Log) work(own *Ticket) {
	for own == nil || own.inFlight() {
		switch {
		case l.canWrite():
			l.write()
		case l.canSync():
			l.sync()
		default:
			return
		}
	}
	l.handOver()
}

func (l *Log) canWrite() bool {
	if l.writing || l.cause != nil || l.queue.len() == 0 {
		return false
	}
	front := l.queue.front()
	if l.syncing && !front.completeOnly() {
		return false
	}
	return !l.awaitsSync()
}

// awaitsSync reports whether the next ticket waits for a sync, because what is
// not durable has reached its bound.
func (l *Log) awaitsSync() bool {
	return !l.writing && l.queue.len() > 0 && l.head.end != l.durable.end && !l.mayStayUnsynced(l.queue.front(), 0)
}

// mayStayUnsynced keeps the stretch that is complete and not durable within its
// bound: over it, a ticket waits for a sync. So does a durable one behind what a
// sync of the log's own would cover, or callers who submit and do not wait could
// put off the sync that others wait for. before is what the same write holds.
func (l *Log) mayStayUnsynced(t *Ticket, before int64) bool {
	bound := l.opts.MaxUnsynced
	if !t.completeOnly() {
		bound = min(bound, backgroundSync)
	}
	return l.head.end-l.durable.end+before+t.size() <= bound
}

func (l *Log) canSync() bool {
	return (l.want || l.awaitsSync()) && !l.syncing && l.waiting == 0 && l.cause == nil
}

// handOver sees to it that somebody does the work that may be done. mu is held.
func (l *Log) handOver() {
	if !l.canWrite() && !l.canSync() {
		return
	}
	for i := l.queue.head; i < len(l.queue.items); i++ {
		if t := l.queue.items[i]; t.waiting {
			t.signal()
			return
		}
	}
	for _, t := range l.unacked {
		if t.waiting {
			t.signal()
			return
		}
	}
	l.startAlone()
}

// startAlone starts the goroutine that does what nobody waits for. mu is held.
func (l *Log) startAlone() {
	if !l.running {
		l.running = true
		go l.workAlone()
	}
}

// workAlone does the work that nobody waits for.
func (l *Log) workAlone() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.canSync() {
		l.sync() // first: complete-only commits could go on for ever
	}
	l.work(nil)
	l.running = false
	l.handOver()
	l.checkQuiet()
}

// checkQuiet tells Close when nothing is under way any more. mu is held.
func (l *Log) checkQuiet() {
	idle := !l.writing && !l.syncing && (l.cause != nil || l.queue.len() == 0 && !l.want)
	if l.closing && idle && l.quiet != nil {
		select {
		case <-l.quiet:
		default:
			close(l.quiet)
		}
	}
}

// write takes tickets off the queue and writes them. mu is held on entry and
// return.
func (l *Log) write() {
	l.writing = true
	l.gather()
	l.take()
	batch, head, durableEnd := l.taken, l.head, l.durable.end
	if len(batch) == 0 { // withdrawn or poisoned meanwhile, or a sync began
		l.writing = false
		l.checkQuiet()
		return
	}
	l.mu.Unlock()
	next, checks, rejected, err := l.put(batch, head, durableEnd)
	l.mu.Lock()
	l.writing = false
	if rejected != nil || l.cause != nil || err != nil {
		l.indexer.forget()
	}
	switch {
	case rejected != nil && len(batch) > 1 && l.cause == nil:
		l.takeBack(batch)
	case rejected != nil:
		l.settleAll(batch, rejected)
	case l.cause != nil: // a sync failed meanwhile: nothing is adopted any more
		l.settleAll(batch, l.uncertain(l.cause))
	case err != nil:
		l.poison(err)
		l.settleAll(batch, l.uncertain(err))
	default:
		l.checks = checks
		l.made = append(l.made, checks.made...)
		l.checks.made = nil
		l.adoptKeys(next)
		l.written(batch, next)
	}
	clear(batch)
	l.checkQuiet()
}

// gather lets those whose commits were just acknowledged hand over their next
// ones, so that all callers share a sync and not every other half of them. It
// yields to goroutines that can run and waits for no clock: five times in vain,
// and the write goes out. Where others compute on all processors a yield costs
// their time slices; the next writes then go out at once. mu is held; it is
// released meanwhile.
func (l *Log) gather() {
	if l.expected > 0 && l.hurry > 0 {
		l.hurry--
		l.expected = 0
	}
	for vain := 0; vain < 5 && l.queue.len() < l.expected && !l.queue.front().completeOnly(); {
		before, began := l.queue.len(), time.Now()
		l.mu.Unlock()
		runtime.Gosched()
		l.mu.Lock()
		if time.Since(began) > slowYield {
			l.hurry = hurriedWrites
			break
		}
		if l.queue.len() == 0 || l.cause != nil {
			break // withdrawn, or poisoned
		}
		vain++
		if l.queue.len() > before {
			vain = 0
		}
	}
	l.expected = 0
}

// A yield of more than slowYield met goroutines that compute, and hurriedWrites
// writes do without.
const (
	slowYield     = 2 * time.Millisecond
	hurriedWrites = 4096
)

// take moves the tickets that may share the next write from the queue to
// l.taken.
func (l *Log) take() {
	l.taken = l.taken[:0]
	size := int64(0)
	for l.queue.len() > 0 {
		t := l.queue.front()
		if l.syncing && !t.completeOnly() {
			return
		}
		if len(l.taken) > 0 && (size+t.size() > maxWrite || !l.mayStayUnsynced(t, size)) {
			return
		}
		size += t.size()
		t.state.Store(ticketTaken)
		l.taken = append(l.taken, l.queue.pop())
		if l.alone > 0 {
			l.alone--
			return
		}
	}
}

// takeBack puts tickets that were rejected together back in line, to be written
// one by one: what did not fit was their sum, or one of them.
func (l *Log) takeBack(batch []*Ticket) {
	for _, t := range batch {
		t.state.Store(ticketQueued)
	}
	l.queue.pushFront(batch)
	l.alone = len(batch)
}

// put lays the groups of batch out behind head and writes them with one write.
// rejected is an error from before the first group byte; err is from after it.
func (l *Log) put(batch []*Ticket, head point, durableEnd int64) (next point, checks checkpoints, rejected, err error) {
	if err := l.fenced.mayWrite(); err != nil {
		return head, checks, nil, err
	}
	next, checks, rejected = l.prepare(batch, head, durableEnd)
	if rejected != nil && l.indexer.optional() { // what can wait must not be what does not fit
		l.indexer.forget()
		l.indexer.lean = true
		next, checks, rejected = l.prepare(batch, head, durableEnd)
		l.indexer.lean = false
	}
	if rejected != nil || next.end == head.end {
		return next, checks, rejected, nil // or nothing but syncs
	}
	b := l.builder
	if _, err := l.file.WriteAt(b.Bytes(), b.Offset()); err != nil {
		return next, checks, nil, fmt.Errorf("write: %w", err)
	}
	b.Trim(2 * maxWrite)
	if head.end == durableEnd && !slices.ContainsFunc(batch, (*Ticket).completeOnly) {
		return next, checks, nil, nil // the sync's acknowledgement asks for all that is new
	}
	return next, checks, nil, l.attached(l.space.reserved, head.last, next.last, &l.readback.writing)
}

// prepare lays the groups of batch out and sees to it that there is room for
// them. Its error is a rejection.
func (l *Log) prepare(batch []*Ticket, head point, durableEnd int64) (next point, checks checkpoints, err error) {
	next, checks = l.layOut(batch, head)
	if next.end == head.end {
		return next, checks, nil
	}
	if limit := int64(l.id.MaxSize); limit > 0 && l.geo.WriteEnd(next.end) > limit {
		return next, checks, fmt.Errorf("%w: the log would grow over its maximum size of %d bytes", ErrNoSpace, limit)
	}
	if checks.over {
		return next, checks, fmt.Errorf("%w: the checkpoint, with the list of index runs, is over %d bytes", ErrTooLarge, l.geo.MaxBody())
	}
	if next.rev > math.MaxInt64 {
		return next, checks, fmt.Errorf("%w: revision %d", ErrTooLarge, next.rev)
	}
	b := l.builder
	b.Seal(durableEnd)
	if err := l.space.reserve(b.Offset(), b.Offset()+int64(len(b.Bytes()))); err != nil {
		return next, checks, noSpace("reserve space", err)
	}
	return next, checks, nil
}

// layOut puts the groups of batch, and a checkpoint if one is due, into the
// builder and fills in what the tickets will say.
func (l *Log) layOut(batch []*Ticket, head point) (point, checkpoints) {
	l.builder.Reset(head.end, head.rev)
	l.indexer.begin()
	checks := l.checks
	now := l.env.Now()
	for _, t := range batch {
		start := l.geo.Start(head.end)
		switch {
		case t.count > 0:
			head = l.add(&head, t, now)
			l.indexer.add(t.keys, head.rev, start)
		case t.blob != nil:
			head = l.addCheckpoint(&checks, head, t.blob, now)
		case t.piece != nil:
			t.placed = start
			head = l.addDerived(head, t.piece, 1, now)
		case t.swap != nil:
			l.indexer.swap(l.index, t.swap)
			head = l.addCheckpoint(&checks, head, nil, now)
		case t.floor != nil:
			head = l.addFloor(&checks, head, *t.floor, now)
		}
		t.end = head.end
		t.commit = Commit{Revision: head.rev, Digest: cursor.Digest(head.digest), Count: t.count, Durable: !t.completeOnly()}
	}
	l.indexer.merges(l.index, l.placeIn(&head, now))
	if !l.indexer.lean && (checks.due(head, l.opts.CheckpointEvery) || l.indexer.due(l.index)) {
		l.indexer.extra = true
		head = l.addCheckpoint(&checks, head, nil, now)
	}
	return head, checks
}

// add lays out one commit.
func (l *Log) add(head *point, t *Ticket, now int64) point {
	h := frame.GroupHeader{
		Count: uint32(t.count), Revision: head.rev + 1, Body: int64(len(t.body)),
		Prev: head.digest, Epoch: head.epoch, Time: now,
	}
	h.Digest = h.ChainDigest(t.body)
	start := l.geo.Start(head.end)
	end := l.builder.Add(&h, t.body)
	return point{end: end, rev: h.Revision, digest: h.Digest, epoch: h.Epoch, last: last{start, h.Digest}}
}

// attached reports ErrReplaced if the file is no longer the one its name leads
// to, lost bytes below size, or no longer holds what it must: the newest group,
// and the one before what is about to be acknowledged, by whose digest all
// history before it is meant. It comes before every acknowledgement. buf is the
// role's own.
func (l *Log) attached(size int64, before, newest last, buf *readback) error {
	has, named, err := l.file.Named()
	switch {
	case err != nil:
		return err
	case !named:
		return fmt.Errorf("%w: its name no longer leads to it", ErrReplaced)
	case has < size:
		return fmt.Errorf("%w: it has %d bytes of %d", ErrReplaced, has, size)
	case before.start == 0:
		if err := l.stillIs(); err != nil || newest == before {
			return err
		}
		return l.stillHolds(buf, newest, newest)
	case newest.start-before.start <= int64(len(buf)-frame.GroupHeaderSize):
		return l.stillHolds(buf, before, newest) // one read for both
	}
	if err := l.stillHolds(buf, before, before); err != nil {
		return err
	}
	return l.stillHolds(buf, newest, newest)
}

// readback is room for the headers of two small groups that follow each other.
type readback [512]byte

// stillHolds reports ErrReplaced if the file lacks one of two groups that this
// writer wrote or recovered, or one and the same.
func (l *Log) stillHolds(buf *readback, a, b last) error {
	n, err := l.file.ReadAt(buf[:b.start-a.start+frame.GroupHeaderSize], a.start)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	for _, g := range [2]last{a, b} {
		if h, err := l.geo.DecodeGroup(buf[min(int(g.start-a.start), n):n], g.start); err != nil || h.Digest != g.digest {
			return fmt.Errorf("%w: other bytes were copied over its commit at offset %d", ErrReplaced, g.start)
		}
	}
	return nil
}

// stillIs reports ErrReplaced if neither copy of the identity is the log's.
func (l *Log) stillIs() error {
	buf := make([]byte, frame.IdentitySize)
	for _, off := range [2]int64{frame.IdentityOffset, frame.IdentityCopyOffset} {
		if _, err := l.file.ReadAt(buf, off); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if id, err := frame.DecodeIdentity(buf); err == nil && id.LogID == l.id.LogID && id.Salt == l.id.Salt {
			return nil
		}
	}
	return fmt.Errorf("%w: another file was copied over it", ErrReplaced)
}

// written adopts a write that returned. mu is held.
func (l *Log) written(batch []*Ticket, next point) {
	l.stats.wrote(next.end-l.head.end, len(batch))
	l.head = next
	for _, t := range batch {
		if t.completeOnly() {
			t.settle(t.commit, nil)
			continue
		}
		l.unacked = append(l.unacked, t)
		l.want = true
	}
	if l.closing { // Close made its plan before this write was done
		l.want = l.want || next.end > l.durable.end
	}
	if next.end-l.durable.end >= backgroundSync && !l.syncing {
		l.want = true
		l.startAlone()
	}
	l.notifyLocked()
	l.touch()
}

// sync makes durable what is written now. mu is held on entry and return.
func (l *Log) sync() {
	target, before := l.head, l.durable
	began := l.stats.begin()
	l.syncing, l.want = true, false
	size := l.space.size.Load()
	l.mu.Unlock()
	err := l.file.Sync()
	if err == nil {
		err = l.fenced.mayAcknowledge()
	}
	if err == nil {
		err = l.attached(size, before.last, target.last, &l.readback.syncing)
	}
	l.mu.Lock()
	if err != nil {
		l.poison(fmt.Errorf("sync: %w", err))
	} else if l.cause == nil {
		l.slots.synced()
		l.stats.synced(began)
		l.acknowledge(target)
		if l.nameCheckpoints(target) || target.end-before.end > slotSync || target.end-l.named > slotEvery {
			l.nameDurable()
		}
	}
	l.giveSync()
	l.checkQuiet()
}

// After a sync of more than slotSync bytes a slot names them, and after
// slotEvery since the last slot: between small syncs the next group says what is
// durable.
const (
	slotSync  = 256 << 10
	slotEvery = 1 << 20
)

// acknowledge makes target the durable end and settles who waited for it.
func (l *Log) acknowledge(target point) {
	l.durable = target
	left := l.unacked[:0]
	acked := 0
	for _, t := range l.unacked {
		if t.end <= target.end {
			t.settle(t.commit, nil)
			acked++
		} else {
			left = append(left, t)
		}
	}
	clear(l.unacked[len(left):])
	if l.expected = acked + l.queue.len(); l.expected == 1 {
		l.expected = 0 // a lone caller waits for nobody
	}
	l.unacked = left
	l.want = l.want || len(left) > 0
	l.notifyLocked()
	l.touch()
}

// nameDurable writes a slot that names the durable end. The syncing role is
// held, so no sync runs; mu is released during the write.
func (l *Log) nameDurable() {
	durable := l.durable
	l.slots.cur.Features = l.features
	l.mu.Unlock()
	err := l.slots.name(durable.place())
	l.mu.Lock()
	switch {
	case errors.Is(err, disk.ErrNoSpace):
		return // a copy-on-write file system is full: what is durable stays so, and a later slot says it
	case err != nil:
		l.poison(err)
		return
	}
	l.named = durable.end
	l.stats.Slots++
}

// touch puts off the slot that idleness brings.
func (l *Log) touch() {
	if l.idle != nil && !l.closing {
		l.idle.Reset(l.env.Idle)
	}
}

// onIdle writes a slot when nothing happened for a while, so that other
// processes see at once what is durable. It costs no sync.
func (l *Log) onIdle() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.syncing || l.closing || l.cause != nil || l.named == l.durable.end {
		return
	}
	l.syncing = true
	l.nameDurable()
	l.giveSync()
	l.handOver()
	l.checkQuiet()
}

// poison latches the first cause. From here on nothing is written. mu is held.
func (l *Log) poison(cause error) {
	if l.cause != nil {
		return
	}
	l.cause = cause
	if l.opts.Logger != nil {
		l.opts.Logger.Error("log poisoned", "durable", l.durable.rev, "cause", cause)
	}
	l.settleAll(l.unacked, l.uncertain(cause))
	l.unacked = nil
	for l.queue.len() > 0 {
		l.queue.pop().settle(Commit{}, l.poisonedLocked())
	}
	l.want = false
	l.notifyLocked()
}

func (l *Log) uncertain(cause error) error {
	if errors.Is(cause, disk.ErrNoSpace) {
		cause = fmt.Errorf("%w: %w", ErrNoSpace, cause)
	}
	return fmt.Errorf("%w: %w", ErrUncertain, cause)
}

func (l *Log) settleAll(batch []*Ticket, err error) {
	for _, t := range batch {
		t.settle(Commit{}, err)
	}
}
