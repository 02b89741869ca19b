package fork_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/tidemark-log/tidemark/fork"
	"github.com/tidemark-log/tidemark/internal/disk"
	"github.com/tidemark-log/tidemark/pagelog"
)

// keyed commits n records with keys, from revision from on.
func keyed(t testing.TB, l *pagelog.Log, from, n int) {
	t.Helper()
	for i := from; i < from+n; i++ {
		var b pagelog.Batch
		b.Append(payload(i, 900))
		b.Key([]byte("n"), fmt.Append(nil, "k", i))
		if _, err := l.Commit(ctx, &b); err != nil {
			t.Fatal(err)
		}
	}
}

// keys checks what a log says of the keys of revisions 1 to n.
func (w *world) keys(name string, oldest, last, n int) {
	w.t.Helper()
	r, err := pagelog.OpenReaderIn(w.env(), name, pagelog.ReaderOptions{})
	w.must(err)
	defer r.Close()
	l := w.open(name)
	defer ends(w.t, l)
	for _, r := range []*pagelog.Reader{r, l.Reader} {
		for i := 1; i <= n; i++ {
			rev, _, err := r.Lookup([]byte("n"), fmt.Append(nil, "k", i))
			switch {
			case i < oldest && errors.Is(err, pagelog.ErrCompacted), i > last && errors.Is(err, pagelog.ErrNoKey):
			case i > last && oldest > 1 && errors.Is(err, pagelog.ErrCompacted): // the runs below the floor are gone
			case i >= oldest && i <= last && err == nil && rev == uint64(i):
			default:
				w.t.Fatalf("%s: key of revision %d: %d, %v", name, i, rev, err)
			}
		}
	}
}

// TestFork_Keys: the keyed index goes along, whether or not runs and slots
// already know of the keys.
func TestFork_Keys(t *testing.T) {
	w := newWorld(t)
	l := w.create("log", pagelog.CreateOptions{PageSize: 4096})
	keyed(t, l, 1, 30)
	for _, at := range []uint64{30, 12} {
		name := fmt.Sprint("fork", at)
		w.forked("log", name, 29)
		w.keys(name, 1, 29, 40)
		w.must(l.Checkpoint(ctx, at, nil))
	}
	keyed(t, l, 31, 30)
	ends(t, l)
	for _, at := range []uint64{5, 30, 45, 60} {
		name := fmt.Sprint("later", at)
		w.forked("log", name, at)
		w.keys(name, 1, int(at), 70)
	}
}

// TestFork_L47_BehindAFloor: a fork of a log whose oldest commits were dropped
// begins where the source does, has the state that goes with its history, and
// says what it cannot have. A boundary below the floor is ErrCompacted.
func TestFork_L47_BehindAFloor(t *testing.T) {
	w := newWorld(t)
	l := w.create("log", pagelog.CreateOptions{PageSize: 4096})
	keyed(t, l, 1, 40)
	w.must(l.Checkpoint(ctx, 20, []byte("state of 20"))) // lies behind 40
	keyed(t, l, 41, 20)
	w.must(l.Retain(ctx, 15))
	source := w.history("log")
	for at := uint64(14); at <= 60; at++ {
		name := fmt.Sprint("fork", at)
		made, err := w.fork("log", name, fork.Options{At: at})
		if at < 20 { // the state before that of 20 is none that is left
			wants(t, err, pagelog.ErrCompacted)
			continue
		}
		w.must(err)
		if made.Oldest != 15 {
			t.Fatalf("at %d: oldest %d", at, made.Oldest)
		}
		w.follows(source, name, made)
		w.keys(name, 15, int(at), 70)
		f := w.open(name)
		if rev, state, err := f.LastCheckpoint(); err != nil || rev != 20 || string(state) != "state of 20" {
			t.Fatalf("at %d: state %q of %d, %v", at, state, rev, err)
		}
		ends(t, f)
		w.must(w.fs.ZeroSector(name, 4096)) // L27: both slots are lost
		w.must(w.fs.ZeroSector(name, 8192))
		if f = w.open(name); f.Oldest() != 15 {
			t.Fatalf("at %d: without slots the oldest is %d", at, f.Oldest())
		}
		ends(t, f)
		w.must(w.fs.Dir().Remove(name))
	}
	_, err := w.fork("log", "fork", fork.Options{At: 13})
	wants(t, err, pagelog.ErrCompacted)
	ends(t, l)
}

// TestFork_L47_RaceWithRetention: the source drops commits while it is forked.
// The fork begins at the floor found at the end, and what was freed under its
// hands is not in it; a boundary that is gone by then is ErrCompacted, and
// nothing is left behind.
func TestFork_L47_RaceWithRetention(t *testing.T) {
	for _, from := range []uint64{2, 12, 21, 30} {
		w := newWorld(t)
		l := w.create("log", pagelog.CreateOptions{PageSize: 4096})
		keyed(t, l, 1, 40)
		source := w.history("log")
		r, err := pagelog.OpenReaderIn(w.env(), "log", pagelog.ReaderOptions{Durable: true})
		w.must(err)
		once := false
		o := fork.Options{At: 20, Progress: func(done, total int64) {
			if !once { // in the middle of copying
				once = true
				w.must(l.Retain(ctx, from))
			}
		}}
		made, err := fork.CreateIn(ctx, r, w.env(), "fork", o)
		if from > 21 {
			wants(t, err, pagelog.ErrCompacted)
			if names, _ := w.fs.Dir().Names(); len(names) != 1 {
				t.Fatalf("left behind: %v", names)
			}
		} else {
			w.must(err)
			if made.Oldest != from || !once {
				t.Fatalf("from %d: oldest %d", from, made.Oldest)
			}
			w.follows(source, "fork", made)
		}
		w.must(r.Close())
		ends(t, l)
	}
}

// TestFork_OfACompactedFork: forked, compacted, forked again: the lineage leads
// on, salts are whose they were, and later groups of the source mean nothing.
func TestFork_OfACompactedFork(t *testing.T) {
	for _, from := range []uint64{1, 5, 14, 18} {
		w := newWorld(t)
		l := w.create("a", pagelog.CreateOptions{PageSize: 4096})
		keyed(t, l, 1, 12)
		ends(t, l)
		w.forked("a", "b", 10)
		l = w.open("b") // 11 is the fork record
		keyed(t, l, 12, 6)
		ends(t, l)
		w.forked("b", "c", 15)
		l = w.open("c")
		keyed(t, l, 17, 8)
		w.must(l.Retain(ctx, from))
		ends(t, l)
		history := w.history("c")
		report, err := pagelog.CompactIn(ctx, w.env(), "c", pagelog.CompactOptions{})
		w.must(err)
		if report.Generation != 2 {
			t.Fatalf("%+v", report)
		}
		w.sound("c")
		w.lineage("c", []uint64{10, 15}, [16]byte{})
		for _, at := range []uint64{from, 20, 24} {
			name := fmt.Sprint("d", at)
			made := w.forked("c", name, at)
			w.follows(history, name, made)
			source, child := w.bytes("c"), w.bytes(name)
			w.fs.WriteFile(name, append(bytes.Clone(child), source[min(len(child), len(source)):]...))
			f := w.open(name)
			if f.Head().Revision != made.Head {
				t.Fatalf("from %d, at %d: head %d", from, at, f.Head().Revision)
			}
			ends(t, f)
		}
	}
}

// TestFork_ReaderGoesOver: the source is compacted between plan and copy.
func TestFork_ReaderGoesOver(t *testing.T) {
	w := newWorld(t)
	l := w.create("log", pagelog.CreateOptions{PageSize: 4096})
	keyed(t, l, 1, 20)
	ends(t, l)
	source := w.history("log")
	r, err := pagelog.OpenReaderIn(w.env(), "log", pagelog.ReaderOptions{Durable: true})
	w.must(err)
	_, err = r.Head()
	w.must(err)
	_, err = pagelog.CompactIn(ctx, w.env(), "log", pagelog.CompactOptions{})
	w.must(err)
	made, err := fork.CreateIn(ctx, r, w.env(), "fork", fork.Options{At: 12})
	w.must(err)
	w.follows(source, "fork", made)
	once := false
	_, err = fork.CreateIn(ctx, r, w.env(), "other", fork.Options{Progress: func(int64, int64) {
		if !once {
			once = true
			_, err := pagelog.CompactIn(ctx, w.env(), "log", pagelog.CompactOptions{})
			w.must(err)
			_, err = r.Head() // somebody else goes over, and the file is closed
			w.must(err)
		}
	}})
	if err == nil || w.has("other") || errors.Is(err, disk.ErrNoClone) {
		t.Fatalf("the file went away under the fork: %v", err)
	}
	w.must(r.Close())
}
