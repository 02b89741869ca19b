package pagelog

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"pgregory.net/rapid"
)

// place is where a key leads to.
type keyPlace struct {
	rev    uint64
	record uint32
}

// indexModel is a log beside a map.
type indexModel struct {
	t      *rapid.T
	path   string
	opts   Options
	log    *Log
	reader *Reader
	want   map[string]keyPlace
	head   uint64
	next   int
}

// put commits some keys, of which some are used before.
func (m *indexModel) put(n int) {
	var b Batch
	b.CompleteOnly = true
	places := map[string]keyPlace{}
	again := rapid.IntRange(0, 40).Draw(m.t, "again")
	for i := range n {
		record := uint32(b.Len())
		b.Append([]byte("x"))
		id := m.next
		if i < again && m.next > 0 {
			id = rapid.IntRange(0, m.next-1).Draw(m.t, "id")
		} else {
			m.next++
		}
		ns := []string{"", "a", "ab"}[id%3]
		for range rapid.IntRange(1, 2).Draw(m.t, "times") {
			b.Key([]byte(ns), fmt.Appendf(nil, "%d", id))
		}
		places[fmt.Sprint(ns, "|", id)] = keyPlace{record: record}
	}
	c, err := m.log.Commit(context.Background(), &b)
	if err != nil {
		m.t.Fatal(err)
	}
	m.head = c.Revision
	for k, p := range places {
		p.rev = c.Revision
		m.want[k] = p
	}
}

func (m *indexModel) check(r *Reader, n int) {
	for range n {
		id := rapid.IntRange(0, m.next+5).Draw(m.t, "look up")
		ns := []string{"", "a", "ab"}[id%3]
		rev, record, err := r.Lookup([]byte(ns), fmt.Appendf(nil, "%d", id))
		want, ok := m.want[fmt.Sprint(ns, "|", id)]
		if ok && (err != nil || want != keyPlace{rev, record}) {
			m.t.Fatalf("key %d: %d/%d, %v; want %+v", id, rev, record, err, want)
		}
		if !ok && !errors.Is(err, ErrNoKey) {
			m.t.Fatalf("key %d: %d/%d, %v; want none", id, rev, record, err)
		}
	}
}

// TestIndex_Model_L39 covers L39 and C44: whatever is done to a log, each key
// leads to the newest record that was added under it, in the writer and in a
// reader.
func TestIndex_Model_L39(t *testing.T) {
	runs, most := 0, 40
	if testing.Short() {
		most = 12
	}
	rapid.Check(t, func(rt *rapid.T) {
		if runs++; runs > most {
			return
		}
		m := &indexModel{t: rt, path: filepath.Join(t.TempDir(), "a.log"), want: map[string]keyPlace{}}
		m.opts.CheckpointEvery = rapid.SampledFrom([]int64{0, 20_000, -1}).Draw(rt, "every")
		var err error
		page := rapid.SampledFrom([]int{4096, 16384}).Draw(rt, "page")
		if m.log, err = Create(m.path, CreateOptions{PageSize: page}, m.opts); err != nil {
			rt.Fatal(err)
		}
		if m.reader, err = OpenReader(m.path, ReaderOptions{}); err != nil {
			rt.Fatal(err)
		}
		defer func() {
			m.check(m.reader, 5)
			m.log.Close()
			m.reader.Close()
		}()
		rt.Repeat(map[string]func(*rapid.T){
			"put":  func(rt *rapid.T) { m.t = rt; m.put(rapid.IntRange(1, 60).Draw(rt, "keys")) },
			"many": func(rt *rapid.T) { m.t = rt; m.put(rapid.IntRange(1000, 5000).Draw(rt, "keys")) },
			"plain": func(rt *rapid.T) {
				var b Batch
				b.Append(make([]byte, 3000))
				if _, err := m.log.Commit(context.Background(), &b); err != nil {
					rt.Fatal(err)
				}
			},
			"reopen": func(rt *rapid.T) {
				if err := m.log.Close(); err != nil {
					rt.Fatal(err)
				}
				if m.log, err = Open(m.path, m.opts); err != nil {
					rt.Fatal(err)
				}
			},
			"reindex": func(rt *rapid.T) {
				if err := m.log.Reindex(context.Background()); err != nil {
					rt.Fatal(err)
				}
			},
			"look":  func(rt *rapid.T) { m.t = rt; m.check(m.log.Reader, 10) },
			"other": func(rt *rapid.T) { m.t = rt; m.check(m.reader, 10) },
			"": func(*rapid.T) {
				if m.log.indexer.broken != nil {
					rt.Fatal(m.log.indexer.broken)
				}
			},
		})
	})
}
