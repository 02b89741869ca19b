package authority

import (
	"context"
	"sync"

	"github.com/tidemark-log/tidemark/snapshot"
)

// Import is the transaction that takes a suspended run over from a process that
// is gone: prepare, Consume, let the kernel commit, Activate. It holds the
// run's locks from the beginning to Activate, Abort or Close, one of which must
// follow. Its methods may run concurrently.
type Import struct {
	a *Authority

	mu       sync.Mutex
	hold     *hold // nil once the lease has it
	snapshot snapshot.Snapshot
	consumed bool // Consume has returned nil
	closed   bool
}

// PrepareImport believes an envelope and takes its run, and writes nothing.
// ErrVerification: the envelope is not one this authority signed, or its claim
// was consumed, taken back or followed by another. ErrBusy: the owner lives.
// ErrState: the envelope is terminal, or the run is damaged. A forged envelope
// is refused before its payload is looked at and before anything is locked, and
// learns nothing about which runs exist.
func (a *Authority) PrepareImport(ctx context.Context, e Envelope) (*Import, error) {
	const op = "prepare import"
	if e.check() != nil {
		return nil, fail(op, ErrInvalid)
	}
	if err := a.beginChange(ctx, op); err != nil {
		return nil, err
	}
	i, err := a.prepare(ctx, op, &e)
	if err != nil {
		a.finish()
		return nil, err
	}
	return i, nil
}

func (a *Authority) prepare(ctx context.Context, op string, e *Envelope) (*Import, error) {
	s, raw, err := a.believe(op, e)
	if err != nil {
		return nil, err
	}
	if s.Lifecycle().Terminal() {
		return nil, fail(op, ErrState)
	}
	name := nameOf(e.head.runID)
	if a.fenced(name) {
		return nil, fail(op, ErrUncertain)
	}
	if err := live(ctx, op); err != nil {
		return nil, err
	}
	h, err := a.take(name, a.findLock)
	if err != nil {
		return nil, failed(op, ErrUnavailable, err)
	}
	sound, err := h.load()
	switch {
	case err != nil:
		err = failed(op, ErrUnavailable, err)
	case !sound:
		err = damaged(op)
	case h.raw != raw: // someone was faster between the look and the lock
		err = ErrVerification
	}
	if err != nil {
		h.drop()
		return nil, err
	}
	return &Import{a: a, hold: h, snapshot: s}, nil
}

// Snapshot is the verified content of the envelope, until Consume is attempted:
// a consumed claim verifies nothing any more.
func (i *Import) Snapshot() (snapshot.Snapshot, error) {
	const op = "import snapshot"
	i.mu.Lock()
	defer i.mu.Unlock()
	if err := i.ready(op); err != nil {
		return snapshot.Snapshot{}, err
	}
	if i.consumed {
		return snapshot.Snapshot{}, fail(op, ErrState)
	}
	return i.snapshot, nil
}

// Consume uses the claim up: importing at the next transition generation,
// durable on return. Only then may the kernel commit the prepared run. An error
// other than ErrUncertain has changed nothing and Consume may be repeated.
func (i *Import) Consume(ctx context.Context) error {
	const op = "consume"
	i.mu.Lock()
	defer i.mu.Unlock()
	if err := i.ready(op); err != nil {
		return err
	}
	if i.consumed {
		return fail(op, ErrState)
	}
	if err := live(ctx, op); err != nil {
		return err
	}
	next := i.hold.successor(Importing)
	next.transition++
	if err := i.hold.commit(ctx, op, next, nil); err != nil {
		return err
	}
	i.consumed = true
	i.snapshot = snapshot.Snapshot{}
	return nil
}

// Activate records the run as active, durable on return, and moves its locks to
// the lease, without which nothing may execute. When it is uncertain the locks
// stay held until Abort or Close: the host stops and joins the committed run
// first.
func (i *Import) Activate(ctx context.Context) (*Lease, error) {
	const op = "activate"
	i.mu.Lock()
	defer i.mu.Unlock()
	if err := i.ready(op); err != nil {
		return nil, err
	}
	if !i.consumed {
		return nil, fail(op, ErrState)
	}
	if err := live(ctx, op); err != nil {
		return nil, err
	}
	if err := i.hold.commit(ctx, op, i.hold.successor(Active), nil); err != nil {
		return nil, err
	}
	l := newLease(i.a, i.hold)
	i.hold, i.closed = nil, true
	return l, nil
}

// Abort gives the run back. Before Consume nothing has happened and the claim
// stays importable; after it the first Abort or Close is ErrUncertain and the
// run is never touched again by this process.
func (i *Import) Abort() error { return i.end("abort") }

// Close is Abort; after Activate it does nothing.
func (i *Import) Close() error { return i.end("close import") }

func (i *Import) end(op string) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.closed {
		return nil
	}
	i.closed = true
	h := i.hold
	uncertain := i.consumed || h.fate == ErrUncertain
	if uncertain {
		i.a.fences.add(i.a.fenceOf(h.name))
	}
	h.drop()
	i.a.finish()
	if uncertain {
		return fail(op, ErrUncertain)
	}
	return nil
}

func (i *Import) ready(op string) error {
	switch {
	case i.closed:
		return fail(op, ErrClosed)
	case i.hold.fate != nil:
		return fail(op, i.hold.fate)
	}
	return nil
}

// String redacts.
func (i *Import) String() string { return "[import]" }

// GoString redacts.
func (i *Import) GoString() string { return "[import]" }
