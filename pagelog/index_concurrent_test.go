package pagelog

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
)

// TestIndex_Concurrent_L39 looks keys up while they are added and the index is
// rebuilt, again and again: what was acknowledged is found, by the writer's
// process and beside it, and nothing added meanwhile is missing afterwards.
func TestIndex_Concurrent_L39(t *testing.T) {
	const per = 40
	n := 60_000
	if testing.Short() {
		n = 8000
	}
	path := filepath.Join(t.TempDir(), "a.log")
	l, err := Create(path, CreateOptions{}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := OpenReader(path, ReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	fillKeys(t, l, 0, per, per)
	if err := l.Sync(context.Background()); err != nil {
		t.Fatal(err)
	}
	var acked atomic.Int64
	acked.Store(per)
	done := make(chan bool)
	var wg sync.WaitGroup
	look := func(r *Reader, seed uint64) {
		dice := rand.New(rand.NewPCG(seed, 0))
		for {
			select {
			case <-done:
				return
			default:
			}
			i := dice.IntN(int(acked.Load()))
			if rev, _, err := r.Lookup([]byte("ns"), fmt.Appendf(nil, "k%d", i)); err != nil || rev != uint64(i/per+1) {
				t.Errorf("key %d of %d: revision %d, %v", i, acked.Load(), rev, err)
				return
			}
		}
	}
	wg.Go(func() { look(l.Reader, 1) })
	wg.Go(func() { look(l.DurableReader(), 2) })
	wg.Go(func() { look(r, 3) })
	rebuilt := 0
	wg.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			if err := l.Reindex(context.Background()); err != nil {
				t.Error(err)
				return
			}
			rebuilt++
		}
	})
	for i := per; i < n && !t.Failed(); i += per * 25 {
		fillKeys(t, l, i, per*25, per)
		if err := l.Sync(context.Background()); err != nil {
			t.Fatal(err)
		}
		acked.Store(int64(i + per*25))
	}
	close(done)
	wg.Wait()
	last := int(acked.Load())
	wantKeys(t, l.Reader, last, 1, per)
	wantKeys(t, r, last, 97, per)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if l, err = Open(path, Options{}); err != nil {
		t.Fatal(err)
	}
	wantKeys(t, l.Reader, last, 31, per)
	if rebuilt == 0 {
		t.Error("nothing was rebuilt")
	}
	t.Logf("%d rebuilds", rebuilt)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
}
