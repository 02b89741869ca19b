package observer

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/tidemark-log/tidemark/pagelog"
)

// TestEvents_Stalled_Q109_Q110_D18_D19 covers Q109 and Q110: an observer that is
// parked in the middle of an event delays no commit, while ten rings' worth
// are written; then it sees one Lag, and every commit once, and is live again.
func TestEvents_Stalled_Q109_Q110_D18_D19(t *testing.T) {
	w := newWorld(t, Options{RingBytes: 16 << 10, PageBytes: 8 << 10})
	w.commit(3)
	for name, h := range map[string]*Hub{"in process": w.hub, "beside": w.other(Options{RingBytes: 16 << 10}, pagelog.ReaderOptions{Durable: true})} {
		t.Run(name, func(t *testing.T) {
			s := w.attach(h, Request{})
			from := s.Cursor().Revision
			w.commit(1)
			parked, release, done := make(chan bool), make(chan bool), make(chan bool)
			var revs []uint64
			lags, lagged := 0, uint64(0)
			last := from + 1 + 1200
			go func() {
				defer close(done)
				for e, err := range s.Events(deadline(t)) {
					if err != nil {
						t.Error(err)
						return
					}
					switch e.Kind {
					case Committed:
						revs = append(revs, e.Commit.Revision)
						if len(revs) == 1 {
							parked <- true
							<-release
						}
					case Lag:
						lags, lagged = lags+1, e.Skipped
					}
					if e.At.Revision == last {
						return
					}
				}
			}()
			<-parked
			w.commit(1199) // nobody reads
			live := w.attach(h, Request{})
			w.commit(1)
			follow(t, live, last) // the ring is as far
			release <- true
			<-done
			sequence(t, revs, from+1, last)
			if lags < 1 || lagged == 0 { // more than one if the hub was behind, too
				t.Errorf("%d lags, of %d commits", lags, lagged)
			}
			w.commit(20)
			got, lags := follow(t, s, last+20)
			sequence(t, got, last+1, last+20)
			if lags != 0 {
				t.Error("it lags in the ring")
			}
		})
	}
}

// TestEvents_DurableOnly_Q117_D10_D11 covers Q117: what is not acknowledged is
// not shown, unless asked for, and is then marked. After a restart everything
// recovered is there without a write.
func TestEvents_DurableOnly_Q117_D10_D11(t *testing.T) {
	w := newWorld(t, Options{})
	w.commit(2)
	complete := NewHub(w.log, Options{Complete: true})
	beside := w.other(Options{}, pagelog.ReaderOptions{})
	durable := w.attach(w.hub, Request{})
	eager := []*Subscription{w.attach(complete, Request{}), w.attach(beside, Request{})}
	var b pagelog.Batch
	b.CompleteOnly = true
	b.Add(pagelog.Record{Kind: 1, Data: payload(3)})
	b.Key([]byte("odd"), []byte("3"))
	if _, err := w.log.Commit(context.Background(), &b); err != nil {
		t.Fatal(err)
	}
	for _, s := range eager {
		for e, err := range s.Events(deadline(t)) {
			if err != nil || e.Commit.Revision != 3 || e.Commit.Durable {
				t.Fatal(e, err)
			}
			break
		}
	}
	if got, _, _, _ := w.hub.take(make([]*Commit, 0, 4), 2); len(got) > 0 || durable.Cursor().Revision != 2 {
		t.Fatal("an unacknowledged commit is published")
	}
	if s := w.attach(w.hub, Request{}); s.Cursor().Revision != 2 {
		t.Fatalf("attached at %v", s.Cursor())
	}
	if err := w.log.Sync(context.Background()); err != nil {
		t.Fatal(err)
	}
	for e, err := range durable.Events(deadline(t)) {
		if err != nil || e.Commit.Revision != 3 || !e.Commit.Durable {
			t.Fatal(e, err)
		}
		break
	}
	if err := complete.Close(); err != nil {
		t.Fatal(err)
	}
	w.end()
	var err error
	if w.log, err = pagelog.Open(w.path, pagelog.Options{}); err != nil {
		t.Fatal(err)
	}
	w.hub = NewHub(w.log, Options{})
	if s := w.attach(w.hub, Request{After: durable.Cursor()}); s.Cursor().Revision != 3 {
		t.Fatal(s.Cursor())
	}
	s := w.attach(w.hub, Request{Baseline: true})
	n := 0
	for page, err := range s.Baseline(deadline(t)) {
		if err != nil {
			t.Fatal(err)
		}
		n += len(page.Commits)
	}
	if n != 3 {
		t.Errorf("%d commits in the baseline", n)
	}
}

// TestEvents_Bookmarks_Q118_Q121_D18 covers Q118: in a filtered view the cursor
// moves on over what it does not show, never ahead of what it did; and Q121: an
// observer and a lookup agree.
func TestEvents_Bookmarks_Q118_Q121_D18(t *testing.T) {
	w := newWorld(t, Options{RingBytes: 64 << 10})
	view := View{Kinds: []uint32{2}, Namespace: "even"} // revisions 2, 8, 14, …
	s := w.attach(w.hub, Request{View: view})
	w.commit(5003)
	var revs []uint64
	bookmarks := 0
	for e, err := range s.Events(deadline(t)) {
		if err != nil {
			t.Fatal(err)
		}
		switch e.Kind {
		case Bookmark:
			bookmarks++
		case Committed:
			if rev := e.Commit.Revision; rev%6 != 2 || len(e.Commit.Records) != 1 || e.At.Revision != rev {
				t.Fatalf("%+v", e)
			}
			revs = append(revs, e.Commit.Revision)
		}
		if e.At.Revision == 5003 {
			break
		}
	}
	if len(revs) != 5000/6+1 || bookmarks == 0 {
		t.Errorf("%d commits, %d bookmarks", len(revs), bookmarks)
	}
	for _, rev := range revs[:50] {
		if at, _, err := w.log.Lookup([]byte("even"), strconv.AppendUint(nil, rev, 10)); err != nil || at != rev {
			t.Fatal(at, err)
		}
	}
	none := w.attach(w.hub, Request{View: View{Kinds: []uint32{77}}})
	w.commit(10)
	for e, err := range none.Events(deadline(t)) {
		if err != nil || e.Kind != Bookmark {
			t.Fatal(e, err)
		}
		if e.At.Revision == 5013 {
			break
		}
	}
	again := w.attach(w.hub, Request{View: View{Kinds: []uint32{77}}, After: none.Cursor()})
	if again.Cursor() != none.Cursor() {
		t.Error(again.Cursor())
	}
}

// TestEvents_Notes_Q112 covers Q112: of one channel the newest note is
// delivered, with how many it stands for, and none after a commit that came
// after it.
func TestEvents_Notes_Q112(t *testing.T) {
	w := newWorld(t, Options{})
	w.commit(1)
	s := w.attach(w.hub, Request{Notes: true})
	quiet := w.attach(w.hub, Request{})
	note := func(channel, text string) {
		t.Helper()
		if err := w.hub.Note(channel, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	next := func() Event {
		t.Helper()
		for e, err := range s.Events(deadline(t)) {
			if err != nil {
				t.Fatal(err)
			}
			return e
		}
		panic("no event")
	}
	want := func(channel, text string, count uint64) {
		t.Helper()
		if e := next(); e.Kind != Noted || e.Note.Channel != channel || string(e.Note.Data) != text || e.Note.Count != count {
			t.Fatalf("%+v, want %s %s %d", e, channel, text, count)
		}
	}
	for i := range 1000 {
		note("a", fmt.Sprint(i))
	}
	note("b", "x")
	want("a", "999", 1000)
	want("b", "x", 1)
	note("a", "more")
	want("a", "more", 1)
	note("a", "stale")
	w.commit(1)
	e := next()
	if e.Kind == Noted && string(e.Note.Data) == "stale" && e.At.Revision == 1 {
		e = next() // the commit was not here yet: the note still comes before it
	}
	if e.Kind != Committed || e.At.Revision != 2 {
		t.Fatalf("%+v", e)
	}
	note("b", "fresh")
	want("b", "fresh", 1)
	for i := range maxChannels - 1 {
		note(fmt.Sprint("channel ", i), "")
	}
	if err := w.hub.Note("one more", nil); !errors.Is(err, ErrTooMany) {
		t.Fatal(err)
	}
	w.commit(1)
	if revs, _ := follow(t, quiet, 3); len(revs) != 2 {
		t.Error(revs)
	}
}

// TestEvents_Notes_Order_Q112 has a writer note its progress and commit while
// observers look: no note is delivered behind a commit that came after it.
func TestEvents_Notes_Order_Q112(t *testing.T) {
	w := newWorld(t, Options{RingBytes: 1 << 10})
	w.commit(1)
	var wg sync.WaitGroup
	for range 4 {
		s := w.attach(w.hub, Request{Notes: true})
		wg.Go(func() {
			for e, err := range s.Events(deadline(t)) {
				if err != nil {
					t.Error(err)
					return
				}
				if e.Kind == Noted {
					after, err := strconv.ParseUint(string(e.Note.Data), 10, 64)
					if err != nil || after != e.At.Revision {
						t.Errorf("a note made at %d is delivered at %d", after, e.At.Revision)
					}
				}
				if e.At.Revision >= 400 {
					return
				}
			}
		})
	}
	for rev := uint64(1); rev < 400; rev++ {
		for range 3 {
			if err := w.hub.Note("progress", strconv.AppendUint(nil, rev, 10)); err != nil {
				t.Fatal(err)
			}
		}
		w.commit(1)
	}
	wg.Wait()
}

// TestEvents_Immutable_Q108 covers Q108: what was delivered stays as it was
// after it left the ring.
func TestEvents_Immutable_Q108(t *testing.T) {
	w := newWorld(t, Options{RingBytes: 4 << 10})
	s := w.attach(w.hub, Request{})
	var kept []*Commit
	for range 20 {
		w.commit(50)
		for e, err := range s.Events(deadline(t)) {
			if err != nil {
				t.Fatal(err)
			}
			if e.Kind == Committed {
				kept = append(kept, e.Commit)
			}
			if e.At.Revision == w.log.Durable().Revision {
				break
			}
		}
	}
	for _, c := range kept {
		right(t, c)
	}
	sequence(t, slices.Collect(func(yield func(uint64) bool) {
		for _, c := range kept {
			if !yield(c.Revision) {
				return
			}
		}
	}), 1, 1000)
}

// TestEvents_Ends_Q119 covers Q119: an observer can end its own waits, and
// nothing else; closing the hub ends all.
func TestEvents_Ends_Q119(t *testing.T) {
	w := newWorld(t, Options{})
	w.commit(1)
	wait := func(s *Subscription, ctx context.Context) chan error {
		out := make(chan error, 1)
		go func() {
			var last error
			for _, err := range s.Events(ctx) {
				last = err
			}
			out <- last
		}()
		return out
	}
	a, b, c := w.attach(w.hub, Request{}), w.attach(w.hub, Request{}), w.attach(w.hub, Request{})
	ctx, cancel := context.WithCancel(context.Background())
	endA, endB, endC := wait(a, ctx), wait(b, deadline(t)), wait(c, deadline(t))
	cancel()
	if err := <-endA; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-endB; !errors.Is(err, ErrClosed) {
		t.Fatal(err)
	}
	if err := b.Close(); !errors.Is(err, ErrClosed) {
		t.Fatal(err)
	}
	w.commit(1) // the log goes on, and so does a
	if revs, _ := follow(t, a, 2); len(revs) != 1 {
		t.Fatal(revs)
	}
	if err := w.hub.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-endC; !errors.Is(err, ErrClosed) {
		t.Fatal(err)
	}
	if _, err := w.hub.Attach(context.Background(), Request{}); !errors.Is(err, ErrClosed) {
		t.Fatal(err)
	}
	if err := w.hub.Note("a", nil); !errors.Is(err, ErrClosed) {
		t.Fatal(err)
	}
	w.commit(1)
}

// TestMemory_Q111_Q123 covers Q111 and Q123: a parked observer holds next to
// nothing, however far behind it is, and one that catches up a page.
func TestMemory_Q111_Q123(t *testing.T) {
	heap := func() int64 { // the least of a few looks: buffers on their way to a pool are nobody's
		least := int64(math.MaxInt64)
		for range 5 {
			runtime.GC()
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			least = min(least, int64(m.HeapAlloc))
			runtime.Gosched()
		}
		return least
	}
	w := newWorld(t, Options{RingBytes: 64 << 10, PageBytes: 16 << 10})
	w.commit(10)
	before := heap()
	const n = 1000
	subs := make([]*Subscription, n)
	for i := range subs {
		subs[i] = w.attach(w.hub, Request{Notes: true})
	}
	w.commit(10_000)
	follow(t, w.attach(w.hub, Request{}), 10_010) // the hub is as far
	if per := (heap() - before - 2<<20) / n; per > 2000 {
		t.Errorf("%d bytes for each parked observer", per)
	}
	var wg sync.WaitGroup
	half := make(chan bool)
	for _, s := range subs[:200] {
		wg.Go(func() {
			for e, err := range s.Events(deadline(t)) {
				if err != nil {
					t.Error(err)
					return
				}
				if e.At.Revision == 5000 {
					break
				}
			}
			<-half
		})
	}
	for range 200 {
		half <- true
	}
	wg.Wait()
	if per := (heap() - before - 4<<20) / n; per > 4000 {
		t.Errorf("%d bytes for each lagging observer", per)
	}
	if w.hub.bytes > 64<<10 {
		t.Errorf("the ring holds %d bytes", w.hub.bytes)
	}
	runtime.KeepAlive(subs)
}
