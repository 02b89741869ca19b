package authority

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tidemark-log/tidemark/internal/securedir"
	"github.com/tidemark-log/tidemark/snapshot"
)

// Each benchmark measures its rival in the same loop, in turns, so that what
// else happens on the machine meets both. TIDEMARK_BENCH_DIR names the disk.

func benchDir(b *testing.B) string {
	b.Helper()
	base := os.Getenv("TIDEMARK_BENCH_DIR")
	if base == "" {
		return tempDir(b)
	}
	dir, err := os.MkdirTemp(base, "bench")
	must(b, err)
	b.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// rawFile is a file of the same size, written in place.
func rawFile(b *testing.B, name string) *os.File {
	b.Helper()
	f, err := os.Create(name)
	must(b, err)
	_, err = f.Write(make([]byte, stateSize))
	must(b, err)
	must(b, f.Sync())
	b.Cleanup(func() { _ = f.Close() })
	return f
}

func rawSync(b testing.TB, f *os.File, n int) {
	s := make([]byte, sectorSize)
	s[0] = byte(n)
	_, err := f.WriteAt(s, int64(n%sectors)*sectorSize)
	must(b, err)
	must(b, syscall.Fdatasync(int(f.Fd())))
}

// timed runs f and adds what it took.
func timed(total *[]time.Duration, f func()) {
	start := time.Now()
	f()
	*total = append(*total, time.Since(start))
}

func mean(d []time.Duration) float64 {
	sum := time.Duration(0)
	for _, x := range d {
		sum += x
	}
	return float64(sum) / float64(len(d))
}

// BenchmarkTransition: suspend and resume beside one write and sync of 512
// bytes, and beside a temporary file, sync, rename and directory sync. The mean
// includes every sixty-fourth transition, which makes a new file.
func BenchmarkTransition(b *testing.B) {
	dir := benchDir(b)
	sys, err := securedir.Host()
	must(b, err)
	count := &barriers{System: sys}
	a, err := open(ctx, environment{count, rand.Reader, &fences{}}, filepath.Join(dir, "authority"), Options{Create: true})
	must(b, err)
	l, err := a.Start(ctx, "run")
	must(b, err)
	s := snap(b, "run", 7, snapshot.Suspended)
	raw := rawFile(b, filepath.Join(dir, "raw"))
	d, err := os.Open(dir)
	must(b, err)
	var ours, theirs, renames []time.Duration
	count.n = 0
	n := 0
	for b.Loop() {
		timed(&ours, func() { transition(b, l, s) })
		timed(&theirs, func() { rawSync(b, raw, n) })
		if n%8 == 0 {
			timed(&renames, func() { tempRename(b, dir, d) })
		}
		n++
	}
	b.ReportMetric(float64(count.n)/float64(n), "barriers/op")
	b.ReportMetric(sectorSize, "written-B/op")
	b.ReportMetric(mean(ours)/1e3, "ours-µs")
	b.ReportMetric(mean(theirs)/1e3, "raw-µs")
	b.ReportMetric(mean(renames)/1e3, "rename-µs")
	b.ReportMetric(mean(theirs)/mean(ours), "of-raw-rate")
	b.ReportMetric(float64(median(ours))/1e3, "ours-median-µs")
	b.ReportMetric(float64(median(theirs))/1e3, "raw-median-µs")
	b.ReportMetric(float64(median(theirs))/float64(median(ours)), "of-raw-median")
	b.ReportMetric(mean(renames)/mean(ours), "times-rename")
	must(b, l.Close())
	must(b, a.Close())
}

func transition(b *testing.B, l *Lease, s snapshot.Snapshot) {
	if l.hold.record.phase == Suspended {
		must(b, l.Resume(ctx))
		return
	}
	_, err := suspend(ctx, l, s)
	must(b, err)
}

func tempRename(b *testing.B, dir string, d *os.File) {
	name := filepath.Join(dir, "record")
	f, err := os.Create(name + ".tmp")
	must(b, err)
	_, err = f.Write(make([]byte, sectorSize))
	must(b, err)
	must(b, f.Sync())
	must(b, f.Close())
	must(b, os.Rename(name+".tmp", name))
	must(b, d.Sync())
}

// BenchmarkConcurrent: eight runs at once beside eight raw files at once.
func BenchmarkConcurrent(b *testing.B) {
	dir := benchDir(b)
	a, err := Open(ctx, filepath.Join(dir, "authority"), Options{Create: true})
	must(b, err)
	const runs, each = 8, 64
	var leases []*Lease
	var raws []*os.File
	var snaps []snapshot.Snapshot
	for n := range runs {
		l, err := a.Start(ctx, fmt.Sprint("run ", n))
		must(b, err)
		leases = append(leases, l)
		snaps = append(snaps, snap(b, fmt.Sprint("run ", n), 7, snapshot.Suspended))
		raws = append(raws, rawFile(b, filepath.Join(dir, fmt.Sprint("raw", n))))
	}
	var ours, theirs []time.Duration
	all := func(f func(k int)) func() {
		return func() {
			var wg sync.WaitGroup
			for k := range runs {
				wg.Go(func() { f(k) })
			}
			wg.Wait()
		}
	}
	for b.Loop() {
		timed(&ours, all(func(k int) {
			for range each {
				transition(b, leases[k], snaps[k])
			}
		}))
		timed(&theirs, all(func(k int) {
			for n := range each {
				rawSync(b, raws[k], n)
			}
		}))
	}
	b.ReportMetric(runs*each*1e9/mean(ours), "ours/s")
	b.ReportMetric(runs*each*1e9/mean(theirs), "raw/s")
	b.ReportMetric(mean(theirs)/mean(ours), "of-raw-rate")
	for _, l := range leases {
		must(b, l.Close())
	}
	must(b, a.Close())
}

// BenchmarkForged16MiB: a forged envelope of the largest size, parsed and
// refused.
func BenchmarkForged16MiB(b *testing.B) {
	a, err := Open(ctx, filepath.Join(benchDir(b), "authority"), Options{Create: true})
	must(b, err)
	e := forged(b, a)
	before := names(b, a)
	var took []time.Duration
	for b.Loop() {
		timed(&took, func() {
			parsed, err := ParseEnvelope(e)
			must(b, err)
			if _, err := a.PrepareImport(ctx, parsed); err != ErrVerification {
				b.Fatal(err)
			}
		})
	}
	if !slices.Equal(before, names(b, a)) {
		b.Error("files were created")
	}
	b.ReportMetric(float64(median(took))/1e3, "median-µs")
	must(b, a.Close())
}

// BenchmarkRuns100k: a directory of 100,000 runs listed and verified, warm.
func BenchmarkRuns100k(b *testing.B) {
	sys, err := securedir.Host()
	must(b, err)
	env := environment{lies{sys}, rand.Reader, &fences{}} // only the filling skips its syncs
	path := filepath.Join(benchDir(b), "authority")
	a, err := open(ctx, env, path, Options{Create: true})
	must(b, err)
	runs := 100_000
	if testing.Short() {
		runs = 10_000
	}
	for n := range runs {
		l, err := a.Start(ctx, fmt.Sprint("run ", n))
		must(b, err)
		must(b, l.Close())
	}
	must(b, a.Close())
	a, err = Open(ctx, path, Options{})
	must(b, err)
	var took []time.Duration
	list := func() {
		n := 0
		for info, err := range a.Runs(ctx) {
			must(b, err)
			if info.Phase == Active {
				n++
			}
		}
		if n != runs {
			b.Fatalf("%d runs", n)
		}
	}
	list()
	for b.Loop() {
		timed(&took, list)
	}
	b.ReportMetric(float64(median(took))/1e9, "median-s")
	must(b, a.Close())
}
