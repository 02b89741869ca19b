package authority

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"math"
	"sync"

	"github.com/tidemark-log/tidemark/snapshot"
)

// Lease is the held right to execute one run. No other lease of the run exists
// in any process while it is open. Its methods may run concurrently; it must be
// closed.
type Lease struct {
	a *Authority

	mu       sync.Mutex
	hold     *hold
	envelope Envelope // of the suspension the run is in; zero otherwise
	log      Log      // the run's, under the present token; nil: none was taken
	closed   bool
}

// Start takes a run nobody has ever started and records it as active; that is
// durable on return. A run ID is 1 to 128 bytes of trimmed UTF-8 without
// controls and is never used twice: ErrState if any record of it exists.
// ErrBusy: somebody holds it. ErrCapacity: the quota of runs is reached.
func (a *Authority) Start(ctx context.Context, runID string) (*Lease, error) {
	const op = "start"
	if snapshot.CheckRunID(runID) != nil {
		return nil, fail(op, ErrInvalid)
	}
	if err := a.beginChange(ctx, op); err != nil {
		return nil, err
	}
	h, err := a.startRun(ctx, op, runID)
	if err != nil {
		a.finish()
		return nil, err
	}
	return newLease(a, h), nil
}

func (a *Authority) startRun(ctx context.Context, op, runID string) (*hold, error) {
	name := nameOf(runID)
	if a.fenced(name) {
		return nil, fail(op, ErrUncertain)
	}
	if err := a.admit(op); err != nil {
		return nil, err
	}
	h, err := a.take(name, a.newLock)
	if err != nil {
		return nil, failed(op, ErrUnavailable, err)
	}
	if err := h.unused(op); err != nil {
		h.drop()
		return nil, err
	}
	first := record{phase: Active, sequence: 1, transition: 1, runID: runID}
	if _, err := io.ReadFull(a.random, first.nonce[:]); err != nil {
		h.drop()
		return nil, failed(op, ErrUnavailable, err)
	}
	h.fresh = true
	if err := h.commit(ctx, op, first, nil); err != nil {
		h.drop()
		return nil, err
	}
	return h, nil
}

// unused proves that the run was never started: no state file, and no witness
// of one that has been taken away.
func (h *hold) unused(op string) error {
	_, err := h.a.dir.Lookup(h.name.state())
	if err == nil {
		return fail(op, ErrState)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return failed(op, ErrUnavailable, err)
	}
	mark, err := h.mark()
	if err != nil {
		return failed(op, ErrUnavailable, err)
	}
	present := false
	err = h.a.withKeys(func(r *ring) error {
		_, present = parseWitness(mark, r.witnessKey())
		return nil
	})
	if err != nil {
		return failed(op, ErrUnavailable, err)
	}
	if present {
		return damaged(op)
	}
	return nil
}

// Suspend signs a suspended snapshot of the run and records the claim; that is
// durable on return, and the envelope can be imported once the lease is closed
// or its process dead. The lease stays held. The same snapshot again gives the
// same envelope and writes nothing; another one is ErrState until Resume. The
// last sequence of a run never decreases: ErrInvalid.
//
// The snapshot's last sequence must be the head of the log that Continue took,
// complete and durable, with nothing behind it; the claim is bound to this
// point. ErrLog: it is not, and nothing was signed. The run commits nothing more
// until Resume.
func (l *Lease) Suspend(ctx context.Context, s snapshot.Snapshot) (Envelope, error) {
	const op = "suspend"
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.ready(ctx, op); err != nil {
		return Envelope{}, err
	}
	h := l.hold
	if s.Lifecycle() != snapshot.Suspended || !h.accepts(s) {
		return Envelope{}, fail(op, ErrInvalid)
	}
	if h.record.phase == Suspended {
		if l.envelope.head.same(headerOf(s)) {
			return l.envelope, nil
		}
		return Envelope{}, fail(op, ErrState)
	}
	if h.record.transition == math.MaxUint64 {
		return Envelope{}, fail(op, ErrCapacity) // it could never be resumed
	}
	at, err := h.bind(op, l.log, s.LastSequence())
	if err != nil {
		return Envelope{}, err
	}
	e, err := h.sign(ctx, op, s, at)
	if err != nil {
		return Envelope{}, err
	}
	l.envelope = e
	return e, nil
}

// Resume takes a suspension back before the run executes again: active at the
// next transition generation, durable on return; the envelope no longer
// verifies from then on. The run must stay still until Resume has returned nil.
// Its log is then closed, opened under the new Token and taken with Continue.
// ErrLog: the log went on while the run was suspended.
func (l *Lease) Resume(ctx context.Context) error {
	const op = "resume"
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.ready(ctx, op); err != nil {
		return err
	}
	if l.hold.record.phase != Suspended {
		return fail(op, ErrState)
	}
	if l.log != nil { // where it is taken again, it must not have gone on
		at, err := l.hold.boundary(op, l.log)
		if err == nil && at != l.hold.record.position {
			err = notTheLog(op, "position")
		}
		if err != nil {
			return err
		}
	}
	next := l.hold.successor(Active)
	next.transition++
	if err := l.hold.commit(ctx, op, next, nil); err != nil {
		return err
	}
	l.envelope, l.log = Envelope{}, nil
	return nil
}

// Finish signs a terminal snapshot of the run and records the tombstone, which
// is durable on return, and closes the lease. The run can never be started,
// suspended or imported again; the envelope can be verified. The log is asked
// as Suspend asks it.
func (l *Lease) Finish(ctx context.Context, s snapshot.Snapshot) (Envelope, error) {
	const op = "finish"
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.ready(ctx, op); err != nil {
		return Envelope{}, err
	}
	if !s.Lifecycle().Terminal() || !l.hold.accepts(s) {
		return Envelope{}, fail(op, ErrInvalid)
	}
	at, err := l.hold.bind(op, l.log, s.LastSequence())
	if err != nil {
		return Envelope{}, err
	}
	e, err := l.hold.sign(ctx, op, s, at)
	if err != nil {
		return Envelope{}, err
	}
	l.release()
	return e, nil
}

// Close gives the run up without a record: a suspended run can be imported, an
// active one is orphaned. It returns ErrUncertain, the first time, if the
// outcome of an operation is uncertain; the run is released all the same.
func (l *Lease) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	l.release()
	if l.hold.fate == ErrUncertain {
		return fail("close lease", ErrUncertain)
	}
	return nil
}

func (l *Lease) release() {
	l.closed = true
	l.envelope, l.log = Envelope{}, nil
	l.hold.drop()
	l.a.finish()
}

func (l *Lease) ready(ctx context.Context, op string) error {
	switch {
	case l.closed:
		return fail(op, ErrClosed)
	case l.hold.fate != nil:
		return fail(op, l.hold.fate)
	}
	return live(ctx, op)
}

// accepts reports whether a snapshot is of this run and not older than what the
// run has already signed.
func (h *hold) accepts(s snapshot.Snapshot) bool {
	return s.RunID() == h.record.runID && s.LastSequence() >= h.record.claim.sequence
}

// sign records the claim of a snapshot, bound to a point of the run's log, and
// gives its envelope.
func (h *hold) sign(ctx context.Context, op string, s snapshot.Snapshot, at position) (Envelope, error) {
	e := Envelope{head: headerOf(s), payload: s.Encoding()}
	next := h.successor(phaseOf(s.Lifecycle()))
	next.position = at
	err := h.commit(ctx, op, next, func(r *ring, next *record) {
		mac, _ := r.claimMAC(next.generation, next.transition, e.head) // the primary is always known
		e.claim = Claim{Scope: r.scope, Generation: next.generation, MAC: mac}
		next.claim = recordClaim{
			lifecycle:  e.head.lifecycle,
			sequence:   e.head.sequence,
			generation: next.generation,
			format:     e.head.format,
			payload:    e.head.payload,
			mac:        mac,
		}
	})
	if err != nil {
		return Envelope{}, err
	}
	return e, nil
}

// String redacts.
func (l *Lease) String() string { return "[lease]" }

// GoString redacts.
func (l *Lease) GoString() string { return "[lease]" }

// newLease hands a held, active run to its executor.
func newLease(a *Authority, h *hold) *Lease { return &Lease{a: a, hold: h} }
