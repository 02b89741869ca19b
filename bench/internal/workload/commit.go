package workload

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tidemark-log/tidemark/bench"
	"github.com/tidemark-log/tidemark/bench/internal/device"
	"github.com/tidemark-log/tidemark/bench/internal/report"
	"github.com/tidemark-log/tidemark/bench/internal/stat"
)

// commitWork is a workload of durable commits.
type commitWork struct {
	workload   string
	variant    string
	recordSize int // bytes
	group      int // records per commit
	callers    int
}

const (
	// sliceBytes ends a slice early, so that large records do not fill the disk.
	sliceBytes = 32 << 20
	// preparedGroups is how many different groups a caller commits in turn.
	preparedGroups = 16
	// warmUpShare is the part of a slice worked, untimed, before it.
	warmUpShare = 8
)

func runW1(ctx context.Context, s *Setting) error {
	return s.commits(ctx, commitWork{"W1", "256 B", 256, 1, 1})
}

func runW2(ctx context.Context, s *Setting) error {
	return errors.Join(
		s.commits(ctx, commitWork{"W2", "4 KiB", 4 << 10, 1, 1}),
		s.commits(ctx, commitWork{"W2", "64 KiB", 64 << 10, 1, 1}))
}

func runW3(ctx context.Context, s *Setting) error {
	var errs []error
	for _, callers := range []int{1, 8, 64, 256} {
		variant := fmt.Sprintf("%d callers", callers)
		errs = append(errs, s.commits(ctx, commitWork{"W3", variant, 256, 1, callers}))
	}
	return errors.Join(errs...)
}

func runW4(ctx context.Context, s *Setting) error {
	return s.commits(ctx, commitWork{"W4", "16 × 256 B", 256, 16, 1})
}

func (s *Setting) commits(ctx context.Context, w commitWork) error {
	c := report.Case{Workload: w.workload, Variant: w.variant, FileSystem: s.FileSystem}
	field, err := s.enter(c, nil)
	if err != nil {
		return err
	}
	s.openAll(c, field, bench.Options{
		Mode: bench.Durable, RecordSize: w.recordSize, Capacity: sliceBytes, Callers: w.callers,
	})
	prepared := groups(preparedGroups, w.group, w.recordSize)
	err = s.rounds(ctx, c, field, func(x *contestant) error { return s.commitSlice(x, w, prepared) })
	s.addDeviceCase(c, w, field)
	return errors.Join(err, s.finish(c, field))
}

// commitSlice is one peer's turn: a warm-up, then what is measured.
func (s *Setting) commitSlice(x *contestant, w commitWork, prepared [][][]byte) error {
	limit := max(1, sliceBytes/(w.recordSize*w.group*w.callers))
	if _, err := drive(x.store, prepared, w.callers, stop{s.Slice / warmUpShare, max(1, limit/warmUpShare)}); err != nil {
		return err
	}
	runtime.GC()
	before, err := s.usage()
	if err != nil {
		return err
	}
	latencies, err := drive(x.store, prepared, w.callers, stop{s.Slice, limit})
	if err != nil {
		return err
	}
	after, err := s.usage()
	if err != nil {
		return err
	}
	n := float64(len(latencies))
	x.add(report.Rate, n/after.at.Sub(before.at).Seconds())
	x.add(report.P50, micros(stat.Quantile(latencies, 0.50)))
	x.add(report.P99, micros(stat.Quantile(latencies, 0.99)))
	x.add(report.CPU, micros(after.cpu-before.cpu)/n)
	x.add(report.Allocs, float64(after.mallocs-before.mallocs)/n)
	if s.Counter.Valid() {
		d := after.device.Sub(before.device)
		x.add(report.Bytes, float64(d.WriteBytes)/n)
		x.add(report.Flushes, float64(d.Flushes)/n)
	}
	return nil
}

// addDeviceCase turns what W1 and W2 did to the device into figures of W9.
func (s *Setting) addDeviceCase(c report.Case, w commitWork, field []*contestant) {
	if w.callers != 1 || w.workload == "W3" {
		return
	}
	w9 := report.Case{Workload: "W9", Variant: c.Variant, FileSystem: c.FileSystem}
	if !s.Counter.Valid() {
		s.Document.Skip(w9, "", device.ErrNoDevice.Error())
		return
	}
	for _, x := range field {
		for _, metric := range []string{report.Bytes, report.Flushes} {
			s.Document.Add(w9, x.peer.Name, metric, x.series[metric])
			delete(x.series, metric)
		}
	}
}

// stop ends a drive: the time is up, or each caller has done its commits.
type stop struct {
	after   time.Duration
	commits int
}

// drive commits prepared groups from a number of callers and returns how long
// each commit took.
func drive(store bench.Store, prepared [][][]byte, callers int, until stop) ([]time.Duration, error) {
	if callers == 1 {
		return driveOne(store, prepared, 0, until)
	}
	latencies := make([][]time.Duration, callers)
	errs := make([]error, callers)
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() { latencies[i], errs[i] = driveOne(store, prepared, i, until) })
	}
	wg.Wait()
	var all []time.Duration
	for _, l := range latencies {
		all = append(all, l...)
	}
	return all, errors.Join(errs...)
}

// driveOne is one caller: at least one commit, the first of prepared being at
// the position given.
func driveOne(store bench.Store, prepared [][][]byte, first int, until stop) ([]time.Duration, error) {
	latencies := make([]time.Duration, 0, min(until.commits, 1<<13))
	start := time.Now()
	for now := start; ; {
		if err := store.Commit(prepared[(first+len(latencies))%len(prepared)]); err != nil {
			return nil, err
		}
		done := time.Now()
		latencies = append(latencies, done.Sub(now))
		now = done
		if now.Sub(start) >= until.after || len(latencies) >= until.commits {
			return latencies, nil
		}
	}
}

// usage is what the process and the device have used so far.
type usage struct {
	at      time.Time
	cpu     time.Duration
	mallocs uint64
	device  device.Counts
}

func (s *Setting) usage() (usage, error) {
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	var times unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &times); err != nil {
		return usage{}, err
	}
	counts, err := s.Counter.Counts()
	if err != nil {
		return usage{}, err
	}
	cpu := time.Duration(times.Utime.Nano() + times.Stime.Nano())
	return usage{at: time.Now(), cpu: cpu, mallocs: memory.Mallocs, device: counts}, nil
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
