package main

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestTorture runs one round of every act on the disk of the tests.
func TestTorture(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	out := tidemark(t, "", "torture", dir, "--time", "1ms", "--json").want(t, 0).out
	var c tortureCounts
	if err := json.Unmarshal([]byte(out), &c); err != nil {
		t.Fatal(err, out)
	}
	if c.Kills != killsPerRound || c.Acknowledged < c.Kills || c.Lost != 0 || c.Flips != flipsPerRound || c.FlipsFound != c.Flips ||
		c.Cuts != cutsPerRound || c.Compared == 0 || c.Violation != "" || c.Kept != "" {
		t.Errorf("%+v", c)
	}
	if runtime.GOOS == "linux" && (c.Full != 1 || c.Skipped != "") {
		t.Errorf("a full disk was not provoked: %+v", c)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left over: %v, %v", left, err)
	}
	text := tidemark(t, "", "torture", dir, "--time", "1ms").want(t, 0).out
	if !strings.HasPrefix(text, "Every promise held") {
		t.Error(text)
	}
}

func TestTorture_Usage(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{}, {"a", "b"}, {t.TempDir(), "--time", "soon"}, {filepath.Join(t.TempDir(), "absent")}} {
		tidemark(t, "", append([]string{"torture"}, args...)...).want(t, exitUsage)
	}
}

// TestTorture_NoticesWhatItMust: what is lost, changed or added counts as a
// broken promise.
func TestTorture_NoticesWhatItMust(t *testing.T) {
	t.Parallel()
	handed := &torturedLog{seed: 7}
	lines := make([]string, 12)
	for i := range lines {
		lines[i] = string(handed.line(i))
	}
	for _, tc := range []struct {
		name    string
		there   []string
		acked   uint64
		isFound bool
	}{
		{"all there", lines, 4, false},
		{"more than was acknowledged", lines, 2, false},
		{"one commit lost", lines[:9], 4, true},
		{"all lost", lines[:3], 4, true},
		{"a commit in part", lines[:11], 3, true},
		{"one line changed", append(append([]string{}, lines[:5]...), append([]string{"other"}, lines[6:]...)...), 4, true},
		{"two lines exchanged", append([]string{lines[1], lines[0]}, lines[2:]...), 4, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			path := newPath(t)
			tidemark(t, joined(tc.there), "append", path, "--group", "3").want(t, 0)
			l := &torturedLog{t: &torture{rng: rand.New(rand.NewPCG(1, 1))}, path: path, seed: 7}
			if err := l.reopen(tc.acked, 3); errors.Is(err, errBroken) != tc.isFound {
				t.Errorf("found: %v, want %v", err, tc.isFound)
			}
		})
	}
	t.Run("a flip that verify would miss", func(t *testing.T) {
		t.Parallel()
		path := newLog(t, string(handed.line(0)))
		l := &torturedLog{t: &torture{}, path: path, seed: 7}
		if err := l.flipped(path, 1, 1); !errors.Is(err, errBroken) {
			t.Error(err)
		}
	})
	t.Run("a copy that opens short", func(t *testing.T) {
		t.Parallel()
		path := newLog(t, string(handed.line(0)))
		l := &torturedLog{t: &torture{}, path: path, seed: 7, ends: []int{1, 2}}
		if err := l.cutOff(path, 1); !errors.Is(err, errBroken) {
			t.Error(err)
		}
	})
}

// TestSignal_LeavesNothing: what works in a directory of its own removes it when
// a signal stops it.
func TestSignal_LeavesNothing(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		skip(t, "signals of Unix")
	}
	for _, args := range [][]string{{"bench", "DIR", "--time", "1h"}, {"torture", "DIR", "--time", "1h"}, {"demo", "--dir", "DIR"}} {
		t.Run(args[0], func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for i := range args {
				args[i] = strings.ReplaceAll(args[i], "DIR", dir)
			}
			p := start(t, args...)
			look, late := time.NewTicker(time.Millisecond), time.After(patience)
			defer look.Stop()
			for made := []string(nil); len(made) == 0; {
				select {
				case <-look.C:
				case <-late:
					t.Fatal("it does not begin")
				}
				var err error
				made, err = filepath.Glob(filepath.Join(dir, "*", "*"))
				must(t, err)
			}
			must(t, p.Process.Signal(syscall.SIGTERM))
			p.end().want(t, 143, "its directory was removed")
			if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
				t.Errorf("left over: %v, %v", left, err)
			}
		})
	}
}
