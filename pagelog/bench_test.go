package pagelog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/zeebo/xxh3"

	"github.com/tidemark-log/tidemark/internal/disk"
)

// Every benchmark stands beside its raw loop, so that the two share the
// machine's mood: compare them, not figures from different days.

// benchSizes are the payloads of the write benchmarks, in bytes.
var benchSizes = []int{256, 4 << 10, 64 << 10}

// BenchmarkCommit is one durable commit by one caller; raw is one positioned
// write and one sync over zeros that were written before.
func BenchmarkCommit(b *testing.B) {
	for _, size := range benchSizes {
		b.Run(fmt.Sprintf("raw/%d", size), func(b *testing.B) { benchRaw(b, size) })
		b.Run(fmt.Sprintf("tidemark/%d", size), func(b *testing.B) {
			l := benchLog(b)
			var batch Batch
			batch.Append(make([]byte, size))
			b.ReportAllocs()
			b.SetBytes(int64(size))
			m := startMeter(b, b.TempDir())
			for b.Loop() {
				if _, err := l.Commit(context.Background(), &batch); err != nil {
					b.Fatal(err)
				}
			}
			m.report()
		})
	}
}

func benchRaw(b *testing.B, size int) {
	dir, err := disk.OpenDir(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	f, err := dir.Create("raw")
	if err != nil {
		b.Fatal(err)
	}
	const room = 64 << 20
	for off := int64(0); off < room; off += zeroChunk {
		if _, err := f.WriteAt(zeros[:], off); err != nil {
			b.Fatal(err)
		}
	}
	if err := f.Sync(); err != nil {
		b.Fatal(err)
	}
	data := make([]byte, size)
	off := int64(0)
	b.SetBytes(int64(size))
	m := startMeter(b, b.TempDir())
	for b.Loop() {
		if off+int64(size) > room {
			off = 0
		}
		if _, err := f.WriteAt(data, off); err != nil {
			b.Fatal(err)
		}
		if err := f.Sync(); err != nil {
			b.Fatal(err)
		}
		off += int64(size)
	}
	b.StopTimer()
	m.report()
	if err := errors.Join(f.Close(), dir.Close()); err != nil {
		b.Fatal(err)
	}
}

func benchLog(b *testing.B) *Log {
	l, err := Create(filepath.Join(b.TempDir(), "a.log"), CreateOptions{}, Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := l.Close(); err != nil {
			b.Error(err)
		}
	})
	return l
}

// BenchmarkConcurrent is durable commits of 256 B by many callers at once.
func BenchmarkConcurrent(b *testing.B) {
	for _, callers := range []int{1, 8, 64, 256} {
		b.Run(fmt.Sprint(callers), func(b *testing.B) {
			l := benchLog(b)
			b.ResetTimer()
			var wg sync.WaitGroup
			for c := range callers {
				n := b.N / callers
				if c < b.N%callers {
					n++
				}
				wg.Go(func() {
					var batch Batch
					batch.Append(make([]byte, 256))
					for range n {
						if _, err := l.Commit(context.Background(), &batch); err != nil {
							b.Error(err)
						}
					}
				})
			}
			wg.Wait()
			b.StopTimer()
			s := l.Stats()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "commits/s")
			b.ReportMetric(float64(s.Syncs)/float64(b.N), "syncs/op")
		})
	}
}

// BenchmarkReplay reads a warm log of groups of 16; raw reads the same file in
// 256 KiB pieces and sums each record.
func BenchmarkReplay(b *testing.B) {
	for _, size := range []int{256, 4 << 10} {
		path := filepath.Join(b.TempDir(), "a.log")
		total := benchFill(b, path, size, 64<<20)
		b.Run(fmt.Sprintf("raw/%d", size), func(b *testing.B) { benchRawRead(b, path, size) })
		b.Run(fmt.Sprintf("tidemark/%d", size), func(b *testing.B) {
			r, err := OpenReader(path, ReaderOptions{})
			if err != nil {
				b.Fatal(err)
			}
			defer r.Close()
			b.SetBytes(total)
			b.ReportAllocs()
			for b.Loop() {
				n := 0
				for g, err := range r.Commits(0) {
					if err != nil {
						b.Fatal(err)
					}
					for rec, err := range g.Records() {
						if err != nil {
							b.Fatal(err)
						}
						n += len(rec.Data)
					}
				}
				if int64(n) != total {
					b.Fatal(n, total)
				}
			}
		})
	}
}

func benchFill(b *testing.B, path string, size int, want int64) int64 {
	l, err := Create(path, CreateOptions{}, Options{})
	if err != nil {
		b.Fatal(err)
	}
	batch := Batch{CompleteOnly: true}
	for range 16 {
		batch.Append(make([]byte, size))
	}
	total := int64(0)
	for total < want {
		if _, err := l.Commit(context.Background(), &batch); err != nil {
			b.Fatal(err)
		}
		total += 16 * int64(size)
	}
	if err := l.Close(); err != nil {
		b.Fatal(err)
	}
	return total
}

func benchRawRead(b *testing.B, path string, size int) {
	f, err := os.Open(path)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	buf := make([]byte, readChunk)
	var sum uint64
	total := int64(0)
	for b.Loop() {
		total = 0
		for {
			n, err := f.ReadAt(buf, total)
			for at := 0; at+size <= n; at += size {
				sum += xxh3.Hash(buf[at : at+size])
			}
			total += int64(n)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				b.Fatal(err)
			}
		}
	}
	b.SetBytes(total)
	_ = sum
}

// BenchmarkAt reads single revisions of a warm log; raw is one read of a page.
func BenchmarkAt(b *testing.B) {
	path := filepath.Join(b.TempDir(), "a.log")
	benchFill(b, path, 256, 64<<20)
	r, err := OpenReader(path, ReaderOptions{})
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	head, err := r.Head()
	if err != nil {
		b.Fatal(err)
	}
	b.Run("raw", func(b *testing.B) {
		buf := make([]byte, 16<<10)
		i := int64(0)
		for b.Loop() {
			i = i*6364136223846793005 + 1442695040888963407
			if _, err := r.file.ReadAt(buf, int64(uint64(i)>>33)%3000<<14); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("tidemark", func(b *testing.B) {
		var g Group
		i := uint64(0)
		b.ReportAllocs()
		for b.Loop() {
			i = i*6364136223846793005 + 1442695040888963407
			if err := r.At(i>>33%head.Revision+1, &g); err != nil {
				b.Fatal(err)
			}
		}
	})
}
