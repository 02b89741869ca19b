package pagelog

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/tidemark-log/tidemark/internal/simdisk"
)

// TestFence_R95_CrashAtAnyStep: after every crash of an opening under a newer
// token the log opens under that token with all its commits, and the older one is
// refused for certain once the opening had returned, whatever of the disk's
// unsynced effects are lost.
func TestFence_R95_CrashAtAnyStep(t *testing.T) {
	s := newSim(t)
	l := s.create(small, under(runA, 3))
	commit(t, l, []byte("one"))
	commit(t, l, []byte("two"))
	closeLog(t, l)
	images := 0
	check := func(img *simdisk.FS, returned bool) {
		images++
		w := &sim{t: t, fs: img}
		_, err := OpenIn(w.env(), logName, under(runB, 9))
		if !errors.Is(err, ErrFenced) {
			t.Fatalf("another run: %v", err)
		}
		if returned {
			if _, err := OpenIn(w.env(), logName, under(runA, 3)); !errors.Is(err, ErrFenced) {
				t.Fatalf("the older holder: %v", err)
			}
		}
		l := w.open(under(runA, 4))
		if l.Head().Revision != 2 {
			t.Fatalf("head %d", l.Head().Revision)
		}
		closeLog(t, l)
	}
	all := func(fs *simdisk.FS, returned bool) {
		fs.EachImage(simdisk.ImageOptions{}, func(img *simdisk.FS) bool {
			check(img, returned)
			return !t.Failed()
		})
	}
	s.fs.Before(func(simdisk.Op) { all(s.fs, false) })
	l = s.open(under(runA, 4))
	s.fs.Before(nil)
	all(s.fs, true)
	s.fs.Kill()
	if images < 10 {
		t.Errorf("only %d images", images)
	}
	t.Logf("%d images", images)
	_ = l
}

// BenchmarkFence is a durable commit with a fence and without one, in turns, and
// the look itself.
func BenchmarkFence(b *testing.B) {
	open := func(o Options) *Log {
		l, err := Create(filepath.Join(b.TempDir(), "log"), CreateOptions{}, o)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = l.Close() })
		return l
	}
	logs := []*Log{open(Options{}), open(under(runA, 1))}
	b.Run("look", func(b *testing.B) {
		for b.Loop() {
			if err := logs[1].fenced.mayWrite(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("commit", func(b *testing.B) {
		var batch Batch
		batch.Append(make([]byte, 256))
		var spent [2]float64
		n := 0
		for b.Loop() {
			for i, l := range logs {
				began := b.Elapsed()
				if _, err := l.Commit(context.Background(), &batch); err != nil {
					b.Fatal(err)
				}
				spent[i] += float64((b.Elapsed() - began).Nanoseconds())
			}
			n++
		}
		b.ReportMetric(spent[0]/float64(n), "ns/plain")
		b.ReportMetric(spent[1]/float64(n), "ns/fenced")
		b.ReportMetric(spent[1]/spent[0], "fenced/plain")
	})
}
