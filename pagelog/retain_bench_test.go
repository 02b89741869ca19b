package pagelog

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// retainBench makes a log of so many MiB with a key in each commit.
func retainBench(b *testing.B, path string, mib int) *Log {
	b.Helper()
	l, err := Create(path, CreateOptions{}, Options{})
	if err != nil {
		b.Fatal(err)
	}
	for i := range mib * 16 {
		var batch Batch
		batch.CompleteOnly = true
		batch.Append(payload(i, 64<<10))
		batch.Key(nil, fmt.Append(nil, i))
		if _, err := l.Commit(context.Background(), &batch); err != nil {
			b.Fatal(err)
		}
	}
	if err := l.Sync(context.Background()); err != nil {
		b.Fatal(err)
	}
	return l
}

// BenchmarkRetain drops all but 16 of the commits of a log of 64 MiB.
func BenchmarkRetain(b *testing.B) {
	dir := b.TempDir()
	b.SetBytes(64 << 20)
	for i := 0; b.Loop(); i++ {
		b.StopTimer()
		path := filepath.Join(dir, fmt.Sprint(i))
		l := retainBench(b, path, 64)
		b.StartTimer()
		if err := l.Retain(context.Background(), l.Head().Revision-15); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		closeLog(b, l)
		if err := os.Remove(path); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}

// BenchmarkCompact writes a log of 64 MiB again.
func BenchmarkCompact(b *testing.B) {
	path := filepath.Join(b.TempDir(), "log")
	closeLog(b, retainBench(b, path, 64))
	b.SetBytes(64 << 20)
	for b.Loop() {
		if _, err := Compact(context.Background(), path, CompactOptions{}); err != nil {
			b.Fatal(err)
		}
	}
}
