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
	if err := a.begin(ctx, op); err != nil {
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
	e, err := h.sign(ctx, op, s)
	if err != nil {
		return Envelope{}, err
	}
	l.envelope = e
	return e, nil
}

// Resume takes a suspension back before the run executes again: active at the
// next transition generation, durable on return; the envelope no longer
// verifies from then on. The run must stay still until Resume has returned nil.
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
	next := l.hold.successor(Active)
	next.transition++
	if err := l.hold.commit(ctx, op, next, nil); err != nil {
		return err
	}
	l.envelope = Envelope{}
	return nil
}

// Finish signs a terminal snapshot of the run and records the tombstone, which
// is durable on return, and closes the lease. The run can never be started,
// suspended or imported again; the envelope can be verified.
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
	e, err := l.hold.sign(ctx, op, s)
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
	l.envelope = Envelope{}
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

// sign records the claim of a snapshot and gives its envelope.
func (h *hold) sign(ctx context.Context, op string, s snapshot.Snapshot) (Envelope, error) {
	e := Envelope{head: headerOf(s), payload: s.Encoding()}
	next := h.successor(phaseOf(s.Lifecycle()))
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

// Token orders the leases of a run: whoever writes to the run's log under a
// token must be refused once a larger Generation of the same Instance was seen.
type Token struct {
	Run        [32]byte // SHA-256 of the run ID
	Instance   [16]byte // random at Start
	Generation uint64   // transition generation
}

// Token is the fencing token of the lease as it stands now.
func (l *Lease) Token() (Token, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return Token{}, fail("token", ErrClosed)
	}
	if l.hold.fate != nil {
		return Token{}, fail("token", l.hold.fate)
	}
	r := &l.hold.record
	return Token{Run: hashOf(r.runID), Instance: r.nonce, Generation: r.transition}, nil
}

// String redacts.
func (l *Lease) String() string { return "[lease]" }

// GoString redacts.
func (l *Lease) GoString() string { return "[lease]" }

// newLease hands a held, active run to its executor.
func newLease(a *Authority, h *hold) *Lease { return &Lease{a: a, hold: h} }
