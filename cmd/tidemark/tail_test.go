package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestTail_EightFollowers_L41: eight processes that follow one writer print
// every commit once, in order, whenever they begin; those that ask for durable
// commits, too.
func TestTail_EightFollowers_L41(t *testing.T) {
	t.Parallel()
	for _, sync := range []string{"durable", "complete"} {
		path := newPath(t)
		tidemark(t, "", "create", path, "--page-size", "4K").want(t, 0)
		eight(t, path, sync)
	}
}

func eight(t *testing.T, path, sync string) {
	const commits = 1500
	w := start(t, "append", path, "--sync", sync, "--ack")
	feed := make(chan struct{})
	go func() {
		defer close(feed)
		in := bufio.NewWriter(w.in)
		for i := range commits {
			if _, err := fmt.Fprintln(in, lineOf(i+1, 0)); err != nil {
				return
			}
		}
		_ = in.Flush() // a writer that has gone is seen below
		_ = w.in.Close()
	}()
	var followers []*process
	acked := 0
	for f := range 8 {
		args := []string{"tail", path, "--follow", "--limit", strconv.Itoa(commits)}
		if f%2 == 1 {
			args = append(args, "--durable")
		}
		followers = append(followers, start(t, args...))
		for range 40 { // the next one begins when there is more
			acked++
			w.hear(strconv.Itoa(acked))
		}
	}
	for acked < commits {
		acked++
		w.hear(strconv.Itoa(acked))
	}
	<-feed
	w.end().want(t, 0)
	done := make(chan error, len(followers))
	for f, p := range followers {
		go func() {
			for i := range commits {
				if line, err := p.out.ReadString('\n'); line != lineOf(i+1, 0)+"\n" {
					done <- fmt.Errorf("follower %d: line %d is %.80q, %v", f, i+1, line, err)
					return
				}
			}
			done <- nil
		}()
	}
	for range followers {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range followers {
		p.end().want(t, 0).prints(t, "")
	}
}

// TestTail_DurableOnly_L44: what may still be lost is not printed with
// --durable, and is printed when it was synced.
func TestTail_DurableOnly_L44(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	tidemark(t, "", "create", path).want(t, 0)
	w := start(t, "append", path, "--sync", "complete", "--ack")
	w.say("a\nb\n")
	w.hear("1")
	w.hear("2")
	visible, durable := start(t, "tail", path, "--follow", "--limit", "3"), start(t, "tail", path, "--follow", "--durable", "--limit", "3")
	visible.hear("a")
	visible.hear("b")
	tidemark(t, "", "tail", path, "--durable").want(t, 0).prints(t, "")
	tidemark(t, "", "tail", path).want(t, 0).prints(t, "a\nb\n")
	w.say("c\n")
	w.hear("3")
	visible.hear("c")
	visible.end().want(t, 0)
	w.end().want(t, 0) // closing makes it durable
	for _, line := range []string{"a", "b", "c"} {
		durable.hear(line)
	}
	durable.end().want(t, 0)
}

// TestTail_FileUnderIt_L43_D13_D16: what becomes of the file under a follower
// ends it with a named error, never with a signal; with its cursor it then goes
// on only in the same history.
func TestTail_FileUnderIt_L43_D13_D16(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		change func(t *testing.T, path, backup string)
		code   int // of the follower
		says   string
		again  int // of one that goes on with its cursor
		why    string
	}{
		{"restored over it", overwrite, 5, "run the command again", 5, "beyond the head"},
		{"restored and written", func(t *testing.T, path, backup string) {
			overwrite(t, path, backup)
			tidemark(t, strings.Repeat("another history\n", 30), "append", path).want(t, 0)
		}, 5, "run the command again", 5, "another history"},
		{"renamed over it", func(t *testing.T, path, backup string) {
			if err := os.Rename(backup, path); err != nil {
				t.Error(err)
			}
		}, 2, "removed, replaced or shortened", 5, "beyond the head"},
		{"made anew", func(t *testing.T, path, _ string) {
			if err := os.Remove(path); err != nil {
				t.Error(err)
			}
			tidemark(t, joined(numbered(30)), "append", path).want(t, 0)
		}, 2, "removed, replaced or shortened", 5, "another log"},
		{"removed", func(t *testing.T, path, _ string) {
			if err := os.Remove(path); err != nil {
				t.Error(err)
			}
		}, 2, "removed, replaced or shortened", 2, "check the path"},
		{"cut to nothing", func(t *testing.T, path, _ string) {
			if err := os.Truncate(path, 0); err != nil {
				t.Error(err)
			}
		}, 2, "removed, replaced or shortened", 2, "not a Tidemark log"},
		{"cut in the middle", func(t *testing.T, path, _ string) {
			if err := os.Truncate(path, 17000); err != nil {
				t.Error(err)
			}
		}, 1, "", 1, "corrupt"},
		{"written on", func(t *testing.T, path, _ string) { tidemark(t, "11\n", "append", path).want(t, 0) }, 0, "", 0, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if runtime.GOOS == "windows" {
				skip(t, "an open file cannot be replaced here")
			}
			dir := t.TempDir()
			path, backup := filepath.Join(dir, "run.log"), filepath.Join(dir, "backup.log")
			tidemark(t, joined(numbered(5)), "append", path).want(t, 0)
			copyFile(t, path, backup)
			tidemark(t, joined(numbered(5)), "append", path).want(t, 0)
			cursor := statOf(t, path)["cursor"].(string)
			p := start(t, "tail", path, "--follow", "--limit", "11")
			for i := range 10 {
				p.hear(numbered(5)[i%5])
			}
			tc.change(t, path, backup)
			if tc.code == 0 {
				p.hear("11")
			}
			r := p.end().want(t, tc.code)
			if tc.says != "" && !strings.Contains(r.err, tc.says) {
				t.Errorf("says %s", r.err)
			}
			again := tidemark(t, "", "tail", path, "--after", cursor)
			again.want(t, tc.again)
			if !strings.Contains(again.err, tc.why) {
				t.Errorf("with the cursor: %s", again.err)
			}
		})
	}
}

// overwrite copies a file over another one, which stays the same file.
func overwrite(t *testing.T, path, from string) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Error(err)
		return
	}
	b := read(t, from)
	_, err = f.WriteAt(b, 0)
	if err := errors.Join(err, f.Truncate(int64(len(b))), f.Close()); err != nil {
		t.Error(err)
	}
}

// TestTail_IdleCost: a follower that has nothing to do takes less than a
// thousandth of a core, by the scheduler's own account of it.
func TestTail_IdleCost(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/proc/self/schedstat"); err != nil {
		skip(t, "the system does not say how long a process ran")
	}
	path := newPath(t)
	tidemark(t, "a\n"+strings.Repeat("x", 5<<20)+"\n", "append", path).want(t, 0)
	w := start(t, "append", path, "--ack") // keeps space reserved behind the head
	w.say(strings.Repeat("y", 1<<20) + "\n")
	w.hear("3")
	p := start(t, "tail", path, "--follow")
	for range 3 {
		if _, err := p.out.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	const span = 3 * time.Second
	timer := time.NewTimer(span)
	<-timer.C // it comes to rest
	ran := span
	for try := 0; try < 3 && ran > span/1000; try++ { // a machine in need of memory makes everything dear
		before := ranFor(t, p.Process.Pid)
		timer.Reset(span)
		<-timer.C
		ran = ranFor(t, p.Process.Pid) - before
		t.Logf("ran for %v of %v", ran, span)
	}
	if ran > span/1000 {
		t.Error("an idle follower takes more than a thousandth of a core")
	}
	p.interrupt()
	p.end().want(t, 130)
	w.end().want(t, 0)
}

// ranFor returns how long the threads of a process were on a processor.
func ranFor(t *testing.T, pid int) time.Duration {
	t.Helper()
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil || len(threads) == 0 {
		t.Fatal(threads, err)
	}
	var sum time.Duration
	for _, name := range threads {
		first, _, _ := strings.Cut(string(read(t, name)), " ")
		n, err := strconv.ParseInt(first, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		sum += time.Duration(n)
	}
	return sum
}
