package authority

import (
	"bytes"
	"context"
	"errors"
	"math"
	"testing"

	"github.com/tidemark-log/tidemark/snapshot"
)

// The whole life on one machine: R32, R35, R36, R40, R41, R63, R65, R66, R95.
func TestR32_Life(t *testing.T) {
	w := newWorld(t)
	p := w.boot()
	l, err := p.a.Start(ctx, "run")
	must(t, err)
	if got := l.hold.record; got.phase != Active || got.transition != 1 || got.sequence != 1 {
		t.Fatalf("after Start: %+v", got)
	}
	e1, err := suspend(ctx, l, snap(t, "run", 5, snapshot.Suspended))
	must(t, err)
	if _, err := p.a.Verify(ctx, e1); err != nil {
		t.Fatalf("R35: %v", err)
	}
	must(t, l.Resume(ctx))
	if _, err := p.a.Verify(ctx, e1); err != ErrVerification {
		t.Fatalf("R41: resumed claim: %v", err)
	}
	e2, err := suspend(ctx, l, snap(t, "run", 5, snapshot.Suspended))
	must(t, err)
	if e1.claim.MAC == e2.claim.MAC {
		t.Error("R55: the same payload at two suspensions has one claim")
	}
	q := w.boot()
	if _, err := q.a.PrepareImport(ctx, e2); !errors.Is(err, ErrBusy) {
		t.Fatalf("R29, R74: import of a held run: %v", err)
	}
	must(t, l.Close())
	i, err := q.a.PrepareImport(ctx, e2)
	must(t, err)
	if s, err := i.Snapshot(); err != nil || s.LastSequence() != 5 {
		t.Fatalf("snapshot: %v", err)
	}
	must(t, i.Consume(ctx))
	if got := i.hold.record; got.phase != Importing || got.transition != 3 || got.generation != 1 {
		t.Fatalf("R65: %+v", got)
	}
	if _, err := i.Snapshot(); !errors.Is(err, ErrState) {
		t.Errorf("R75: consumed: %v", err)
	}
	l2, err := i.Activate(ctx)
	must(t, err)
	if got := l2.hold.record; got.phase != Active || got.transition != 3 {
		t.Fatalf("R66: %+v", got)
	}
	must(t, i.Close())
	if _, err := p.a.Start(ctx, "run"); !errors.Is(err, ErrBusy) {
		t.Errorf("R31: %v", err)
	}
	done, err := finish(ctx, l2, snap(t, "run", 9, snapshot.Completed))
	must(t, err)
	if s, err := p.a.Verify(ctx, done); err != nil || s.Lifecycle() != snapshot.Completed {
		t.Errorf("R98: terminal envelope: %v", err)
	}
	if _, err := p.a.PrepareImport(ctx, done); !errors.Is(err, ErrState) {
		t.Errorf("R64: import of a terminal envelope: %v", err)
	}
	if _, err := p.a.Start(ctx, "run"); !errors.Is(err, ErrState) {
		t.Errorf("R33, R42: %v", err)
	}
}

// step is an operation of the state table against whatever holds the run.
type step struct {
	name string
	do   func(*holder) error
}

// holder is what a process has of one run.
type holder struct {
	t *testing.T
	p *process
	l *Lease
	i *Import
	e Envelope
}

var tableSteps = []step{
	{"start", func(h *holder) error { _, err := h.p.a.Start(ctx, "run"); return err }},
	{"suspend", func(h *holder) error {
		_, err := suspend(ctx, h.l, snap(h.t, "run", 7, snapshot.Suspended))
		return err
	}},
	{"suspend other", func(h *holder) error {
		_, err := suspend(ctx, h.l, snap(h.t, "run", 8, snapshot.Suspended))
		return err
	}},
	{"resume", func(h *holder) error { return h.l.Resume(ctx) }},
	{"finish", func(h *holder) error { _, err := finish(ctx, h.l, snap(h.t, "run", 9, snapshot.Failed)); return err }},
	{"prepare", func(h *holder) error { _, err := h.p.a.PrepareImport(ctx, h.e); return err }},
	{"resolve", func(h *holder) error { return h.p.a.Resolve(ctx, "run", snapshot.Cancelled) }},
}

// place brings a run to a row of the table, freshly.
func place(t *testing.T, at string) *holder {
	w := newWorld(t)
	h := &holder{t: t}
	if at != "none" {
		h.e = w.suspended("run")
	}
	h.p = w.boot()
	if at == "none" || at == "suspended, free" {
		return h
	}
	i, err := h.p.a.PrepareImport(ctx, h.e)
	must(t, err)
	h.i = i
	if at == "prepared" {
		return h
	}
	must(t, i.Consume(ctx))
	if at == "importing" {
		return h
	}
	if at == "importing, free" {
		h.p.Kill()
		h.p = w.boot()
		return h
	}
	h.l, err = i.Activate(ctx)
	must(t, err)
	switch at {
	case "active":
	case "active, free":
		must(t, h.l.Close())
	case "suspended":
		h.e, err = suspend(ctx, h.l, snap(t, "run", 7, snapshot.Suspended))
		must(t, err)
	case "finished":
		h.e, err = finish(ctx, h.l, snap(t, "run", 7, snapshot.Completed))
		must(t, err)
	default:
		t.Fatalf("no such place %q", at)
	}
	return h
}

// Every operation in every state: what it returns and where the run is after.
func TestR33_StateTable(t *testing.T) {
	none := Phase(0)
	for at, row := range map[string]map[string]struct {
		err   error
		phase Phase
	}{
		"none":            {"start": {nil, Active}, "resolve": {ErrState, none}},
		"suspended, free": {"start": {ErrState, Suspended}, "prepare": {nil, Suspended}, "resolve": {nil, Cancelled}},
		"prepared":        {"start": {ErrBusy, Suspended}, "prepare": {ErrBusy, Suspended}, "resolve": {ErrBusy, Suspended}},
		"importing":       {"start": {ErrBusy, Importing}, "prepare": {ErrVerification, Importing}, "resolve": {ErrBusy, Importing}},
		"importing, free": {"start": {ErrState, Importing}, "prepare": {ErrVerification, Importing}, "resolve": {nil, Cancelled}},
		"active": {
			"start": {ErrBusy, Active}, "prepare": {ErrVerification, Active}, "resolve": {ErrBusy, Active},
			"suspend": {nil, Suspended}, "resume": {ErrState, Active}, "finish": {nil, Failed},
		},
		"active, free": {
			"start": {ErrState, Active}, "prepare": {ErrVerification, Active}, "resolve": {nil, Cancelled},
			"suspend": {ErrClosed, Active}, "resume": {ErrClosed, Active}, "finish": {ErrClosed, Active},
		},
		"suspended": {
			"start": {ErrBusy, Suspended}, "prepare": {ErrBusy, Suspended}, "resolve": {ErrBusy, Suspended},
			"suspend": {nil, Suspended}, "suspend other": {ErrState, Suspended}, "resume": {nil, Active}, "finish": {nil, Failed},
		},
		"finished": {
			"start": {ErrState, Completed}, "prepare": {ErrState, Completed}, "resolve": {ErrState, Completed},
			"suspend": {ErrClosed, Completed}, "resume": {ErrClosed, Completed}, "finish": {ErrClosed, Completed},
		},
	} {
		for _, s := range tableSteps {
			want, ok := row[s.name]
			if !ok {
				continue
			}
			t.Run(at+"/"+s.name, func(t *testing.T) {
				h := place(t, at)
				if err := s.do(h); !errors.Is(err, want.err) || (want.err == nil && err != nil) {
					t.Fatalf("got %v, want %v", err, want.err)
				}
				info, err := h.p.a.Inspect(ctx, "run")
				if want.phase == none {
					wantErr(t, err, ErrState)
				} else if err != nil || info.Phase != want.phase {
					t.Errorf("then %v (%v), want %v", info.Phase, err, want.phase)
				}
			})
		}
	}
}

func TestR37_RepeatedSuspendIsIdempotentAndWritesNothing(t *testing.T) {
	w := newWorld(t)
	p := w.boot()
	l, err := p.a.Start(ctx, "run")
	must(t, err)
	s := snap(t, "run", 5, snapshot.Suspended)
	before := s.Encoding()
	e1, err := suspend(ctx, l, s)
	must(t, err)
	calls := p.Calls()
	e2, err := suspend(ctx, l, snap(t, "run", 5, snapshot.Suspended))
	must(t, err)
	if !bytes.Equal(e1.Encoding(), e2.Encoding()) || p.Calls() != calls {
		t.Errorf("not identical, or %d system calls", p.Calls()-calls)
	}
	if !bytes.Equal(before, s.Encoding()) {
		t.Error("R48: export changed the state")
	}
}

func TestR38_DifferingClaimRefusedWithoutAWrite(t *testing.T) {
	w := newWorld(t)
	p := w.boot()
	l, err := p.a.Start(ctx, "run")
	must(t, err)
	e, err := suspend(ctx, l, snap(t, "run", 5, snapshot.Suspended))
	must(t, err)
	calls := p.Calls()
	_, err = suspend(ctx, l, snap(t, "run", 6, snapshot.Suspended))
	wantErr(t, err, ErrState)
	if p.Calls() != calls {
		t.Error("the system was asked")
	}
	if _, err := p.a.Verify(ctx, e); err != nil {
		t.Errorf("first claim: %v", err)
	}
}

func TestR39_LastGenerationCannotSuspend(t *testing.T) {
	w := newWorld(t)
	p := w.boot()
	l, err := p.a.Start(ctx, "run")
	must(t, err)
	l.hold.record.transition = math.MaxUint64
	calls := p.Calls()
	_, err = suspend(ctx, l, snap(t, "run", 5, snapshot.Suspended))
	wantErr(t, err, ErrCapacity)
	if p.Calls() != calls {
		t.Error("the system was asked")
	}
}

func TestR43_TerminalFromActiveAndSuspended(t *testing.T) {
	for _, l := range []snapshot.Lifecycle{snapshot.Completed, snapshot.Failed, snapshot.Cancelled} {
		for _, at := range []string{"active", "suspended"} {
			h := place(t, at)
			e, err := finish(ctx, h.l, snap(t, "run", 7, l))
			must(t, err)
			if e.Lifecycle() != l {
				t.Errorf("%v", e.Lifecycle())
			}
			if at == "suspended" {
				if _, err := h.p.a.Verify(ctx, h.e); err != ErrVerification {
					t.Errorf("the suspension outlived the tombstone: %v", err)
				}
			}
			if _, err := h.p.a.Verify(ctx, e); err != nil {
				t.Errorf("terminal: %v", err)
			}
			must(t, h.l.Close())
		}
	}
}

func TestR113_SequenceNeverDecreases(t *testing.T) {
	w := newWorld(t)
	e := w.suspended("run") // sequence 7
	p := w.boot()
	i, err := p.a.PrepareImport(ctx, e)
	must(t, err)
	must(t, i.Consume(ctx))
	l, err := i.Activate(ctx)
	must(t, err)
	_, err = suspend(ctx, l, snap(t, "run", 6, snapshot.Suspended))
	wantErr(t, err, ErrInvalid)
	_, err = finish(ctx, l, snap(t, "run", 6, snapshot.Failed))
	wantErr(t, err, ErrInvalid)
	_, err = suspend(ctx, l, snap(t, "run", 7, snapshot.Suspended))
	must(t, err)
}

func TestR32_ArgumentsRefused(t *testing.T) {
	w := newWorld(t)
	p := w.boot()
	l, err := p.a.Start(ctx, "run")
	must(t, err)
	_, err = suspend(ctx, l, snap(t, "other", 5, snapshot.Suspended))
	wantErr(t, err, ErrInvalid)
	_, err = suspend(ctx, l, snap(t, "run", 5, snapshot.Failed))
	wantErr(t, err, ErrInvalid)
	_, err = finish(ctx, l, snap(t, "run", 5, snapshot.Suspended))
	wantErr(t, err, ErrInvalid)
	_, err = suspend(ctx, l, snapshot.Snapshot{})
	wantErr(t, err, ErrInvalid)
	_, err = p.a.Verify(ctx, Envelope{})
	wantErr(t, err, ErrInvalid)
	_, err = p.a.PrepareImport(ctx, Envelope{})
	wantErr(t, err, ErrInvalid)
	if b := (Envelope{}).Encoding(); b != nil {
		t.Error("R52: an unsigned envelope has an encoding")
	}
	wantErr(t, p.a.Resolve(ctx, "run", snapshot.Completed), ErrInvalid)
	wantErr(t, p.a.Resolve(ctx, "run", snapshot.Suspended), ErrInvalid)
}

// R67, R68, R70, R80: what Abort and Close say before and after Consume.
func TestR67_AbortBeforeAndAfterConsume(t *testing.T) {
	w := newWorld(t)
	e := w.suspended("run")
	p := w.boot()
	for range 3 {
		i, err := p.a.PrepareImport(ctx, e)
		must(t, err)
		must(t, i.Abort())
		must(t, i.Abort())
		must(t, i.Close())
		_, err = i.Activate(ctx)
		wantErr(t, err, ErrClosed)
	}
	i, err := p.a.PrepareImport(ctx, e)
	must(t, err)
	_, err = i.Activate(ctx)
	wantErr(t, err, ErrState)
	must(t, i.Consume(ctx))
	wantErr(t, i.Consume(ctx), ErrState)
	wantErr(t, i.Abort(), ErrUncertain)
	must(t, i.Abort())
	must(t, i.Close())
	if got := w.phase("run"); got != Importing {
		t.Errorf("R45: %v", got)
	}
	wantErr(t, p.a.Resolve(ctx, "run", snapshot.Failed), ErrUncertain) // R72
	q := w.boot()
	must(t, q.a.Resolve(ctx, "run", snapshot.Failed)) // another process may
}

// R76, R77: a context that ends before the writer leaves everything as it was,
// at the very last moment too.
func TestR76_CancelledBeforeTheWriterIsRetryable(t *testing.T) {
	for _, name := range []string{"suspend", "resume", "finish", "consume", "activate"} {
		t.Run(name, func(t *testing.T) {
			at := map[string]string{"suspend": "active", "resume": "suspended", "finish": "suspended", "consume": "prepared", "activate": "importing"}[name]
			h := place(t, at)
			do := func(ctx context.Context) (err error) {
				switch name {
				case "suspend":
					_, err = suspend(ctx, h.l, snap(t, "run", 7, snapshot.Suspended))
				case "resume":
					err = h.l.Resume(ctx)
				case "finish":
					_, err = finish(ctx, h.l, snap(t, "run", 7, snapshot.Failed))
				case "consume":
					err = h.i.Consume(ctx)
				case "activate":
					_, err = h.i.Activate(ctx)
				}
				return err
			}
			done, cancel := context.WithCancel(ctx)
			cancel()
			wantErr(t, do(done), context.Canceled)
			late, cancel := context.WithCancel(ctx)
			h.p.Plan(cancelAt("read", cancel)) // the last call before the writer
			err := do(late)
			h.p.Plan(nil)
			wantErr(t, err, context.Canceled)
			if errors.Is(err, ErrUncertain) {
				t.Error("R78: uncertain without a write")
			}
			must(t, do(ctx))
		})
	}
}

func TestR76_CancelledStartIsRetryable(t *testing.T) {
	w := newWorld(t)
	p := w.boot()
	late, cancel := context.WithCancel(ctx)
	p.Plan(cancelAt("sync", cancel)) // of the temporary file
	_, err := p.a.Start(late, "run")
	p.Plan(nil)
	wantErr(t, err, context.Canceled)
	l, err := p.a.Start(ctx, "run")
	must(t, err)
	must(t, l.Close())
}

func TestR78_FailureAfterTheWriterIsUncertainEvenIfCancelled(t *testing.T) {
	h := place(t, "active")
	late, cancel := context.WithCancel(ctx)
	h.p.Plan(cancelAndFail("datasync", cancel))
	_, err := suspend(late, h.l, snap(t, "run", 7, snapshot.Suspended))
	h.p.Plan(nil)
	wantErr(t, err, ErrUncertain)
	if errors.Is(err, context.Canceled) {
		t.Error("a context error for an unknown outcome")
	}
	wantErr(t, h.l.Resume(ctx), ErrUncertain) // R79
	_, err = finish(ctx, h.l, snap(t, "run", 9, snapshot.Failed))
	wantErr(t, err, ErrUncertain)
	_, err = h.l.Token()
	wantErr(t, err, ErrUncertain)
	wantErr(t, h.l.Close(), ErrUncertain) // R80
	must(t, h.l.Close())
}

// R69, R70: an uncertain Consume or Activate is final, and keeps the lock until
// the transaction is ended.
func TestR69_UncertainConsumeAndActivate(t *testing.T) {
	for _, at := range []string{"prepared", "importing"} {
		w := newWorld(t)
		e := w.suspended("run")
		p, q := w.boot(), w.boot()
		i, err := p.a.PrepareImport(ctx, e)
		must(t, err)
		if at == "importing" {
			must(t, i.Consume(ctx))
		}
		p.failCall("datasync", 1, eio)
		if at == "prepared" {
			err = i.Consume(ctx)
		} else {
			_, err = i.Activate(ctx)
		}
		p.Plan(nil)
		wantErr(t, err, ErrUncertain)
		wantErr(t, i.Consume(ctx), ErrUncertain)
		_, err = i.Activate(ctx)
		wantErr(t, err, ErrUncertain)
		_, err = i.Snapshot()
		wantErr(t, err, ErrUncertain)
		wantErr(t, q.a.Resolve(ctx, "run", snapshot.Failed), ErrBusy)
		wantErr(t, i.Close(), ErrUncertain)
		must(t, i.Close())
		must(t, q.a.Resolve(ctx, "run", snapshot.Failed))
	}
}
