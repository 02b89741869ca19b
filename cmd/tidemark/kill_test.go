package main

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"
)

// TestKill_C47_C49 kills append with SIGKILL in mid-write, again and again, and
// compares what it had acknowledged with what the log then holds: contents,
// not counts. After each death the log is read, then written by the next.
func TestKill_C47_C49(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		flags []string
		group int
	}{
		{"single lines", nil, 1},
		{"groups", []string{"--group", "7"}, 7},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			path := newPath(t)
			commits := 0 // that the log holds
			for round := range 6 {
				acked := killInFlow(t, path, commits, tc.group, 20+30*round, tc.flags)
				commits = checkCommits(t, path, acked, tc.group)
			}
			if s := tidemark(t, "", "stat", path).want(t, 0); !strings.Contains(s.out, "epoch") {
				t.Error(s.out)
			}
		})
	}
}

// lineOf is the content of a line of a commit, of a length that varies.
func lineOf(revision, line int) string {
	return fmt.Sprintf("commit %d line %d %s", revision, line, strings.Repeat("~", revision*97%2000))
}

// killInFlow feeds append with the commits after the head, kills it after some
// acknowledgements and returns the last one that came out of its pipe.
func killInFlow(t *testing.T, path string, head, group, after int, flags []string) int {
	t.Helper()
	p := start(t, append([]string{"append", path, "--ack"}, flags...)...)
	fed := make(chan struct{})
	go func() {
		defer close(fed)
		w := bufio.NewWriter(p.in)
		for revision := head + 1; ; revision++ {
			for line := range group {
				if _, err := fmt.Fprintln(w, lineOf(revision, line)); err != nil {
					return
				}
			}
		}
	}()
	for i := range after {
		p.hear(strconv.Itoa(head + i + 1))
	}
	if err := p.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	last := head + after
	for {
		line, err := p.out.ReadString('\n')
		if err == io.EOF {
			break // a number that was cut is no acknowledgement
		}
		if err != nil {
			t.Fatal(err)
		}
		if last++; line != strconv.Itoa(last)+"\n" {
			t.Fatalf("acknowledged %q behind %d", line, last-1)
		}
	}
	_ = p.Wait() // killed
	<-fed
	return last
}

// checkCommits fails unless the log holds whole commits, all that were
// acknowledged among them, and returns how many.
func checkCommits(t *testing.T, path string, acked, group int) int {
	t.Helper()
	r := tidemark(t, "", "cat", path).want(t, 0)
	lines := strings.Split(strings.TrimSuffix(r.out, "\n"), "\n")
	commits := len(lines) / group
	if len(lines)%group != 0 || commits < acked {
		t.Fatalf("%d lines in commits of %d, %d commits were acknowledged", len(lines), group, acked)
	}
	for i, line := range lines {
		if want := lineOf(i/group+1, i%group); line != want {
			t.Fatalf("line %d is %q, want %q", i+1, line, want)
		}
	}
	return commits
}
