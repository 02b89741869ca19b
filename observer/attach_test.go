package observer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"

	"github.com/tidemark-log/tidemark/cursor"
	"github.com/tidemark-log/tidemark/frame"
	"github.com/tidemark-log/tidemark/pagelog"
)

// TestAttach_EachCommitOnce_Q105_D17_D22 covers Q105: observers attach at any
// moment of a busy writer, in its process and beside it, some slow and with a
// ring that holds next to nothing; baseline and continuation together are each
// commit once.
func TestAttach_EachCommitOnce_Q105_D17_D22(t *testing.T) {
	const total = 3000
	w := newWorld(t, Options{RingBytes: 8 << 10, PageBytes: 4 << 10})
	other := w.other(Options{RingBytes: 20 << 10}, pagelog.ReaderOptions{Durable: true})
	var wg sync.WaitGroup
	start := make(chan int, 24)
	for i := range cap(start) {
		wg.Go(func() {
			<-start
			h := []*Hub{w.hub, other}[i%2]
			s := w.attach(h, Request{Baseline: true, PageItems: 1 + i*7, PageBytes: int64(200 + i*300)})
			at := s.Cursor().Revision
			var revs []uint64
			for page, err := range s.Baseline(deadline(t)) {
				if err != nil {
					t.Error(err)
					return
				}
				if page.At.Revision != at {
					t.Errorf("a page at %d in a baseline at %d", page.At.Revision, at)
				}
				if page.StateAt != 0 && len(revs) == 0 {
					sequence(t, revs, 1, 0)
					for rev := uint64(1); rev <= page.StateAt; rev++ {
						revs = append(revs, rev) // what the state stands for
					}
				}
				for _, c := range page.Commits {
					right(t, c)
					revs = append(revs, c.Revision)
				}
			}
			sequence(t, revs, 1, at)
			more, _ := follow(t, s, total)
			sequence(t, more, at+1, total)
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	for i := range 60 {
		w.commit(total / 60)
		if i < cap(start) {
			start <- i
		}
		if i == 20 {
			if err := w.log.Checkpoint(context.Background(), w.log.Head().Revision-3, make([]byte, 10_000)); err != nil {
				t.Fatal(err)
			}
		}
	}
	wg.Wait()
}

// TestAttach_Cursor_Q105_Q122_Q106_D21 covers reconnecting: whatever ring, page
// and batching are, an observer that goes away again and again, and comes back
// with its cursor, also to another process's hub, after a rebuilt index and
// after a restart of the writer, sees each commit once.
func TestAttach_Cursor_Q105_Q122_Q106_D21(t *testing.T) {
	w := newWorld(t, Options{RingBytes: 6 << 10, PageBytes: 3000})
	other := w.other(Options{RingBytes: 1}, pagelog.ReaderOptions{Durable: true})
	dice := rand.New(rand.NewPCG(3, 4))
	w.commit(1)
	at := w.attach(w.hub, Request{}).Cursor()
	at.Revision, at.Digest = 0, 0
	var revs []uint64
	for i := range 40 {
		w.commit(1 + dice.IntN(40))
		switch i {
		case 15:
			if err := w.log.Reindex(context.Background()); err != nil {
				t.Fatal(err)
			}
		case 25:
			w.end()
			var err error
			if w.log, err = pagelog.Open(w.path, pagelog.Options{}); err != nil {
				t.Fatal(err)
			}
			w.hub = NewHub(w.log, Options{})
		}
		parsed, err := cursor.Parse(at.String())
		if err != nil {
			t.Fatal(err)
		}
		s := w.attach([]*Hub{w.hub, other}[dice.IntN(2)], Request{After: parsed})
		got, _ := follow(t, s, at.Revision+1+dice.Uint64N(w.log.Durable().Revision-at.Revision))
		revs = append(revs, got...)
		at = s.Cursor()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	s := w.attach(w.hub, Request{After: at})
	got, _ := follow(t, s, w.log.Durable().Revision)
	sequence(t, append(revs, got...), 1, w.log.Durable().Revision)
}

// TestAttach_Refused_Q113_Q114_Q115_D13_D14_D16 covers the errors of cursors:
// each is its own, comes at once, and nothing is resumed.
func TestAttach_Refused_Q113_Q114_Q115_D13_D14_D16(t *testing.T) {
	w := newWorld(t, Options{})
	w.commit(50)
	s := w.attach(w.hub, Request{})
	good := s.Cursor()
	with := func(change func(c *cursor.Cursor)) cursor.Cursor {
		c := good
		change(&c)
		return c
	}
	refused := func(h *Hub, c cursor.Cursor, want error) {
		t.Helper()
		if s, err := h.Attach(context.Background(), Request{After: c}); !errors.Is(err, want) || s != nil {
			t.Errorf("%v: %v, want %v", c, err, want)
		}
	}
	refused(w.hub, with(func(c *cursor.Cursor) { c.Log[0]++ }), cursor.ErrForeign)
	refused(w.hub, with(func(c *cursor.Cursor) { c.View = View{Kinds: []uint32{1}}.ID() }), cursor.ErrView)
	refused(w.hub, with(func(c *cursor.Cursor) { c.Revision++ }), cursor.ErrFuture)
	refused(w.hub, with(func(c *cursor.Cursor) { c.Digest++ }), cursor.ErrDiverged)
	refused(w.hub, with(func(c *cursor.Cursor) { c.Revision-- }), cursor.ErrDiverged)

	// Copy the file, commit; put the copy back, commit something else.
	w.end()
	copied, err := os.ReadFile(w.path)
	if err != nil {
		t.Fatal(err)
	}
	reopen := func() {
		t.Helper()
		if w.log, err = pagelog.Open(w.path, pagelog.Options{}); err != nil {
			t.Fatal(err)
		}
		w.hub = NewHub(w.log, Options{})
	}
	reopen()
	w.commit(5)
	later := w.attach(w.hub, Request{}).Cursor()
	w.end()
	if err := os.WriteFile(w.path, copied, 0o600); err != nil {
		t.Fatal(err)
	}
	reopen()
	refused(w.hub, later, cursor.ErrFuture)
	var b pagelog.Batch
	b.Append([]byte("another history"))
	for range 9 {
		if _, err := w.log.Commit(context.Background(), &b); err != nil {
			t.Fatal(err)
		}
	}
	refused(w.hub, later, cursor.ErrDiverged)

	// Retention drops what the cursor stands before.
	w.end()
	dropTo(t, w.path, 52)
	reopen()
	refused(w.hub, good, cursor.ErrCompacted)
	var compacted *cursor.CompactedError
	if _, err := w.hub.Attach(context.Background(), Request{After: good}); !errors.As(err, &compacted) || compacted.Oldest != 53 {
		t.Errorf("%v", err)
	}
	edge := w.attach(w.hub, Request{}).Cursor()
	edge.Revision = 52
	if digest, err := w.log.DigestAt(52); err != nil {
		t.Fatal(err)
	} else {
		edge.Digest = digest
	}
	if _, err := w.hub.Attach(context.Background(), Request{After: edge}); err != nil {
		t.Errorf("exactly at the floor: %v", err)
	}

	// Another log under the same name.
	w.end()
	if err := os.Remove(w.path); err != nil {
		t.Fatal(err)
	}
	if w.log, err = pagelog.Create(w.path, pagelog.CreateOptions{}, pagelog.Options{}); err != nil {
		t.Fatal(err)
	}
	w.hub = NewHub(w.log, Options{})
	w.commit(60)
	refused(w.hub, good, cursor.ErrForeign)
}

// dropTo makes slots say that retention dropped the commits up to a revision.
func dropTo(t *testing.T, path string, rev uint64) {
	t.Helper()
	r, err := pagelog.OpenReader(path, pagelog.ReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	info, err := r.Info()
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	id, err := frame.DecodeIdentity(raw)
	if err != nil {
		t.Fatal(err)
	}
	geo := id.Geometry()
	end, found := geo.HeaderArea(), frame.Place{}
	for {
		start := geo.Start(end)
		h, err := geo.DecodeGroup(raw[start:], start)
		if err != nil {
			break
		}
		end = geo.End(start, h.Body)
		if h.Revision == rev && !h.Derived() {
			found = frame.Place{Offset: end, Revision: rev, Digest: h.Digest}
			break
		}
	}
	if found.Offset == 0 {
		t.Fatalf("no revision %d in %+v", rev, info.Head)
	}
	var newest frame.Slot
	for _, off := range frame.SlotOffsets {
		if s, err := geo.DecodeSlot(raw[off:], off); err == nil && s.Number > newest.Number {
			newest = s
		}
	}
	newest.Floor = found
	for i, off := range frame.SlotOffsets {
		var b [frame.SlotSize]byte
		newest.Number += uint64(i)
		geo.PutSlot(b[:], off, &newest)
		if _, err := f.WriteAt(b[:], off); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(f.Close(), r.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestBaseline_Pages_Q107_Q120 covers Q107 and Q120: pages keep their limits and
// their revision while the writer goes on, pins are bounded and given back, and
// observing changes no byte.
func TestBaseline_Pages_Q107_Q120(t *testing.T) {
	w := newWorld(t, Options{MaxBaselines: 2, MaxSubscriptions: 3})
	w.commit(300)
	state := make([]byte, 10_001)
	for i := range state {
		state[i] = byte(i * 7)
	}
	if err := w.log.Checkpoint(context.Background(), 100, state); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(w.path)
	if err != nil {
		t.Fatal(err)
	}
	a := w.attach(w.hub, Request{Baseline: true, PageItems: 7, PageBytes: 3000})
	b := w.attach(w.hub, Request{Baseline: true, PageBytes: 1})
	if _, err := w.hub.Attach(context.Background(), Request{Baseline: true}); !errors.Is(err, ErrTooMany) {
		t.Fatal(err)
	}
	c := w.attach(w.hub, Request{})
	if _, err := w.hub.Attach(context.Background(), Request{}); !errors.Is(err, ErrTooMany) {
		t.Fatal(err)
	}
	read := func(s *Subscription, busy bool) {
		t.Helper()
		var got []byte
		var revs []uint64
		for page, err := range s.Baseline(deadline(t)) {
			if err != nil {
				t.Fatal(err)
			}
			if page.At.Revision != 300 || page.At.View != 0 {
				t.Fatalf("a page at %v", page.At)
			}
			size := int64(len(page.State))
			for _, c := range page.Commits {
				revs = append(revs, c.Revision)
				size += c.size
			}
			if s == a && (len(page.Commits) > 7 || size > 3000) || s == b && len(page.Commits)+len(page.State) > 1 {
				t.Fatalf("a page of %d commits, %d bytes", len(page.Commits), size)
			}
			got = append(got, page.State...)
			if busy {
				w.commit(1)
			}
		}
		if !slices.Equal(got, state) {
			t.Error("another state")
		}
		sequence(t, revs, 101, 300)
		for _, err := range s.Baseline(deadline(t)) {
			if !errors.Is(err, ErrNoBaseline) {
				t.Error(err)
			}
		}
	}
	read(b, false)
	after, err := os.ReadFile(w.path)
	if err != nil {
		t.Fatal(err)
	}
	for _, off := range frame.SlotOffsets { // a slot may be written when the log idles
		copy(after[off:off+frame.SlotSize], before[off:])
	}
	if !slices.Equal(before, after) {
		t.Error("observing changed the file")
	}
	read(a, true)
	if err := errors.Join(c.Close(), b.Close(), a.Close()); err != nil {
		t.Fatal(err)
	}
	d := w.attach(w.hub, Request{Baseline: true})
	for range d.Baseline(deadline(t)) {
		break // gives up the pin
	}
	e := w.attach(w.hub, Request{Baseline: true})
	w.attach(w.hub, Request{Baseline: true, View: View{Kinds: []uint32{1}}}).Close()
	if err := errors.Join(d.Close(), e.Close()); err != nil {
		t.Fatal(err)
	}
	if w.hub.subs != 0 || w.hub.baselines != 0 {
		t.Errorf("%d subscriptions and %d baselines are left", w.hub.subs, w.hub.baselines)
	}
}

// TestBaseline_Replaced: a baseline that was begun before the file was replaced
// ends on that file or fails, and is never mixed.
func TestBaseline_Replaced(t *testing.T) {
	w := newWorld(t, Options{})
	w.commit(400)
	h := w.other(Options{PageBytes: 2000}, pagelog.ReaderOptions{})
	s := w.attach(h, Request{Baseline: true, PageItems: 5})
	w.end()
	var revs []uint64
	var failed error
	for page, err := range s.Baseline(deadline(t)) {
		if err != nil {
			failed = err
			break
		}
		for _, c := range page.Commits {
			right(t, c)
			revs = append(revs, c.Revision)
		}
		if len(revs) == 10 {
			if err := os.Rename(w.path, w.path+".old"); err != nil {
				t.Fatal(err)
			}
			log, err := pagelog.Create(w.path, pagelog.CreateOptions{}, pagelog.Options{})
			if err != nil {
				t.Fatal(err)
			}
			var b pagelog.Batch
			b.Append([]byte("of another file"))
			for range 500 {
				if _, err := log.Commit(context.Background(), &b); err != nil {
					t.Fatal(err)
				}
			}
			if err := log.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if !errors.Is(failed, pagelog.ErrReplaced) {
		t.Errorf("%v", failed)
	}
	sequence(t, revs, 1, uint64(len(revs)))
	if len(revs) < 10 || len(revs) > 100 {
		t.Error(fmt.Sprint(len(revs), " commits were shown"))
	}
}
