package pagelog

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/zeebo/xxh3"
)

// BenchmarkGroupCommit is durable commits of 256 B by many callers at once, with
// what they cost the device; raw is one write and one sync for all of them, the
// least that could be done if they came at the same moment.
func BenchmarkGroupCommit(b *testing.B) {
	const size = 256
	for _, callers := range []int{16, 128} {
		b.Run(fmt.Sprintf("raw/%d", callers), func(b *testing.B) {
			f, data := benchZeroed(b), payload(1, (size+104)*callers)
			m := startMeter(b, filepath.Dir(f.Name()))
			b.ResetTimer()
			off := int64(0)
			for i := 0; i < b.N; i += callers {
				if off+int64(len(data)) > benchRoom {
					off = 0
				}
				if _, err := f.WriteAt(data, off); err != nil {
					b.Fatal(err)
				}
				if err := f.Sync(); err != nil {
					b.Fatal(err)
				}
				off += int64(len(data))
			}
			b.StopTimer()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "commits/s")
			m.report()
		})
		b.Run(fmt.Sprintf("tidemark/%d", callers), func(b *testing.B) {
			dir := b.TempDir()
			l, err := Create(filepath.Join(dir, "a.log"), CreateOptions{}, Options{})
			if err != nil {
				b.Fatal(err)
			}
			m := startMeter(b, dir)
			b.ResetTimer()
			commitBy(b, l, callers, size)
			b.StopTimer()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "commits/s")
			b.ReportMetric(float64(l.Stats().Syncs)/float64(b.N), "syncs/op")
			m.report()
			if err := l.Close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}

// commitBy makes b.N commits by so many callers at once.
func commitBy(b *testing.B, l *Log, callers, size int) {
	var wg sync.WaitGroup
	for c := range callers {
		n := b.N / callers
		if c < b.N%callers {
			n++
		}
		wg.Go(func() {
			batch := batchOf(payload(c, size))
			for range n {
				if _, err := l.Commit(context.Background(), batch); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

const benchRoom = 16 << 20

// benchZeroed is a file of zeros on the disk.
func benchZeroed(b *testing.B) *os.File {
	b.Helper()
	f, err := os.Create(filepath.Join(b.TempDir(), "raw"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = f.Close() })
	for off := int64(0); off < benchRoom; off += zeroChunk {
		if _, err := f.WriteAt(zeros[:], off); err != nil {
			b.Fatal(err)
		}
	}
	if err := f.Sync(); err != nil {
		b.Fatal(err)
	}
	return f
}

// BenchmarkOpen opens and closes a log of 64 MiB; raw opens a file, reads its
// last MiB and sums it, writes a sector and syncs it, twice: what any opening
// has to do that checks the tail and leaves its mark, and closing after it.
func BenchmarkOpen(b *testing.B) {
	path := filepath.Join(b.TempDir(), "a.log")
	benchFill(b, path, 256, 64<<20)
	b.Run("raw", func(b *testing.B) {
		m := startMeter(b, filepath.Dir(path))
		buf := make([]byte, checkedTail)
		raw := filepath.Join(filepath.Dir(path), "raw")
		if err := os.WriteFile(raw, make([]byte, 4*checkedTail), 0o600); err != nil {
			b.Fatal(err)
		}
		var sum uint64
		for b.Loop() {
			f, err := os.OpenFile(raw, os.O_RDWR, 0)
			if err != nil {
				b.Fatal(err)
			}
			_, err = f.ReadAt(buf, 3*checkedTail)
			sum += xxh3.Hash(buf)
			for range 2 {
				_, werr := f.WriteAt(buf[:512], 4096)
				err = errors.Join(err, werr, f.Sync())
			}
			if err := errors.Join(err, f.Close()); err != nil {
				b.Fatal(err)
			}
		}
		m.report()
	})
	b.Run("tidemark", func(b *testing.B) {
		m := startMeter(b, filepath.Dir(path))
		var read int64
		for b.Loop() {
			l, err := Open(path, Options{})
			if err != nil {
				b.Fatal(err)
			}
			read = l.Report().BytesRead
			if err := l.Close(); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(read), "read-B/op")
		m.report()
	})
}
