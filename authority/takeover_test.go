package authority

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-log/tidemark/cursor"
	"github.com/tidemark-log/tidemark/snapshot"
)

// fakeHost writes down what it is asked, and fails where it is told to.
type fakeHost struct {
	t          *testing.T
	components []snapshot.Component
	compat     string
	tools      []snapshot.Definition
	fails      string
	calls      []string
	locked     func() bool // whether the run's locks are held
	at         cursor.Cursor
}

var errHost = errors.New("the host says no")

func (h *fakeHost) call(name string) error {
	h.calls = append(h.calls, name)
	if h.locked != nil && !h.locked() {
		h.t.Errorf("%s without the run's locks", name)
	}
	if name == h.fails {
		return errHost
	}
	return nil
}

func (h *fakeHost) Compiled() ([]snapshot.Component, string) { return h.components, h.compat }

func (h *fakeHost) LeaseTools(_ context.Context, plan string) (Tools, error) {
	return h, h.call("lease " + plan)
}

func (h *fakeHost) Prepare(_ context.Context, s snapshot.Snapshot, at cursor.Cursor, _ Tools) (Kernel, error) {
	h.at = at
	return h, h.call("prepare " + s.RunID())
}

func (h *fakeHost) Definitions() []snapshot.Definition { return h.tools }
func (h *fakeHost) Release() error                     { return h.call("release") }
func (h *fakeHost) Commit(context.Context) error       { return h.call("commit") }
func (h *fakeHost) Stop() error                        { return h.call("stop") }

// planned leaves a run suspended under a plan.
func planned(t *testing.T, w *world, compat string) Envelope {
	t.Helper()
	plan, err := snapshot.NewPlan([]snapshot.Component{{Module: "m", Version: "1", Source: "s"}}, "tools", compat,
		[]snapshot.Definition{{Name: "read", Contract: []byte("{}")}})
	must(t, err)
	state := snap(t, "run", 7, snapshot.Suspended).State()
	state.Plan = plan
	s, err := snapshot.New(state)
	must(t, err)
	p := w.boot()
	l, err := p.a.Start(ctx, "run")
	must(t, err)
	e, err := suspend(ctx, l, s)
	must(t, err)
	p.Kill()
	return e
}

func hostFor(t *testing.T) *fakeHost {
	return &fakeHost{
		t: t, components: []snapshot.Component{{Module: "m", Version: "1", Source: "s"}}, compat: "compat",
		tools: []snapshot.Definition{{Name: "read", Contract: []byte("{}")}},
	}
}

// R94, R97, R70, R71: the order of a takeover, and what is left after each of
// its steps failed: tools released, kernel stopped while the locks are held, and
// the envelope importable up to the consuming and never after it.
func TestR94_R97_Takeover(t *testing.T) {
	for name, tc := range map[string]struct {
		compat string // recorded; "-": none
		change func(h *fakeHost, p *process)
		want   error
		calls  string
		after  Phase
	}{
		"good": {calls: "lease tools, prepare run, commit", after: Active},
		"no compatibility identity": {
			compat: "-", change: func(h *fakeHost, _ *process) { h.compat = "" }, want: ErrPlan, calls: "", after: Suspended,
		},
		"other compatibility": {change: func(h *fakeHost, _ *process) { h.compat = "other" }, want: ErrPlan, calls: "", after: Suspended},
		"other component": {
			change: func(h *fakeHost, _ *process) { h.components[0].Version = "2" }, want: ErrPlan, calls: "", after: Suspended,
		},
		"unfit component": {
			change: func(h *fakeHost, _ *process) { h.components[0].Version = "" }, want: ErrInvalid, calls: "", after: Suspended,
		},
		"no tools": {
			change: func(h *fakeHost, _ *process) { h.fails = "lease tools" }, want: errHost, calls: "lease tools", after: Suspended,
		},
		"changed tool": {
			change: func(h *fakeHost, _ *process) { h.tools[0].Contract = []byte("[]") },
			want:   ErrPlan, calls: "lease tools, release", after: Suspended,
		},
		"one tool more": {
			change: func(h *fakeHost, _ *process) { h.tools = append(h.tools, snapshot.Definition{Name: "write"}) },
			want:   ErrPlan, calls: "lease tools, release", after: Suspended,
		},
		"prepare fails": {
			change: func(h *fakeHost, _ *process) { h.fails = "prepare run" },
			want:   errHost, calls: "lease tools, prepare run, release", after: Suspended,
		},
		"consume fails": {
			change: func(_ *fakeHost, p *process) { p.failCall("read", 9, eio) }, // staging: nothing changed
			want:   ErrUnavailable, calls: "lease tools, prepare run, stop", after: Suspended,
		},
		"consume uncertain": {
			change: func(_ *fakeHost, p *process) { p.failCall("datasync", 2, eio) },
			want:   ErrUncertain, calls: "lease tools, prepare run, stop",
		},
		"commit fails": {
			change: func(h *fakeHost, _ *process) { h.fails = "commit" },
			want:   ErrUncertain, calls: "lease tools, prepare run, commit, stop", after: Importing,
		},
		"activate uncertain": {
			change: func(_ *fakeHost, p *process) { p.failCall("datasync", 3, eio) },
			want:   ErrUncertain, calls: "lease tools, prepare run, commit, stop",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			recorded := "compat"
			if tc.compat == "-" {
				recorded = ""
			}
			e := planned(t, w, recorded)
			p, other := w.boot(), w.boot()
			h := hostFor(t)
			h.locked = func() bool {
				info, err := other.a.Inspect(ctx, "run")
				return err == nil && info.Held
			}
			if name == "consume fails" {
				// The keyring is looked at between preparing and consuming.
				before := h.locked
				h.locked = func() bool {
					p.Plan(nil)
					p.failCall("statat", 1, eio)
					return before()
				}
			} else if tc.change != nil {
				tc.change(h, p)
			}
			l, err := Takeover(ctx, p.a, e, h)
			p.Plan(nil)
			if tc.want == nil {
				must(t, err)
				if h.at.Revision != 7 || h.at.Log != (cursor.LogID{1}) {
					t.Errorf("the host was sent to %v", h.at)
				}
			} else {
				wantErr(t, err, tc.want)
				if l != nil {
					t.Error("a lease with an error")
				}
			}
			if got := strings.Join(h.calls, ", "); got != tc.calls {
				t.Errorf("asked %q, want %q", got, tc.calls)
			}
			if h.locked = nil; tc.want != nil && slices.Contains(h.calls, "commit") != (name == "commit fails" || name == "activate uncertain") {
				t.Error(h.calls)
			}
			p.Kill()
			if got := w.phase("run"); tc.after != 0 && got != tc.after {
				t.Errorf("the run is %v, want %v", got, tc.after)
			}
			_, err = Takeover(ctx, other.a, e, hostFor(t))
			switch {
			case recorded == "":
				wantErr(t, err, ErrPlan)
			case tc.after == Suspended:
				must(t, err)
			default:
				wantErr(t, err, ErrVerification)
			}
		})
	}
}

// R94, R57: a forged envelope costs the host nothing: it is not asked.
func TestR94_ForgeriesReachNoHost(t *testing.T) {
	w := newWorld(t)
	e := planned(t, w, "compat")
	e.claim.MAC[0] ^= 1
	h := hostFor(t)
	_, err := Takeover(ctx, w.boot().a, e, h)
	wantErr(t, err, ErrVerification)
	if len(h.calls) > 0 {
		t.Error(h.calls)
	}
}

// R76: a context that ends after the consuming no longer stops the takeover.
func TestR94_CancelledAfterConsumeGoesOn(t *testing.T) {
	w := newWorld(t)
	e := planned(t, w, "compat")
	p := w.boot()
	late, cancel := context.WithCancel(ctx)
	h := hostFor(t)
	h.locked = func() bool {
		if slices.Contains(h.calls, "commit") {
			cancel()
		}
		return true
	}
	l, err := Takeover(late, p.a, e, h)
	must(t, err)
	must(t, l.Close())
	early, cancel := context.WithCancel(ctx)
	cancel()
	_, err = Takeover(early, p.a, e, hostFor(t))
	wantErr(t, err, context.Canceled)
}

// R99: a state with a mutation whose outcome is unknown, or an interaction that
// nobody answered, becomes no snapshot, so no host can be made to replay it.
func TestR99_UncertainMutationsAreNotCarried(t *testing.T) {
	state := snap(t, "run", 7, snapshot.Suspended).State()
	for _, change := range []func(*snapshot.State){
		func(s *snapshot.State) { s.Unresolved = []string{"write file"} },
		func(s *snapshot.State) { s.Pending = []string{"may I?"} },
	} {
		s := state
		change(&s)
		if _, err := snapshot.New(s); !errors.Is(err, snapshot.ErrActive) {
			t.Errorf("got %v", err)
		}
	}
}
