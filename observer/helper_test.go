package observer

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/tidemark-log/tidemark/pagelog"
)

// payload is what the record of a revision holds.
func payload(rev uint64) []byte {
	return fmt.Appendf(nil, "commit %d, and some more to fill the ring", rev)
}

// world is a log and a hub over it.
type world struct {
	t    testing.TB
	path string
	log  *pagelog.Log
	hub  *Hub
}

func newWorld(t testing.TB, o Options) *world {
	t.Helper()
	w := &world{t: t, path: filepath.Join(t.TempDir(), "a.log")}
	log, err := pagelog.Create(w.path, pagelog.CreateOptions{PageSize: 4096}, pagelog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w.log, w.hub = log, NewHub(log, o)
	t.Cleanup(w.end)
	return w
}

func (w *world) end() {
	if err := w.hub.Close(); err != nil && !errors.Is(err, ErrClosed) {
		w.t.Error(err)
	}
	if err := w.log.Close(); err != nil && !errors.Is(err, pagelog.ErrClosed) {
		w.t.Error(err)
	}
}

// commit adds n commits; each has one record of kind revision % 3, with a key in
// the namespace "even" or "odd". They are durable on return.
func (w *world) commit(n int) {
	w.t.Helper()
	var b pagelog.Batch
	for i := range n {
		rev := w.log.Head().Revision + 1
		b.Reset()
		b.CompleteOnly = i < n-1
		b.Add(pagelog.Record{Kind: uint32(rev % 3), Data: payload(rev)})
		b.Key([]byte([]string{"even", "odd"}[rev%2]), fmt.Append(nil, rev))
		if _, err := w.log.Commit(context.Background(), &b); err != nil {
			w.t.Error(err)
			return
		}
	}
}

func (w *world) attach(h *Hub, q Request) *Subscription {
	w.t.Helper()
	s, err := h.Attach(context.Background(), q)
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

// other returns a hub over the same log as another process sees it.
func (w *world) other(o Options, ro pagelog.ReaderOptions) *Hub {
	w.t.Helper()
	r, err := pagelog.OpenReader(w.path, ro)
	if err != nil {
		w.t.Fatal(err)
	}
	h := NewReaderHub(r, o)
	w.t.Cleanup(func() {
		if err := errors.Join(h.Close(), r.Close()); err != nil && !errors.Is(err, ErrClosed) {
			w.t.Error(err)
		}
	})
	return h
}

// right checks what a commit holds.
func right(t testing.TB, c *Commit) {
	t.Helper()
	if len(c.Records) != 1 || string(c.Records[0].Data) != string(payload(c.Revision)) || len(c.Keys) != 1 {
		t.Fatalf("revision %d holds %v %v", c.Revision, c.Records, c.Keys)
	}
}

// deadline is a context that ends a test that hangs.
func deadline(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// follow reads events until the revision last and returns the revisions of the
// commits and how often it lagged.
func follow(t testing.TB, s *Subscription, last uint64) (revs []uint64, lags int) {
	t.Helper()
	if s.Cursor().Revision >= last {
		return nil, 0
	}
	for e, err := range s.Events(deadline(t)) {
		if err != nil {
			t.Errorf("behind revision %d: %v", s.Cursor().Revision, err)
			return revs, lags
		}
		switch e.Kind {
		case Lag:
			lags++
		case Committed:
			right(t, e.Commit)
			revs = append(revs, e.Commit.Revision)
		}
		if e.At != s.Cursor() {
			t.Errorf("event at %v, subscription at %v", e.At, s.Cursor())
		}
		if e.At.Revision >= last && e.Kind != Lag {
			return revs, lags
		}
	}
	return revs, lags
}

// sequence fails unless revs are from, from+1, …, to.
func sequence(t testing.TB, revs []uint64, from, to uint64) {
	t.Helper()
	if uint64(len(revs)) != to+1-from {
		t.Errorf("%d commits, want %d to %d", len(revs), from, to)
	}
	for i, rev := range revs {
		if rev != from+uint64(i) {
			t.Errorf("revision %d, want %d", rev, from+uint64(i))
			return
		}
	}
}
