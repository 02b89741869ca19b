package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
)

// TestTail_FollowsThroughKills_L41_L43: a follower in another process sees
// every commit once, in order, while its writers are killed and come back.
func TestTail_FollowsThroughKills_L41_L43(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	tidemark(t, "", "create", path).want(t, 0)
	followers := []*process{
		start(t, "tail", path, "--follow"),
		start(t, "tail", path, "--follow", "--durable"),
	}
	commits := 0
	for round := range 5 {
		acked := killInFlow(t, path, commits, 1, 30+20*round, nil)
		commits = checkCommits(t, path, acked, 1)
	}
	// A durable follower sees the last one when somebody proved it.
	tidemark(t, lineOf(commits+1, 0)+"\n", "append", path).want(t, 0)
	commits++
	for _, p := range followers {
		for i := range commits {
			p.hear(lineOf(i+1, 0))
		}
		p.interrupt()
		p.end().want(t, 130).prints(t, "")
	}
}

// TestCat_BesideFastWriter_L41: readers that start at any moment see a prefix,
// and no damage where bytes are only in flight.
func TestCat_BesideFastWriter_L41(t *testing.T) {
	t.Parallel()
	for _, flags := range [][]string{nil, {"--sync", "complete"}, {"--group", "5"}} {
		path := newPath(t)
		w := start(t, append([]string{"append", path, "--ack"}, flags...)...)
		var feeding, listening sync.WaitGroup
		feeding.Go(func() {
			defer w.in.Close()
			for i := range 5000 {
				if _, err := fmt.Fprintln(w.in, lineOf(i+1, 0)); err != nil {
					return // the acknowledgements tell
				}
			}
		})
		w.hear("1")
		listening.Go(func() { _, _ = io.Copy(io.Discard, w.out) })
		seen := 0
		for range 5 {
			for _, args := range [][]string{{"cat", path}, {"tail", path, "--durable"}} {
				out := tidemark(t, "", args...).want(t, 0).out
				lines := 0
				for line := range strings.Lines(out) {
					if lines++; line != lineOf(lines, 0)+"\n" {
						t.Fatalf("%v: line %d is %q", args, lines, line)
					}
				}
				if args[0] == "cat" {
					if lines < max(seen, 1) {
						t.Errorf("%d lines, %d were seen before", lines, seen)
					}
					seen = lines
				}
			}
			tidemark(t, "", "stat", path).want(t, 0)
			tidemark(t, "", "verify", path).want(t, 0)
		}
		feeding.Wait()
		listening.Wait()
		w.end().want(t, 0)
	}
}
