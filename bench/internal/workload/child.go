package workload

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/tidemark-log/tidemark/bench"
)

// ChildArg is the first argument of this program when it runs as a child of
// itself; the second is a task.
const ChildArg = "child"

// task is what a child does. It ends when its standard input does, so that it
// never outlives its parent.
type task struct {
	Kind    string // "fill" or "follow"
	Peer    string
	Options bench.Options
	Records int
}

// ready is what a child prints when it has done what its parent waits for.
const ready = "ready"

// RunChild performs a task given as JSON and reports on out.
func RunChild(text string, in io.Reader, out io.Writer) error {
	var t task
	if err := json.Unmarshal([]byte(text), &t); err != nil {
		return fmt.Errorf("child task: %w", err)
	}
	peers := bench.Peers()
	i := slices.IndexFunc(peers, func(p bench.Peer) bool { return p.Name == t.Peer })
	if i < 0 {
		return fmt.Errorf("child task: no peer %q", t.Peer)
	}
	go func() {
		_, _ = io.Copy(io.Discard, in) // ends when the parent does, however
		os.Exit(0)
	}()
	switch t.Kind {
	case "fill":
		return t.fill(peers[i], out)
	case "follow":
		return t.follow(peers[i], out)
	}
	return fmt.Errorf("child task: unknown kind %q", t.Kind)
}

// fill adds records, makes them durable, says so, and goes on committing until
// it is killed.
func (t task) fill(p bench.Peer, out io.Writer) error {
	store, err := p.Open(t.Options)
	if err != nil {
		return err
	}
	w := sized{recordSize: t.Options.RecordSize, group: t.Options.Group, records: t.Records}
	if err := fill(store, w); err != nil {
		return err
	}
	if _, err := fmt.Fprintln(out, ready); err != nil {
		return err
	}
	more := groups(1, t.Options.Group, t.Options.RecordSize)
	for {
		if err := store.Commit(more[0]); err != nil {
			return err
		}
	}
}

// follow notes when each record appears and prints the times, one a line, when
// it has seen all.
func (t task) follow(p bench.Peer, out io.Writer) error {
	seen := make([]int64, 0, t.Records)
	first := true
	err := p.Follow(t.Options, func(record []byte) bool {
		if first { // committed before this child was started
			first = false
			fmt.Fprintln(out, ready)
			return true
		}
		if n := binary.LittleEndian.Uint64(record); n != uint64(len(seen)+1) {
			fmt.Fprintf(os.Stderr, "followed record %d, want %d\n", n, len(seen)+1)
			return false
		}
		seen = append(seen, monotonic())
		return len(seen) < t.Records
	})
	if err != nil {
		return err
	}
	w := bufio.NewWriter(out)
	for _, at := range seen {
		fmt.Fprintln(w, at)
	}
	return w.Flush()
}

// monotonic is a clock all processes share, in nanoseconds.
func monotonic() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic("internal error: " + err.Error())
	}
	return ts.Nano()
}

// child is a running child.
type child struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	lines *bufio.Scanner
}

// start runs a task in a child and waits until it says that it is ready.
func (s *Setting) start(ctx context.Context, t task) (*child, error) {
	text, err := json.Marshal(t)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, s.Self, ChildArg, string(text))
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	c := &child{cmd: cmd, stdin: stdin, lines: bufio.NewScanner(stdout)}
	if !c.lines.Scan() || c.lines.Text() != ready {
		return nil, errors.Join(fmt.Errorf("child %s %s: not ready", t.Kind, t.Peer), c.kill())
	}
	return c, nil
}

// kill ends the child as a crash of its process would, with no goodbye.
func (c *child) kill() error {
	err := c.cmd.Process.Kill()
	_ = c.cmd.Wait() // says that it was killed; closes the pipes
	return err
}
