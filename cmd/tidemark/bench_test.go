package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestBench: every line has a figure of the floor and of the log, and nothing is
// left behind.
func TestBench(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	out := tidemark(t, "", "bench", dir, "--time", "1ms", "--json").want(t, 0).out
	var r benchResult
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatal(err, out)
	}
	if len(r.Cases) != len(benchCases()) || r.Seconds <= 0 {
		t.Fatalf("%+v", r)
	}
	for _, c := range r.Cases {
		for _, f := range []benchFigure{c.Floor, c.Log} {
			if f.PerSecond <= 0 || f.Median <= 0 || f.P99 < f.Median || f.PerSecond*f.Median/1e6 > 4*float64(c.Callers) {
				t.Errorf("%s: %+v", c.Name, c)
			}
		}
		if c.Ratio <= 0 || c.Rounds != benchRounds {
			t.Errorf("%s: %+v", c.Name, c)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left over: %v, %v", left, err)
	}
	text := tidemark(t, "", "bench", dir, "--time", "1ms").want(t, 0).out
	if !strings.Contains(text, "of the floor") || strings.Count(text, "256 B") != 4 {
		t.Error(text)
	}
}

func TestBench_Usage(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{}, {"a", "b"}, {t.TempDir(), "--time", "soon"}, {filepath.Join(t.TempDir(), "absent")}} {
		tidemark(t, "", append([]string{"bench"}, args...)...).want(t, exitUsage)
	}
}

// TestBench_Settles: medians over rounds, and the ratio within its round.
func TestBench_Settles(t *testing.T) {
	t.Parallel()
	c := &benchCase{
		floor: []benchRound{{100, 10, 20}, {10, 100, 200}, {1000, 1, 2}},
		log:   []benchRound{{50, 20, 40}, {9, 110, 210}, {200, 5, 10}},
	}
	c.settle()
	if c.Ratio != 0.5 || c.Floor != (benchFigure{100, 10, 20}) || c.Log != (benchFigure{50, 20, 40}) || c.Rounds != 3 {
		t.Errorf("%+v", c)
	}
}
