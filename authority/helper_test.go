package authority

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/tidemark-log/tidemark/cursor"
	"github.com/tidemark-log/tidemark/internal/securedir"
	"github.com/tidemark-log/tidemark/pagelog"
	"github.com/tidemark-log/tidemark/snapshot"
)

// testPath is where the simulated machine keeps its authority.
const testPath = "/var/lib/user/authority"

var ctx = context.Background()

// snap is a snapshot of a run.
func snap(t testing.TB, runID string, sequence uint64, l snapshot.Lifecycle) snapshot.Snapshot {
	t.Helper()
	plan, err := snapshot.NewPlan(nil, "tools", "compat", nil)
	must(t, err)
	s, err := snapshot.New(snapshot.State{
		RunID: runID, Definition: "agent", Model: "model", TurnLimit: 9, Turns: 1,
		LastSequence: sequence, Lifecycle: l, Plan: plan,
		Messages: []snapshot.Message{{ID: "m", Role: snapshot.User, Parts: []snapshot.Part{{Kind: snapshot.Text, Data: []byte("hello")}}}},
	})
	must(t, err)
	return s
}

// fakeLog is a log that is where it should be.
type fakeLog struct {
	id            cursor.LogID
	base          cursor.Cursor
	fence         pagelog.Fence
	head, durable pagelog.Commit
}

func (f *fakeLog) LogID() cursor.LogID     { return f.id }
func (f *fakeLog) Base() cursor.Cursor     { return f.base }
func (f *fakeLog) Fence() pagelog.Fence    { return f.fence }
func (f *fakeLog) Head() pagelog.Commit    { return f.head }
func (f *fakeLog) Durable() pagelog.Commit { return f.durable }

// logAt is a log of the lease's, at a revision.
func logAt(fence pagelog.Fence, revision uint64) *fakeLog {
	c := pagelog.Commit{Revision: revision, Digest: cursor.Digest(revision * 7), Durable: true}
	return &fakeLog{id: cursor.LogID{1}, fence: fence, head: c, durable: c}
}

// ready gives a lease a log that is at a snapshot's boundary: for what is not
// about logs.
func ready(l *Lease, s snapshot.Snapshot) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.log = logAt(l.hold.record.fence(), s.LastSequence())
}

func suspend(ctx context.Context, l *Lease, s snapshot.Snapshot) (Envelope, error) {
	ready(l, s)
	return l.Suspend(ctx, s)
}

func finish(ctx context.Context, l *Lease, s snapshot.Snapshot) (Envelope, error) {
	ready(l, s)
	return l.Finish(ctx, s)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantErr(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("got %v, want %v", err, want)
	}
}

// world is a simulated machine with processes of one user.
type world struct {
	t         testing.TB
	sim       *securedir.Sim
	processes []*process
}

func newWorld(t testing.TB) *world {
	w := &world{t: t, sim: securedir.NewSim()}
	t.Cleanup(w.reap)
	return w
}

// reap frees what dead processes leave in this one: the memory of their keys.
func (w *world) reap() {
	for _, p := range w.processes {
		p.SimProcess.Kill()
		if p.a != nil {
			_ = p.a.teardown()
		}
	}
	w.processes = nil
}

// process is one simulated process: its system and its fences.
type process struct {
	*securedir.SimProcess
	env environment
	a   *Authority
}

// process starts one without opening anything.
func (w *world) process() *process {
	p := w.sim.Process(0, 0o022)
	out := &process{SimProcess: p, env: environment{sys: p, random: rand.Reader, fences: &fences{}}}
	w.processes = append(w.processes, out)
	return out
}

func (p *process) open() error {
	a, err := open(ctx, p.env, testPath, Options{Create: true})
	p.a = a
	return err
}

// boot starts a process and opens its authority.
func (w *world) boot() *process {
	w.t.Helper()
	p := w.process()
	must(w.t, p.open())
	return p
}

// suspended leaves a run suspended by a process that has died, and gives its
// envelope.
func (w *world) suspended(runID string) Envelope {
	w.t.Helper()
	p := w.boot()
	l, err := p.a.Start(ctx, runID)
	must(w.t, err)
	e, err := suspend(ctx, l, snap(w.t, runID, 7, snapshot.Suspended))
	must(w.t, err)
	p.Kill()
	return e
}

// phase is what a fresh process sees of a run; 0 for none.
func (w *world) phase(runID string) Phase {
	w.t.Helper()
	p := w.boot()
	defer p.Kill()
	info, err := p.a.Inspect(ctx, runID)
	if errors.Is(err, ErrState) {
		return 0
	}
	must(w.t, err)
	return info.Phase
}

// failCall makes the process fail the nth coming call of an operation.
func (p *process) failCall(op string, nth int, f securedir.Fault) {
	seen := 0
	p.Plan(func(c securedir.Call) securedir.Fault {
		if c.Op == op {
			if seen++; seen == nth {
				return f
			}
		}
		return securedir.Fault{}
	})
}

// tempAuthority opens an authority in a real directory.
func tempAuthority(t testing.TB) (*Authority, string) {
	t.Helper()
	dir := filepath.Join(tempDir(t), "authority")
	a, err := Open(ctx, dir, Options{Create: true})
	var e *Error
	if runtime.GOOS == "windows" && os.Getenv("WINEPREFIX") != "" && errors.As(err, &e) && e.Class == "unsafe" {
		skipCounted(t, "Wine keeps no access control lists")
	}
	must(t, err)
	t.Cleanup(func() { _ = a.Close() })
	return a, dir
}

// tempDir is t.TempDir without symbolic links in its path, for other users to
// reach.
func tempDir(t testing.TB) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	must(t, os.Chmod(filepath.Dir(dir), 0o755))
	return dir
}

func mustRoot(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		skipCounted(t, "needs root to become other users")
	}
}

// skipCounted skips, unless the run demands every layer.
func skipCounted(t testing.TB, why string) {
	t.Helper()
	if os.Getenv("REQUIRE_FAULTS") != "" {
		t.Fatal("REQUIRE_FAULTS: " + why)
	}
	t.Skip("counted skip: " + why)
}

var eio = securedir.Fault{Kind: securedir.FailBefore, Err: syscall.EIO}

// cancelAt ends a context when a call of an operation is about to be made.
func cancelAt(op string, cancel func()) func(securedir.Call) securedir.Fault {
	return func(c securedir.Call) securedir.Fault {
		if c.Op == op {
			cancel()
		}
		return securedir.Fault{}
	}
}

// cancelAndFail also fails the call.
func cancelAndFail(op string, cancel func()) func(securedir.Call) securedir.Fault {
	return func(c securedir.Call) securedir.Fault {
		if c.Op == op {
			cancel()
			return eio
		}
		return securedir.Fault{}
	}
}
