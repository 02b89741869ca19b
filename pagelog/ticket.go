package pagelog

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/tidemark-log/tidemark/checkpoint"
	"github.com/tidemark-log/tidemark/frame"
)

// Ticket follows one submitted batch to its outcome.
type Ticket struct {
	log   *Log
	body  []byte             // records of the commit, which nobody changes while it is in flight
	count int                // records; 0: no commit, but a sync or one of what follows
	later bool               // acknowledged before it is durable
	blob  *blob              // a checkpoint is asked for
	piece []byte             // body of a group with a piece of an index run, see placed
	swap  *levels            // the index from now on; a checkpoint follows
	floor *frame.Place       // the retention floor from now on; a checkpoint follows
	keys  []checkpoint.Entry // of the commit, without its revision
	wake  chan struct{}      // holds at most one signal: look again

	state   atomic.Int32
	waiting bool // somebody is in Wait; guarded by log.mu
	end     int64
	placed  int64 // where the group of a piece starts
	commit  Commit
	err     error
}

// States of a ticket.
const (
	ticketQueued  = iota // may still be withdrawn
	ticketTaken          // the log works on it; it may go back to the queue once
	ticketSettled        // commit and err are final
)

func (t *Ticket) inFlight() bool { return t.state.Load() != ticketSettled }

// completeOnly reports whether the ticket is acknowledged before it is
// durable.
func (t *Ticket) completeOnly() bool { return t.later }

// size returns the bytes the ticket takes in the file, without page headers.
func (t *Ticket) size() int64 {
	if t.count == 0 {
		return int64(len(t.piece))
	}
	return frame.GroupHeaderSize + int64(len(t.body))
}

// Submit hands a batch to the log and returns at once. The batch cannot be
// committed again until the ticket is settled, but it may be Reset: the log
// keeps what was submitted. The ticket tells the outcome, also if nobody waits
// for it, and for ever. Batches take effect in the order in which they were
// submitted.
func (l *Log) Submit(b *Batch) *Ticket {
	t := l.ticket(b, nil)
	err := t.err
	if err == nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		err = l.enqueueLocked(context.Background(), t) // from here on others may settle it
	}
	if err != nil {
		t.err = err
		t.state.Store(ticketSettled)
		return t
	}
	l.handOver()
	return t
}

// Commit writes a batch as one commit and returns when it is durable, or
// complete if the batch asks for no more.
//
// There are three outcomes. Nil: the commit is there and stays. ErrUncertain:
// it is unknown whether it is; unless only the wait ended with its context,
// the log is poisoned. Any other error: the commit was rejected, nothing
// changed, and trying again is safe. A context that ends before the log takes
// the batch is a rejection.
func (l *Log) Commit(ctx context.Context, b *Batch) (Commit, error) {
	t := l.ticket(b, b.own)
	if t.err != nil {
		return Commit{}, t.err
	}
	b.own = t // nobody else has it: the next commit may use it again
	return l.do(ctx, t)
}

// do puts a ticket in line and waits for its outcome.
func (l *Log) do(ctx context.Context, t *Ticket) (Commit, error) {
	l.mu.Lock()
	if err := l.enqueueLocked(ctx, t); err != nil {
		l.mu.Unlock()
		t.state.Store(ticketSettled)
		return Commit{}, err
	}
	return t.wait(ctx)
}

// ticket returns a ticket for the batch: t, if it is given, used again. It
// holds the batch's bytes, not the batch, so that what becomes of the batch
// cannot change a commit in flight.
func (l *Log) ticket(b *Batch, t *Ticket) *Ticket {
	if b.ticket != nil && b.ticket.inFlight() {
		return &Ticket{log: l, err: fmt.Errorf("batch is still being committed: wait for its ticket, or Reset it")}
	}
	if err := b.check(l.id); err != nil {
		return &Ticket{log: l, err: err}
	}
	if t == nil {
		t = &Ticket{wake: make(chan struct{}, 1)}
	}
	b.ticket = t
	t.log, t.body, t.count, t.later = l, b.body, b.count, b.CompleteOnly
	t.err, t.commit, t.waiting = nil, Commit{}, false
	t.keys = b.hashKeys(l.id.IndexKey)
	select { // a signal left over from the last commit
	case <-t.wake:
	default:
	}
	t.state.Store(ticketQueued)
	return t
}

// enqueue puts a ticket in line. Its errors are rejections.
func (l *Log) enqueue(ctx context.Context, t *Ticket) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.enqueueLocked(ctx, t)
}

func (l *Log) enqueueLocked(ctx context.Context, t *Ticket) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if t.wake == nil {
		t.wake = make(chan struct{}, 1)
	}
	switch {
	case l.closing:
		return ErrClosed
	case l.cause != nil:
		return l.poisonedLocked()
	}
	l.queue.push(t)
	return nil
}

// Wait returns the outcome of the commit as Commit does. If ctx ends first and
// the log has not taken the batch yet, the batch is withdrawn and the error is
// the context's: a rejection. If the log has taken it, only the wait ends: the
// error is the context's and ErrUncertain, and a later Wait tells the outcome.
// One goroutine at a time may wait.
func (t *Ticket) Wait(ctx context.Context) (Commit, error) {
	if !t.inFlight() {
		return t.commit, t.err
	}
	t.log.mu.Lock()
	return t.wait(ctx)
}

// wait takes part in the work until the ticket is settled. mu is held on entry
// and not on return.
func (t *Ticket) wait(ctx context.Context) (Commit, error) {
	l := t.log
	t.waiting = true
	for {
		l.work(t)
		l.mu.Unlock()
		var err error
		if t.inFlight() {
			err = t.woken(ctx)
		}
		if !t.inFlight() { // whoever settled it saw to the work that is left
			return t.commit, t.err
		}
		l.mu.Lock()
		if err != nil && t.inFlight() {
			err = l.abandon(t, err)
			l.mu.Unlock()
			return Commit{}, err
		}
	}
}

// woken returns nil after a signal, or the error of the context if it ended.
func (t *Ticket) woken(ctx context.Context) error {
	done := ctx.Done()
	if done == nil { // cheaper than a select
		<-t.wake
		return nil
	}
	select {
	case <-t.wake:
		return nil
	case <-done:
		return ctx.Err()
	}
}

// Done reports whether the outcome is known.
func (t *Ticket) Done() bool { return !t.inFlight() }

// abandon ends a wait early. Whoever leaves sees to it that the work goes on.
func (l *Log) abandon(t *Ticket, err error) error {
	t.waiting = false
	if t.state.Load() == ticketQueued {
		l.queue.remove(t)
		t.settle(Commit{}, err)
	} else {
		err = fmt.Errorf("%w: the wait for the commit ended: %w", ErrUncertain, err)
	}
	l.handOver()
	return err
}

// settle makes the outcome known. The log's mutex is held.
func (t *Ticket) settle(c Commit, err error) {
	t.commit, t.err = c, err
	t.state.Store(ticketSettled)
	t.signal()
}

// signal asks the waiter to look again.
func (t *Ticket) signal() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// queue is a first-in, first-out line of tickets that does not allocate in the
// steady state.
type queue struct {
	items []*Ticket
	head  int
}

func (q *queue) len() int { return len(q.items) - q.head }

func (q *queue) front() *Ticket { return q.items[q.head] }

func (q *queue) push(t *Ticket) {
	if q.head > 0 && len(q.items) == cap(q.items) {
		n := copy(q.items, q.items[q.head:])
		clear(q.items[n:])
		q.items, q.head = q.items[:n], 0
	}
	q.items = append(q.items, t)
}

func (q *queue) pop() *Ticket {
	t := q.items[q.head]
	q.items[q.head] = nil
	q.head++
	if q.head == len(q.items) {
		q.items, q.head = q.items[:0], 0
	}
	return t
}

// pushFront puts tickets before all others, in their order.
func (q *queue) pushFront(ts []*Ticket) {
	q.items = slices.Insert(q.items, q.head, ts...)
}

func (q *queue) remove(t *Ticket) {
	for i := q.head; i < len(q.items); i++ {
		if q.items[i] == t {
			q.items = append(q.items[:i], q.items[i+1:]...)
			return
		}
	}
}
