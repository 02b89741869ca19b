package observer

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tidemark-log/tidemark/pagelog"
)

// BenchmarkAttach is attaching and closing, with and without an empty baseline.
func BenchmarkAttach(b *testing.B) {
	w := newWorld(b, Options{})
	w.commit(1000)
	for _, baseline := range []bool{false, true} {
		b.Run(fmt.Sprintf("baseline=%v", baseline), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s := w.attach(w.hub, Request{Baseline: baseline})
				if err := s.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkCatchUp is an observer that reads 20,000 commits of about 50 bytes
// from the file: the rate at which one who was away comes back.
func BenchmarkCatchUp(b *testing.B) {
	w := newWorld(b, Options{RingBytes: 1})
	w.commit(20_000)
	at := w.attach(w.hub, Request{}).Cursor()
	at.Revision, at.Digest = 0, 0
	b.ReportAllocs()
	for b.Loop() {
		s := w.attach(w.hub, Request{After: at})
		n := 0
		for e, err := range s.Events(context.Background()) {
			if err != nil {
				b.Fatal(err)
			}
			if e.Kind == Committed {
				n++
			}
			if e.At.Revision == 20_000 {
				break
			}
		}
		if err := s.Close(); err != nil || n != 20_000 {
			b.Fatal(n, err)
		}
	}
	b.ReportMetric(20_000*float64(b.N)/b.Elapsed().Seconds(), "commits/s")
}

// BenchmarkObservers is one complete-only commit while so many observers
// watch; then all of them come to its end. Compare the time of a commit with
// that of none.
func BenchmarkObservers(b *testing.B) {
	for _, n := range []int{0, 1, 100, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			w := newWorld(b, Options{})
			hub := NewHub(w.log, Options{Complete: true})
			ctx, cancel := context.WithCancel(context.Background())
			var wg sync.WaitGroup
			var delivered atomic.Int64
			for range n {
				s := w.attach(hub, Request{})
				wg.Go(func() {
					for e := range s.Events(ctx) {
						if e.Kind == Committed {
							delivered.Add(1)
						}
					}
				})
			}
			var batch pagelog.Batch
			batch.CompleteOnly = true
			batch.Append(make([]byte, 100))
			for b.Loop() {
				if _, err := w.log.Commit(context.Background(), &batch); err != nil {
					b.Fatal(err)
				}
			}
			b.StopTimer()
			took := b.Elapsed()
			cancel()
			wg.Wait()
			b.ReportMetric(float64(delivered.Load())/took.Seconds(), "delivered/s")
			if err := hub.Close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}
