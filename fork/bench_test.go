package fork_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/tidemark-log/tidemark/fork"
	"github.com/tidemark-log/tidemark/pagelog"
)

// BenchmarkFork forks a log of 256 MiB, beside cp and a sync of the copy. It
// uses the directory BENCH_DIR, or a temporary one.
func BenchmarkFork(b *testing.B) {
	dir, err := os.MkdirTemp(os.Getenv("BENCH_DIR"), "fork-")
	if err != nil {
		b.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path, made := filepath.Join(dir, "log"), filepath.Join(dir, "new")
	size := grow(b, path, 256)
	cp := func(reflink string) func() error {
		return func() error {
			return errors.Join(exec.Command("cp", "--reflink="+reflink, path, made).Run(), exec.Command("sync", made).Run())
		}
	}
	forked := func(o fork.Options) func() error {
		return func() error {
			_, err := fork.Create(ctx, path, made, o)
			return err
		}
	}
	for _, way := range []struct {
		name string
		do   func() error
	}{
		{"copied", forked(fork.Options{NoSharing: true})},
		{"cp-and-sync", cp("never")},
		{"shared", forked(fork.Options{})},
		{"cp-reflink-and-sync", cp("auto")},
	} {
		b.Run(way.name, func(b *testing.B) {
			b.SetBytes(size)
			for b.Loop() {
				if err := way.do(); err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				if err := os.Remove(made); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
		})
	}
}

// grow writes a log of about so many MiB and returns its size.
func grow(b *testing.B, path string, mib int) int64 {
	b.Helper()
	l, err := pagelog.Create(path, pagelog.CreateOptions{}, pagelog.Options{})
	if err != nil {
		b.Fatal(err)
	}
	for i := range mib * 4 {
		var batch pagelog.Batch
		batch.CompleteOnly = true
		batch.Append(payload(i, 256<<10))
		if _, err := l.Commit(ctx, &batch); err != nil {
			b.Fatal(err)
		}
	}
	ends(b, l)
	info, err := os.Stat(path)
	if err != nil {
		b.Fatal(err)
	}
	return info.Size()
}
