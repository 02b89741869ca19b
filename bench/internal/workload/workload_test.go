package workload_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/tidemark-log/tidemark/bench"
	"github.com/tidemark-log/tidemark/bench/internal/device"
	"github.com/tidemark-log/tidemark/bench/internal/report"
	"github.com/tidemark-log/tidemark/bench/internal/workload"
)

// TestMain lets the test program be its own child, as tmbench is.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == workload.ChildArg {
		if err := workload.RunChild(os.Args[2], os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// setting is one as small as can be, with the peers named.
func setting(t *testing.T, peers ...string) *workload.Setting {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	_, counter, err := device.Under(dir)
	if err != nil {
		t.Fatal(err)
	}
	s := &workload.Setting{
		Dir: dir, FileSystem: "native", Counter: counter, Rounds: 2, Slice: time.Millisecond,
		Budget: time.Second, Shrink: 256, Document: &report.Document{}, Log: t.Logf, Self: self,
	}
	for _, p := range bench.Peers() {
		if slices.Contains(peers, p.Name) {
			s.Peers = append(s.Peers, p)
		}
	}
	return s
}

// Every workload measures every peer that takes part, in every round, and
// leaves nothing behind. How fast is not its business here.
func TestWorkloads(t *testing.T) {
	peers := []string{"raw grow", "raw prewritten", "raw leader", "raw page read", "etcd wal", "prometheus wlog", "bbolt", bench.TidemarkName}
	for _, w := range workload.All() {
		t.Run(w.Name, func(t *testing.T) {
			t.Parallel()
			s := setting(t, peers...)
			if err := w.Run(context.Background(), s); err != nil {
				t.Fatal(err)
			}
			for _, skip := range s.Document.Skipped {
				if skip.Workload != "W9" { // there may be no device to count
					t.Errorf("skipped: %+v", skip)
				}
			}
			checkFigures(t, s)
			if left, err := os.ReadDir(s.Dir); err != nil || len(left) > 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
}

func checkFigures(t *testing.T, s *workload.Setting) {
	t.Helper()
	if len(s.Document.Figures) == 0 {
		t.Error("no figures")
	}
	for _, f := range s.Document.Figures {
		if len(f.Rounds) != s.Rounds {
			t.Errorf("%s %s %s %s: %d rounds, want %d", f.Workload, f.Variant, f.Peer, f.Metric, len(f.Rounds), s.Rounds)
		}
		if f.Unit == "" {
			t.Errorf("%s: no unit", f.Metric)
		}
	}
}

// failing is a store that fails at its third commit.
type failing struct {
	bench.Store
	commits int
}

func (f *failing) Commit([][]byte) error {
	if f.commits++; f.commits > 2 {
		return fmt.Errorf("disk on fire")
	}
	return nil
}

func (*failing) Close() error { return nil }

// A peer that fails is left out and says why; the others go on.
func TestCommits_PeerFails(t *testing.T) {
	s := setting(t, "raw grow")
	s.Peers = append(s.Peers, bench.Peer{
		Name: "failing", Open: func(bench.Options) (bench.Store, error) { return &failing{}, nil },
	})
	w := workload.All()[0]
	if err := w.Run(context.Background(), s); err != nil {
		t.Fatal(err)
	}
	if len(s.Document.Skipped) == 0 || s.Document.Skipped[0].Peer != "failing" {
		t.Errorf("skipped %+v", s.Document.Skipped)
	}
	c := report.Case{Workload: "W1", Variant: "256 B", FileSystem: "native"}
	if f := s.Document.Find(c, "raw grow", report.Rate); f == nil || len(f.Rounds) != s.Rounds {
		t.Errorf("the other peer: %+v", f)
	}
}

func TestRun_Cancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := workload.All()[0].Run(ctx, setting(t, "raw grow")); err == nil {
		t.Error("no error")
	}
}
