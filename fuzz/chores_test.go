package fuzz

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"testing"

	"github.com/tidemark-log/tidemark/checkpoint"
	"github.com/tidemark-log/tidemark/fork"
	"github.com/tidemark-log/tidemark/frame"
	"github.com/tidemark-log/tidemark/pagelog"
)

// FuzzForkRecord: what decodes encodes to the same bytes, and nothing panics.
func FuzzForkRecord(f *testing.F) {
	r := fork.Record{Source: [16]byte{1, 2}, Revision: 41, Digest: 7, End: 8192}
	f.Add(r.Encode())
	f.Add(make([]byte, fork.RecordSize))
	f.Fuzz(func(t *testing.T, b []byte) {
		if r, err := fork.DecodeRecord(b); err == nil && !bytes.Equal(r.Encode(), b) {
			t.Fatalf("%x decodes to what encodes as %x", b, r.Encode())
		}
	})
}

// FuzzFloor is FuzzForkRecord for floor records.
func FuzzFloor(f *testing.F) {
	floor := checkpoint.Floor{Place: frame.Place{Offset: 8192, Revision: 3, Digest: 5}, Generation: 2}
	f.Add(floor.Encode())
	f.Add(make([]byte, checkpoint.FloorSize))
	f.Fuzz(func(t *testing.T, b []byte) {
		if floor, err := checkpoint.DecodeFloor(b); err == nil && !bytes.Equal(floor.Encode(), b) {
			t.Fatalf("%x decodes to what encodes as %x", b, floor.Encode())
		}
	})
}

// chored is a log that was forked, shortened or compacted, in any order.
type chored struct {
	name    string
	b       []byte
	ends    []int64 // interesting offsets: slots, pages and the end of history
	oldest  []uint64
	commits map[uint64]uint64 // digests by revision, dropped ones too
	head    uint64
}

// choredLogs are made once. Their histories are one and the same up to the
// commits of each life.
var choredLogs = sync.OnceValue(func() []chored {
	ctx := context.Background()
	var list []chored
	for _, s := range []struct {
		name  string
		words []string
	}{
		{"dropped", []string{"fill", "drop", "fill"}},
		{"dropped, then killed", []string{"fill", "drop", "kill"}},
		{"dropped twice", []string{"fill", "drop", "fill", "drop"}},
		{"compacted", []string{"fill", "compact", "fill"}},
		{"dropped and compacted", []string{"fill", "drop", "compact", "fill"}},
		{"a fork", []string{"fill", "fork", "fill"}},
		{"a fork of a fork", []string{"fill", "fork", "fill", "fork"}},
		{"a fork behind a floor", []string{"fill", "drop", "fork", "fill"}},
		{"a compacted fork that dropped", []string{"fill", "fork", "fill", "drop", "compact"}},
	} {
		w := newWorld(nil)
		must(w.fs.Dir().Remove(logName))
		l, err := pagelog.CreateIn(w.env(), logName, pagelog.CreateOptions{PageSize: 4096}, pagelog.Options{CheckpointEvery: -1})
		must(err)
		c := chored{name: s.name, commits: map[uint64]uint64{}, oldest: []uint64{1}}
		n := 0
		for _, word := range s.words {
			switch word {
			case "fill":
				for i := range 12 {
					n++
					var b pagelog.Batch
					b.Append(bytes.Repeat([]byte{byte(n)}, 10+i*211%1500))
					b.Key([]byte("k"), fmt.Append(nil, n))
					made, err := l.Commit(ctx, &b)
					must(err)
					c.commits[made.Revision] = uint64(made.Digest)
				}
				must(l.Checkpoint(ctx, l.Head().Revision, []byte("state")))
			case "drop":
				must(l.Retain(ctx, l.Head().Revision-3))
				c.oldest = append(c.oldest, l.Oldest())
			case "compact":
				must(l.Close())
				_, err := pagelog.CompactIn(ctx, w.env(), logName, pagelog.CompactOptions{})
				must(err)
				l, err = pagelog.OpenIn(w.env(), logName, pagelog.Options{CheckpointEvery: -1})
				must(err)
			case "fork":
				at := l.Head().Revision
				if l.Oldest() == 1 {
					at -= 2 // a state before that is still there
				}
				must(l.Close())
				r, err := pagelog.OpenReaderIn(w.env(), logName, pagelog.ReaderOptions{Durable: true})
				must(err)
				made, err := fork.CreateIn(ctx, r, w.env(), "fork", fork.Options{At: at})
				must(errors.Join(err, r.Close()))
				b, err := w.fs.ReadFile("fork")
				must(errors.Join(err, w.fs.Dir().Remove("fork")))
				w.fs.WriteFile(logName, b)
				for rev := range c.commits {
					if rev > made.Revision {
						delete(c.commits, rev)
					}
				}
				c.commits[made.Head] = uint64(made.First)
				l, err = pagelog.OpenIn(w.env(), logName, pagelog.Options{CheckpointEvery: -1})
				must(err)
			}
		}
		c.head = l.Head().Revision
		if s.words[len(s.words)-1] == "kill" {
			w.fs.Kill()
		} else {
			must(l.Close())
		}
		c.b, err = w.fs.ReadFile(logName)
		must(err)
		c.ends = []int64{frame.IdentityOffset, frame.IdentityCopyOffset, frame.SlotOffsetA, frame.SlotOffsetB}
		for at := int64(4096); at < int64(len(c.b)); at += 4096 {
			c.ends = append(c.ends, at)
		}
		list = append(list, c)
	}
	return list
})

// edit changes the log as p says, six bytes a step, and reports how many places
// it changed.
func (c *chored) edit(p []byte) (b []byte, places int) {
	b = slices.Clone(c.b)
	for ; len(p) >= 6; p = p[6:] {
		at := c.ends[int(p[1])%len(c.ends)] + int64(p[2])<<4 + int64(p[3])
		if at >= int64(len(b)) {
			continue
		}
		places++
		n := min(1+int64(p[4]), int64(len(b))-at)
		switch p[0] % 4 {
		case 0:
			b[at] ^= 1 << (p[4] % 8)
		case 1:
			clear(b[at : at+n])
		case 2:
			for i := range n {
				b[at+i] = p[5] + byte(i)*p[4]
			}
		case 3:
			b = b[:at]
		}
	}
	return b, places
}

// sees reads a log and holds it against the history, of which a prefix is seen.
// Where it must be whole, all of it is, or the damage is told.
func (c *chored) sees(t *testing.T, what string, r *pagelog.Reader, whole bool, known map[uint64]uint64, head uint64) {
	t.Helper()
	oldest := r.Oldest()
	if !slices.Contains(c.oldest, oldest) || whole && oldest != c.oldest[len(c.oldest)-1] {
		t.Errorf("%s: the oldest is %d, not one of %v", what, oldest, c.oldest)
	}
	next := oldest
	for g, err := range r.Commits(oldest - 1) {
		if err != nil {
			c.told(t, what, err)
			return
		}
		if want, ok := known[g.Revision]; g.Revision != next || !ok || uint64(g.Digest) != want {
			t.Fatalf("%s: revision %d with digest %v where %d should stand", what, g.Revision, g.Digest, next)
		}
		next++
	}
	if next > head+1 || whole && next != head+1 {
		t.Errorf("%s: the last commit is %d, of %d", what, next-1, head)
	}
}

// told checks that an error is one of those for a file.
func (c *chored) told(t *testing.T, what string, err error) {
	t.Helper()
	for _, k := range append([]error{fs.ErrNotExist, fork.ErrForkPoint, pagelog.ErrReplaced, pagelog.ErrNotFound}, known...) {
		if errors.Is(err, k) {
			return
		}
	}
	t.Errorf("%s: %v", what, err)
}

// FuzzChores edits logs that were forked, shortened and compacted, and then
// reads, forks, opens, shortens and compacts them. Nothing panics or allocates
// beyond its bounds, no commit is seen that nobody wrote, and one place that was
// hit takes nothing away in silence.
func FuzzChores(f *testing.F) {
	for i := range byte(9) {
		f.Add([]byte{i})
		for at := range byte(16) {
			f.Add([]byte{i, 0, at, at * 5, at, 3, 0})
			f.Add([]byte{i, 1, at, 0, 0, 200, 0, 2, at + 3, 9, 1, 40, 7})
		}
		f.Add([]byte{i, 1, 2, 0, 0, 255, 0, 1, 3, 0, 0, 255, 0}) // both slots
		f.Add([]byte{i, 3, 7, 1, 0, 0, 0})
	}
	ctx := context.Background()
	f.Fuzz(func(t *testing.T, p []byte) {
		if len(p) == 0 || len(p) > 1+6*6 {
			return
		}
		c := &choredLogs()[int(p[0])%len(choredLogs())]
		b, places := c.edit(p[1:])
		whole := places <= 1 && c.name != "dropped, then killed" // all else is named by both slots
		w := newWorld(b)
		var r *pagelog.Reader
		var err error
		allocated(t, "verify", func() { _, _ = pagelog.VerifyIn(ctx, w.env(), logName, pagelog.VerifyOptions{Workers: 1}) })
		allocated(t, "a reader", func() { r, err = pagelog.OpenReaderIn(w.env(), logName, pagelog.ReaderOptions{Durable: true}) })
		if err != nil {
			c.told(t, "reader", err)
		} else {
			c.sees(t, "reader", r, whole && places == 0, c.commits, c.head) // without the newest slot less is proven
			made, err := fork.CreateIn(ctx, r, w.env(), "fork", fork.Options{})
			must(r.Close())
			c.child(t, w, made, err)
		}
		if now, _ := w.fs.ReadFile(logName); !bytes.Equal(now, b) {
			t.Fatal("looking at a log and forking it changed it")
		}
		_, err = pagelog.CompactIn(ctx, w.env(), logName, pagelog.CompactOptions{})
		if err != nil {
			c.told(t, "compact", err)
		}
		l, err := pagelog.OpenIn(w.env(), logName, pagelog.Options{CheckpointEvery: -1})
		if err != nil {
			c.told(t, "open", err)
			return
		}
		c.sees(t, "open", l.Reader, whole, c.commits, c.head)
		if err := l.Retain(ctx, l.Head().Revision); err != nil && !errors.Is(err, pagelog.ErrPinned) && !errors.Is(err, pagelog.ErrIndexDamaged) {
			c.told(t, "retain", err)
		}
		must(l.Close())
	})
}

// child looks at a fork of an edited log, or at why there is none.
func (c *chored) child(t *testing.T, w *world, made fork.Made, err error) {
	t.Helper()
	if err != nil {
		c.told(t, "fork", err)
		if _, err := w.fs.ReadFile("fork"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a fork that failed left a file: %v", err)
		}
		return
	}
	report, err := pagelog.VerifyIn(context.Background(), w.env(), "fork", pagelog.VerifyOptions{Workers: 1})
	if err != nil || !report.Sound() || report.Head != made.Head {
		t.Errorf("the fork: head %d of %d, %v, %v", report.Head, made.Head, report.Findings, err)
	}
	known := map[uint64]uint64{made.Head: uint64(made.First)}
	for rev, digest := range c.commits {
		if rev <= made.Revision {
			known[rev] = digest
		}
	}
	l, err := pagelog.OpenIn(w.env(), "fork", pagelog.Options{CheckpointEvery: -1})
	if err != nil {
		t.Fatalf("the fork: %v", err)
	}
	c.sees(t, "fork", l.Reader, false, known, made.Head)
	must(l.Close())
}
