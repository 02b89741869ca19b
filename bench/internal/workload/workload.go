// Package workload drives the peers: the same work for each, in rounds that
// take turns, so that whatever slows the machine slows all of them.
package workload

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tidemark-log/tidemark/bench"
	"github.com/tidemark-log/tidemark/bench/internal/device"
	"github.com/tidemark-log/tidemark/bench/internal/report"
)

// Setting is where a workload runs and how much of it.
type Setting struct {
	Dir        string           // existing directory for the stores
	FileSystem string           // name of the file system Dir is on
	Counter    device.Counter   // of the device under Dir
	Peers      []bench.Peer     // who takes part
	Rounds     int              // per case
	Slice      time.Duration    // how long a peer works in a round
	Budget     time.Duration    // after which a slow peer sits out further rounds
	Shrink     int64            // divides sizes; 1 for real runs
	Document   *report.Document // where figures go
	Log        func(format string, args ...any)
	Self       string // this program, for workloads that need other processes
}

// Workload is one of W1 to W12.
type Workload struct {
	Name  string
	Title string
	Loop  bool // also runs on the loop file systems
	Run   func(context.Context, *Setting) error
}

// All returns the workloads in order. W9, device bytes and flushes per commit,
// is taken in passing from W1, W2 and W4.
func All() []Workload {
	return []Workload{
		{"W1", "durable commit of one record of 256 B, one caller", true, runW1},
		{"W2", "durable commit of one record of 4 KiB and 64 KiB", true, runW2},
		{"W3", "1, 8, 64 and 256 concurrent callers", false, runW3},
		{"W4", "durable commit of 16 records of 256 B", true, runW4},
		{"W5", "append of 128 MiB, one sync at the end", false, runW5},
		{"W6", "replay of 256 MiB in groups of 16", false, runW6},
		{"W7", "random reads by number", false, runW7},
		{"W8", "opening after a kill and after a close", false, runW8},
		{"W10", "delay to a follower in another process", false, runW10},
		{"W11", "a thousand logs in one process", false, runW11},
		{"W12", "verification on two cores", false, runW12},
	}
}

// minRounds is how many rounds even a slow peer gets.
const minRounds = 3

// contestant is a peer in one case, with what it has shown so far.
type contestant struct {
	peer   bench.Peer
	store  bench.Store
	dir    string
	out    bool // failed, or used up its budget
	used   time.Duration
	series map[string][]float64 // rounds by metric
}

func (c *contestant) add(metric string, v float64) {
	c.series[metric] = append(c.series[metric], v)
}

// enter makes a contestant, with an empty directory, of every peer that takes
// part. keep may exclude some; nil excludes none.
func (s *Setting) enter(c report.Case, keep func(bench.Peer) bool) ([]*contestant, error) {
	var field []*contestant
	for _, p := range s.Peers {
		if !p.TakesPart(c.Workload) || keep != nil && !keep(p) {
			continue
		}
		dir := filepath.Join(s.caseDir(c), slug(p.Name))
		if err := remake(dir); err != nil {
			return nil, err
		}
		field = append(field, &contestant{peer: p, dir: dir, series: map[string][]float64{}})
	}
	return field, nil
}

// caseDir holds the stores of a case.
func (s *Setting) caseDir(c report.Case) string {
	return filepath.Join(s.Dir, slug(c.Workload+" "+c.Variant))
}

// remake makes dir an empty directory.
func remake(dir string) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	return os.MkdirAll(dir, 0o755)
}

// slug makes a name fit for a directory.
func slug(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, name)
}

// openAll opens the stores. A peer that cannot is left out, with its reason.
func (s *Setting) openAll(c report.Case, field []*contestant, o bench.Options) {
	for _, x := range field {
		o.Dir = x.dir
		var err error
		if x.store, err = x.peer.Open(o); err != nil {
			s.drop(c, x, fmt.Errorf("open: %w", err))
		}
	}
	settle(s.Dir)
}

// drop leaves a peer out of the rest of a case.
func (s *Setting) drop(c report.Case, x *contestant, err error) {
	x.out = true
	s.Log("%s %s: %s: %v", c.Workload, c.Variant, x.peer.Name, err)
	s.Document.Skip(c, x.peer.Name, err.Error())
}

// rounds lets every contestant work once per round, in an order that changes
// from round to round but is the same in every run.
func (s *Setting) rounds(ctx context.Context, c report.Case, field []*contestant, work func(*contestant) error) error {
	for round := range s.Rounds {
		rng := rand.New(rand.NewPCG(1, uint64(round)))
		for _, i := range rng.Perm(len(field)) {
			if err := ctx.Err(); err != nil {
				return err
			}
			x := field[i]
			if x.out || round >= minRounds && x.used > s.Budget {
				continue
			}
			start := time.Now()
			if err := work(x); err != nil {
				s.drop(c, x, err)
			}
			x.used += time.Since(start)
		}
	}
	return nil
}

// finish records what the contestants have shown and removes their stores.
func (s *Setting) finish(c report.Case, field []*contestant) error {
	for _, x := range field {
		for _, metric := range slices.Sorted(maps.Keys(x.series)) {
			s.Document.Add(c, x.peer.Name, metric, x.series[metric])
		}
		if x.store != nil {
			if err := x.store.Close(); err != nil {
				s.Log("%s %s: %s: close: %v", c.Workload, c.Variant, x.peer.Name, err)
			}
			x.store = nil
		}
	}
	err := os.RemoveAll(s.caseDir(c))
	settle(s.Dir)
	return err
}

// settle lets earlier work end before anything is timed: dirty pages are
// written out and freed memory is given back.
func settle(dir string) {
	if f, err := os.Open(dir); err == nil {
		_ = unix.Syncfs(int(f.Fd())) // only a courtesy to the next measurement
		_ = f.Close()
	}
	debug.FreeOSMemory()
}

// groups returns n groups of records, all different.
func groups(n, records, recordSize int) [][][]byte {
	all := make([][][]byte, n)
	for g := range all {
		all[g] = make([][]byte, records)
		for i := range all[g] {
			all[g][i] = bench.Record(make([]byte, recordSize), uint64(g*records+i+1))
		}
	}
	return all
}
