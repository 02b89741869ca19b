package authority_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tidemark-log/tidemark/authority"
	"github.com/tidemark-log/tidemark/cursor"
	"github.com/tidemark-log/tidemark/pagelog"
	"github.com/tidemark-log/tidemark/snapshot"
)

// agent is a host of the smallest kind: its run is a log of events, and it has
// one tool.
type agent struct {
	dir   string            // holds the authority, the log and the envelope
	reach func(step string) // is told how far it got
}

var (
	components = []snapshot.Component{{Module: "example.org/agent", Version: "v1", Source: "h1"}}
	tools      = []snapshot.Definition{{Name: "read", Contract: []byte(`{"type":"object"}`)}}
	background = context.Background()
)

const run = "run-17"

func (h *agent) path(name string) string { return filepath.Join(h.dir, name) }

func (h *agent) open() (*authority.Authority, error) {
	return authority.Open(background, h.path("authority"), authority.Options{Create: true, AnyFileSystem: true})
}

// work executes the run up to an event: it opens the log under the lease's
// token, and the lease takes it.
func (h *agent) work(l *authority.Lease, last uint64) (*pagelog.Log, error) {
	token, err := l.Token()
	if err != nil {
		return nil, err
	}
	o := pagelog.Options{Fence: token, AllowAnyFileSystem: true}
	log, err := pagelog.Open(h.path("log"), o)
	if errors.Is(err, os.ErrNotExist) {
		log, err = pagelog.Create(h.path("log"), pagelog.CreateOptions{}, o)
	}
	if err != nil {
		return nil, err
	}
	next, err := l.Continue(log)
	for ; err == nil && next <= last; next++ {
		var b pagelog.Batch
		b.Add(pagelog.Record{Kind: 1, Data: fmt.Appendf(nil, "event %d", next)})
		_, err = log.Commit(background, &b)
	}
	return log, err
}

// first starts the run, executes three events and suspends it.
func (h *agent) first() error {
	a, err := h.open()
	if err != nil {
		return err
	}
	l, err := a.Start(background, run)
	if err != nil {
		return err
	}
	h.reach("started")
	log, err := h.work(l, 3)
	if err != nil {
		return err
	}
	plan, err := snapshot.NewPlan(components, "tools-1", "agent/1", tools)
	if err != nil {
		return err
	}
	s, err := snapshot.New(snapshot.State{
		RunID: run, Definition: "agent", Model: "model", TurnLimit: 9, Turns: 1,
		LastSequence: log.Head().Revision, Lifecycle: snapshot.Suspended, Plan: plan,
		Messages: []snapshot.Message{{ID: "m-1", Role: snapshot.User, Parts: []snapshot.Part{{Kind: snapshot.Text, Data: []byte("hello")}}}},
	})
	if err != nil {
		return err
	}
	e, err := l.Suspend(background, s)
	if err != nil {
		return err
	}
	if err := os.WriteFile(h.path("envelope"), e.Encoding(), 0o600); err != nil {
		return err
	}
	h.reach("suspended")
	return nil
}

// second takes the run over and executes two events more.
func (h *agent) second() error {
	a, err := h.open()
	if err != nil {
		return err
	}
	b, err := os.ReadFile(h.path("envelope"))
	if err != nil {
		return err
	}
	e, err := authority.ParseEnvelope(b)
	if err != nil {
		return err
	}
	l, err := authority.Takeover(background, a, e, h)
	if err != nil {
		return errors.Join(err, a.Close())
	}
	h.reach("active")
	log, err := h.work(l, 5)
	if err != nil {
		return err
	}
	h.reach("working")
	return errors.Join(log.Close(), l.Close(), a.Close())
}

func (h *agent) Compiled() ([]snapshot.Component, string) { return components, "agent/1" }

func (h *agent) LeaseTools(context.Context, string) (authority.Tools, error) { return h, nil }

func (h *agent) Definitions() []snapshot.Definition { return tools }

func (h *agent) Release() error { return nil }

// Prepare looks, with a reader of complete commits, whether the log is where the
// envelope says: no slot may have called the last ones durable yet.
func (h *agent) Prepare(_ context.Context, _ snapshot.Snapshot, at cursor.Cursor, _ authority.Tools) (authority.Kernel, error) {
	r, err := pagelog.OpenReader(h.path("log"), pagelog.ReaderOptions{AllowAnyFileSystem: true})
	if err != nil {
		return nil, err
	}
	head, err := r.Head()
	if err == nil && r.Cursor(head) != at {
		err = errors.New("the log is elsewhere")
	}
	h.reach("prepared")
	return h, errors.Join(err, r.Close())
}

// Commit comes after the claim was consumed.
func (h *agent) Commit(context.Context) error {
	h.reach("consumed")
	h.reach("committed")
	return nil
}

func (h *agent) Stop() error { return nil }

// child plays a side in a process of its own up to a step, and waits there to
// be killed.
func child(side, dir, step string) {
	h := &agent{dir: dir, reach: func(at string) {
		if at == step {
			fmt.Fprintln(os.Stderr, "reached")    // the test catches standard output
			_, _ = os.Stdin.Read(make([]byte, 1)) // until the kill
		}
	}}
	err := h.first
	if side == "second" {
		err = h.second
	}
	fmt.Fprintln(os.Stderr, "ended:", err())
}

// killedAt runs a side in a process and kills it when it has reached a step.
func killedAt(dir, side, step string) error {
	cmd := exec.Command(os.Args[0], "-test.run=^ExampleTakeover$", "-test.v=false")
	cmd.Env = append(os.Environ(), "TIDEMARK_EXAMPLE="+side+" "+step+" "+dir)
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	said, err := bufio.NewReader(out).ReadString('\n')
	if strings.TrimSpace(said) != "reached" {
		err = fmt.Errorf("%s said %q: %w", side, said, err)
	}
	err = errors.Join(err, cmd.Process.Kill())
	_ = cmd.Wait() // killed
	return err
}

// outcome is what a third process can do after the second was killed.
func outcome(dir string) string {
	h := &agent{dir: dir, reach: func(string) {}}
	err := h.second()
	if err == nil {
		r, err := pagelog.OpenReader(h.path("log"), pagelog.ReaderOptions{AllowAnyFileSystem: true})
		if err != nil {
			return err.Error()
		}
		head, err := r.Head()
		if err := errors.Join(err, r.Close()); err != nil {
			return err.Error()
		}
		return fmt.Sprint("taken over, events up to ", head.Revision)
	}
	a, openErr := h.open()
	if openErr != nil {
		return openErr.Error()
	}
	info, lookErr := a.Inspect(background, run)
	resolved := a.Resolve(background, run, snapshot.Failed)
	if err := errors.Join(lookErr, resolved, a.Close()); err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%v: %v; ended as failed", info.Phase, err)
}

// Two processes hand a run over, and one of them is killed at each point. What a
// third can do then is told by how far they got: up to the consuming the
// envelope can be imported again, after it never.
func ExampleTakeover() {
	if part := strings.SplitN(os.Getenv("TIDEMARK_EXAMPLE"), " ", 3); len(part) == 3 {
		child(part[0], part[2], part[1])
		os.Exit(0)
	}
	for _, step := range []string{"started", "suspended", "prepared", "consumed", "committed", "active", "working"} {
		dir, err := os.MkdirTemp("", "takeover")
		if err == nil {
			dir, err = filepath.EvalSymlinks(dir)
		}
		first := slices.Contains([]string{"started", "suspended"}, step)
		switch {
		case err != nil:
		case first:
			err = killedAt(dir, "first", step)
		default:
			err = errors.Join(killedAt(dir, "first", "suspended"), killedAt(dir, "second", step))
		}
		if err == nil && step == "started" { // there is no envelope yet
			err = os.WriteFile(filepath.Join(dir, "envelope"), nil, 0o600)
		}
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("killed when %s: %s\n", step, outcome(dir))
		if err := os.RemoveAll(dir); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// killed when started: active: authority: parse envelope: invalid argument; ended as failed
	// killed when suspended: taken over, events up to 5
	// killed when prepared: taken over, events up to 5
	// killed when consumed: importing: authority: verification failed; ended as failed
	// killed when committed: importing: authority: verification failed; ended as failed
	// killed when active: active: authority: verification failed; ended as failed
	// killed when working: active: authority: verification failed; ended as failed
}
