package observer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/tidemark-log/tidemark/cursor"
	"github.com/tidemark-log/tidemark/pagelog"
)

// keyed is a world whose commits use a few hundred keys again and again.
type keyed struct {
	*world
	dice *rand.Rand
	at   map[string]string            // namespace/key: revision and payload
	past map[uint64]map[string]string // at, by revision
	mu   sync.Mutex
}

func newKeyed(t testing.TB, o Options) *keyed {
	return &keyed{
		world: newWorld(t, o), dice: rand.New(rand.NewPCG(5, 6)),
		at: map[string]string{}, past: map[uint64]map[string]string{},
	}
}

// put makes n durable commits, each with up to six records, most of them with a
// key or two.
func (k *keyed) put(n int) {
	k.t.Helper()
	for i := range n {
		rev := k.log.Head().Revision + 1
		var b pagelog.Batch
		b.CompleteOnly = i < n-1
		k.mu.Lock()
		for j := range 1 + k.dice.IntN(6) {
			data := fmt.Sprintf("%d.%d%s", rev, j, strings.Repeat("x", k.dice.IntN(200)))
			b.Add(pagelog.Record{Kind: uint32(j % 3), Data: []byte(data)})
			for range k.dice.IntN(3) {
				ns := []string{"a", "b"}[k.dice.IntN(2)]
				key := fmt.Sprint(k.dice.IntN(300))
				b.Key([]byte(ns), []byte(key))
				k.at[ns+"/"+key] = fmt.Sprintf("%d %s", rev, data)
			}
		}
		k.past[rev] = maps.Clone(k.at)
		k.mu.Unlock()
		if _, err := k.log.Commit(context.Background(), &b); err != nil {
			k.t.Error(err)
			return
		}
	}
}

// was returns what the keys of a namespace led to, of all if it is empty.
func (k *keyed) was(rev uint64, namespace string) map[string]string {
	k.mu.Lock()
	defer k.mu.Unlock()
	m := maps.Clone(k.past[rev])
	maps.DeleteFunc(m, func(key, _ string) bool { return namespace != "" && !strings.HasPrefix(key, namespace+"/") })
	return m
}

// entries reads a baseline and checks its pages; between calls between pages.
func (k *keyed) entries(s *Subscription, q Request, between func()) (map[string]string, error) {
	k.t.Helper()
	got, at := map[string]string{}, s.Cursor()
	last, record := uint64(0), uint32(0)
	for page, err := range s.Baseline(deadline(k.t)) {
		if err != nil {
			return got, err
		}
		size := int64(0)
		for _, e := range page.Entries {
			name := e.Namespace + "/" + e.Key
			if _, twice := got[name]; twice {
				k.t.Errorf("key %s is there twice", name)
			}
			if e.Revision < last || e.Revision == last && e.Record.Index < record {
				k.t.Errorf("key %s of revision %d, record %d, follows %d, %d", name, e.Revision, e.Record.Index, last, record)
			}
			last, record = e.Revision, e.Record.Index
			got[name] = fmt.Sprintf("%d %s", e.Revision, e.Record.Data)
			size += overhead + int64(len(e.Key)+len(e.Namespace)+len(e.Record.Data))
		}
		if page.At != at || len(page.Commits)+len(page.State) != 0 {
			k.t.Errorf("a page at %v with %d commits in a baseline at %v", page.At, len(page.Commits), at)
		}
		if n := len(page.Entries); n > q.PageItems || n > 1 && size > q.PageBytes {
			k.t.Errorf("a page of %d entries, %d bytes; the limits are %d and %d", n, size, q.PageItems, q.PageBytes)
		}
		between()
	}
	return got, nil
}

// TestBaseline_Entries_Q105_Q107: a baseline of the index is what every key of a
// namespace led to at one revision, within its limits, while the writer goes on
// and uses the same keys; with the commits from there on it gives what the keys
// lead to later. In the writer's process and beside it.
func TestBaseline_Entries_Q105_Q107(t *testing.T) {
	k := newKeyed(t, Options{PageBytes: 4000})
	other := k.other(Options{PageBytes: 9000}, pagelog.ReaderOptions{Durable: true})
	k.put(200)
	if err := k.log.Checkpoint(context.Background(), 60, []byte("a state, which entries do without")); err != nil {
		t.Fatal(err)
	}
	for i, h := range []*Hub{k.hub, other, k.hub, other} {
		q := Request{Baseline: true, Entries: true, PageItems: 1 + 20*i, PageBytes: int64(500 + 700*i)}
		q.View.Namespace = []string{"a", "b", "", "a"}[i]
		s := k.attach(h, q)
		at := s.Cursor().Revision
		got, err := k.entries(s, q, func() { k.put(2) })
		if err != nil {
			t.Fatal(err)
		}
		if want := k.was(at, q.View.Namespace); !maps.Equal(got, want) || len(want) < 200 {
			t.Fatalf("%d entries at revision %d, want %d", len(got), at, len(want))
		}
		last := k.log.Durable().Revision
		if last < at+5 {
			t.Fatalf("the writer stood still: %d at the end, %d at the beginning", last, at)
		}
		for e, err := range s.Events(deadline(t)) {
			if err != nil {
				t.Fatal(err)
			}
			if e.Kind == Committed {
				for _, key := range e.Commit.Keys {
					if q.View.Namespace == "" || key.Namespace == q.View.Namespace {
						got[key.Namespace+"/"+key.Key] = fmt.Sprintf("%d %s", e.Commit.Revision, e.Commit.record(key.Record).Data)
					}
				}
			}
			if e.At.Revision == last && e.Kind != Lag {
				break
			}
		}
		if want := k.was(last, q.View.Namespace); !maps.Equal(got, want) {
			t.Fatalf("%d entries and what followed are not what the keys lead to at revision %d", len(got), last)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := k.hub.Attach(context.Background(), Request{Entries: true}); err == nil {
		t.Error("entries without a baseline")
	}
	if n := k.hub.baselines; n != 0 {
		t.Errorf("%d baselines are left", n)
	}
	none := Commit{Records: []Record{{Index: 1}}}
	if r := none.record(2); !errors.Is(r.Err, pagelog.ErrCorrupt) {
		t.Errorf("a record that is none: %+v", r)
	}
}

// TestBaseline_Entries_Dropped_Q115: after retention a baseline says from which
// revision on it knows; one that was begun before ends with ErrCompacted.
func TestBaseline_Entries_Dropped_Q115(t *testing.T) {
	k := newKeyed(t, Options{PageBytes: 2000})
	k.put(300)
	q := Request{Baseline: true, Entries: true, PageItems: 3, PageBytes: 1000}
	s := k.attach(k.hub, q)
	first := true
	_, err := k.entries(s, q, func() {
		if first {
			if err := k.log.Retain(context.Background(), 250); err != nil {
				t.Fatal(err)
			}
		}
		first = false
	})
	var gone *cursor.CompactedError
	if !errors.As(err, &gone) || gone.Oldest != 250 {
		t.Errorf("a baseline whose commits were dropped: %v", err)
	}
	s = k.attach(k.hub, Request{Baseline: true, Entries: true})
	n := 0
	for page, err := range s.Baseline(deadline(t)) {
		if err != nil || page.Oldest != 250 {
			t.Fatalf("oldest %d, %v", page.Oldest, err)
		}
		for _, e := range page.Entries {
			if k.was(300, "")[e.Namespace+"/"+e.Key] != fmt.Sprintf("%d %s", e.Revision, e.Record.Data) || e.Revision < 250 {
				t.Errorf("%+v", e)
			}
			n++
		}
	}
	if n < 50 {
		t.Errorf("%d entries", n)
	}
}

// TestBaseline_OneGeneration_Q107: a baseline that was begun before a compaction
// ends with ErrReplaced, of commits and of entries alike, and shows nothing of
// the new file; what follows it goes on there, and the next baseline is whole.
func TestBaseline_OneGeneration_Q107(t *testing.T) {
	for _, entries := range []bool{false, true} {
		k := newKeyed(t, Options{})
		k.put(300)
		k.end()
		h := k.other(Options{PageBytes: 2000}, pagelog.ReaderOptions{})
		q := Request{Baseline: true, Entries: entries, PageItems: 2, PageBytes: 1000}
		s := k.attach(h, q)
		pages := 0
		var failed error
		for _, err := range s.Baseline(deadline(t)) {
			if failed = err; err != nil {
				break
			}
			if pages++; pages != 3 {
				continue
			}
			report, err := pagelog.Compact(context.Background(), k.path, pagelog.CompactOptions{})
			if err != nil || report.Generation != 2 {
				t.Fatal(report, err)
			}
		}
		// The page that was being filled may be whole; the one after it is not.
		if !errors.Is(failed, pagelog.ErrReplaced) || pages < 3 || pages > 20 {
			t.Errorf("entries %v: %d pages, then %v", entries, pages, failed)
		}
		var err error
		if k.log, err = pagelog.Open(k.path, pagelog.Options{}); err != nil {
			t.Fatal(err)
		}
		k.put(5)
		last := k.log.Durable().Revision
		revs := []uint64{}
		for e, err := range s.Events(deadline(t)) {
			if err != nil {
				t.Fatal(err)
			}
			if e.Kind == Committed {
				revs = append(revs, e.Commit.Revision)
			}
			if e.At.Revision == last && e.Kind != Lag {
				break
			}
		}
		sequence(t, revs, 301, 305)
		q = Request{Baseline: true, Entries: true, PageItems: 50, PageBytes: 9000}
		again := k.attach(h, q)
		if got, err := k.entries(again, q, func() {}); err != nil || !maps.Equal(got, k.was(305, "")) {
			t.Errorf("after the compaction: %d entries, %v", len(got), err)
		}
		if err := errors.Join(s.Close(), again.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestBaseline_Entries_Damaged_L39: what a damaged index cannot tell is an
// error, never an entry that is missing.
func TestBaseline_Entries_Damaged_L39(t *testing.T) {
	k := newKeyed(t, Options{})
	var b pagelog.Batch
	for i := range 9000 {
		b.Append([]byte("value"))
		b.Key([]byte("many"), fmt.Append(nil, i))
	}
	if _, err := k.log.Commit(context.Background(), &b); err != nil {
		t.Fatal(err)
	}
	k.put(100)
	k.end()
	raw, err := os.ReadFile(k.path)
	if err != nil {
		t.Fatal(err)
	}
	runs := 0
	for at := 0; at+300 < len(raw); at += 8 { // kind and flags of a record with a piece of a run
		if string(raw[at:at+8]) == "\x02\x00\xff\xff\x00\x00\x00\x00" {
			raw[at+300] ^= 1
			runs++
		}
	}
	if err := os.WriteFile(k.path, raw, 0o600); err != nil || runs == 0 {
		t.Fatal(runs, err)
	}
	if k.log, err = pagelog.Open(k.path, pagelog.Options{}); err != nil {
		t.Fatal(err)
	}
	k.hub = NewHub(k.log, Options{})
	s := k.attach(k.hub, Request{Baseline: true, Entries: true, View: View{Namespace: "many"}})
	n := 0
	var failed error
	for page, err := range s.Baseline(deadline(t)) {
		n += len(page.Entries)
		failed = err
	}
	if !errors.Is(failed, pagelog.ErrIndexDamaged) || n >= 9000 {
		t.Errorf("%d entries, then %v", n, failed)
	}
}
