package observer

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/tidemark-log/tidemark/cursor"
	"github.com/tidemark-log/tidemark/pagelog"
)

// TestMain makes the test binary an observer of its own where asked to: it
// prints the revision and the cursor of every commit, a line each.
func TestMain(m *testing.M) {
	path := os.Getenv("OBSERVE_LOG")
	if path == "" {
		os.Exit(m.Run())
	}
	if err := observe(path, os.Getenv("OBSERVE_AFTER"), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func observe(path, after string, out io.Writer) error {
	r, err := pagelog.OpenReader(path, pagelog.ReaderOptions{Durable: true})
	if err != nil {
		return err
	}
	at, err := cursor.Parse(after)
	if err != nil {
		return err
	}
	s, err := NewReaderHub(r, Options{RingBytes: 4 << 10}).Attach(context.Background(), Request{After: at})
	if err != nil {
		return err
	}
	for e, err := range s.Events(context.Background()) {
		if err != nil {
			return err
		}
		if e.Kind == Committed {
			if _, err := fmt.Fprintln(out, e.Commit.Revision, e.At); err != nil {
				return err
			}
		}
	}
	return nil
}

// TestProcess_KilledObserver_Q105_Q116_D21 covers D21: an observer in a process
// of its own is killed again and again while 500 commits are made, and comes
// back with the last cursor that it printed whole; nothing is lost or repeated.
func TestProcess_KilledObserver_Q105_Q116_D21(t *testing.T) {
	const total = 500
	w := newWorld(t, Options{})
	w.commit(1)
	at := w.attach(w.hub, Request{}).Cursor()
	at.Revision, at.Digest = 0, 0
	done := make(chan bool)
	go func() {
		defer close(done)
		for range (total - 1) / 4 {
			w.commit(4)
		}
		w.commit(total - 1 - (total-1)/4*4)
	}()
	var revs []uint64
	for last := at.String(); len(revs) < total; {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "OBSERVE_LOG="+w.path, "OBSERVE_AFTER="+last)
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines, upTo := bufio.NewReader(out), len(revs)+170
		for len(revs) < min(upTo, total) {
			line, err := lines.ReadString('\n')
			if err != nil {
				t.Fatalf("after %d commits: %v", len(revs), err)
			}
			rev, token, _ := strings.Cut(strings.TrimSpace(line), " ")
			n, err := strconv.ParseUint(rev, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			revs, last = append(revs, n), token
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // it was killed
	}
	<-done
	sequence(t, revs, 1, total)
}
