package workload

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync/atomic"

	"github.com/tidemark-log/tidemark/bench"
	"github.com/tidemark-log/tidemark/bench/internal/report"
	"github.com/tidemark-log/tidemark/bench/internal/stat"
)

const (
	manyLogs    = 1000
	manyRecord  = 256 // bytes
	manyCallers = 8
)

// runW11 measures a process with a thousand logs: what each costs while it is
// idle, and commits spread over them.
func runW11(ctx context.Context, s *Setting) error {
	n := max(10, manyLogs/int(s.Shrink))
	c := report.Case{Workload: "W11", Variant: fmt.Sprintf("%d logs", n), FileSystem: s.FileSystem}
	field, err := s.enter(c, func(p bench.Peer) bool { return p.Light })
	if err != nil {
		return err
	}
	err = s.rounds(ctx, c, field, func(x *contestant) error { return s.manyRound(x, n) })
	return errors.Join(err, s.finish(c, field))
}

func (s *Setting) manyRound(x *contestant, n int) (err error) {
	if err := remake(x.dir); err != nil {
		return err
	}
	heap, files, err := footprint()
	if err != nil {
		return err
	}
	logs := &spread{}
	defer func() { err = errors.Join(err, logs.close()) }()
	for i := range n {
		o := bench.Options{Dir: filepath.Join(x.dir, strconv.Itoa(i)), RecordSize: manyRecord}
		if err := os.Mkdir(o.Dir, 0o755); err != nil {
			return err
		}
		store, err := x.peer.Open(o)
		if err != nil {
			return fmt.Errorf("open log %d: %w", i, err)
		}
		logs.stores = append(logs.stores, store)
	}
	heapOpen, filesOpen, err := footprint()
	if err != nil {
		return err
	}
	x.add(report.HeapBytes, float64(heapOpen-heap)/float64(n))
	x.add(report.Files, float64(filesOpen-files)/float64(n))
	return s.commitSpread(x, logs)
}

// commitSpread measures commits to a log chosen anew each time.
func (s *Setting) commitSpread(x *contestant, logs *spread) error {
	before, err := s.usage()
	if err != nil {
		return err
	}
	latencies, err := drive(logs, groups(preparedGroups, 1, manyRecord), manyCallers, stop{s.Slice, sliceBytes})
	if err != nil {
		return err
	}
	after, err := s.usage()
	if err != nil {
		return err
	}
	x.add(report.Rate, float64(len(latencies))/after.at.Sub(before.at).Seconds())
	x.add(report.P50, micros(stat.Quantile(latencies, 0.50)))
	x.add(report.P99, micros(stat.Quantile(latencies, 0.99)))
	return nil
}

// footprint returns the bytes of heap in use and the number of open files.
func footprint() (heap int64, files int, err error) {
	var memory runtime.MemStats
	runtime.GC()
	runtime.GC() // what finalizers of the first freed
	runtime.ReadMemStats(&memory)
	open, err := os.ReadDir("/proc/self/fd")
	return int64(memory.HeapAlloc), len(open), err
}

// spread is a store that passes each commit to one of many.
type spread struct {
	bench.Store // none: only commits are spread
	stores      []bench.Store
	next        atomic.Uint64
}

// Commit commits to a log chosen by chance, the same way in every run.
func (s *spread) Commit(group [][]byte) error {
	rng := rand.New(rand.NewPCG(11, s.next.Add(1)))
	return s.stores[rng.IntN(len(s.stores))].Commit(group)
}

func (s *spread) close() error {
	var errs []error
	for _, store := range s.stores {
		errs = append(errs, store.Close())
	}
	return errors.Join(errs...)
}
