package pagelog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/tidemark-log/tidemark/cursor"
	"github.com/tidemark-log/tidemark/frame"
)

// continued makes a log of n commits, and one that begins after the first k of
// them and holds the rest.
func continued(t *testing.T, n, k int, o Options) (whole, rest *sim) {
	t.Helper()
	whole, rest = newSim(t), newSim(t)
	rest.dice.state = 99 // or both had the same identity
	a := whole.create(small, o)
	for i := range k {
		commit(t, a, payload(i, i*37%900))
	}
	c := small
	c.Base = a.Cursor(a.Head())
	b := rest.create(c, o)
	for i := k; i < n; i++ {
		x, y := commit(t, a, payload(i, i*37%900)), commit(t, b, payload(i, i*37%900))
		if x != y {
			t.Fatalf("commit %d is %+v in one piece, %+v behind the base", i+1, x, y)
		}
	}
	closeLog(t, a)
	closeLog(t, b)
	return whole, rest
}

// TestBase_L55 holds a log that begins after a point of another one against one
// that has it all: same revisions, digests and contents above the base, nothing
// below it.
func TestBase_L55(t *testing.T) {
	for _, every := range []int64{-1, 300} {
		const n, k = 60, 23
		whole, rest := continued(t, n, k, Options{CheckpointEvery: every})
		for range 3 { // opening it again changes nothing
			closeLog(t, rest.open(Options{}))
			closeLog(t, whole.open(Options{}))
		}
		a, b := whole.reader(ReaderOptions{}), rest.reader(ReaderOptions{})
		if b.Oldest() != k+1 || b.LogID() == a.LogID() {
			t.Fatal(b.Oldest(), b.LogID())
		}
		want, err := contents(a, k)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := contents(b, k); err != nil || !slices.Equal(got, want) {
			t.Fatalf("%d commits, %v; want %d", len(got), err, len(want))
		}
		var g, h Group
		for rev := uint64(k + 1); rev <= n; rev++ {
			if err := errors.Join(a.At(rev, &g), b.At(rev, &h)); err != nil || g.Commit != h.Commit {
				t.Fatalf("%+v %+v %v", g.Commit, h.Commit, err)
			}
		}
		last := uint64(0)
		for g, err := range b.Backward(0) {
			if err != nil {
				t.Fatal(err)
			}
			last = g.Revision
		}
		if last != k+1 {
			t.Errorf("backward ends at %d", last)
		}
		if r, err := verifyFile(context.Background(), &memFile{b: rest.bytes()}, VerifyOptions{}, plan{workers: 1, stretch: 4096}); err != nil || len(r.Findings) != 0 || r.Groups != n-k {
			t.Errorf("%s %v", r.describe(), err)
		}
	}
}

// TestBase_L55_Cursors: a cursor below the base lost commits, one exactly at it
// lost nothing, and the other log's is foreign.
func TestBase_L55_Cursors(t *testing.T) {
	const n, k = 30, 12
	whole, rest := continued(t, n, k, Options{})
	a, b := whole.reader(ReaderOptions{}), rest.reader(ReaderOptions{})
	at := func(rev uint64, log cursor.LogID) cursor.Cursor {
		d, err := a.DigestAt(rev)
		if err != nil {
			t.Fatal(err)
		}
		return cursor.Cursor{Position: cursor.Position{Log: log, Revision: rev}, Digest: d}
	}
	first := func(c cursor.Cursor) (uint64, error) {
		for g, err := range b.From(c) {
			if err != nil {
				return 0, err
			}
			return g.Revision, nil
		}
		return 0, nil
	}
	for rev := uint64(0); rev <= n; rev++ {
		if _, err := first(at(rev, a.LogID())); !errors.Is(err, cursor.ErrForeign) {
			t.Errorf("the other log's cursor at %d: %v", rev, err)
		}
		got, err := first(at(rev, b.LogID()))
		var gone *cursor.CompactedError
		switch {
		case rev < k && (!errors.As(err, &gone) || gone.Oldest != k+1):
			t.Errorf("cursor %d, below the base: %v", rev, err)
		case rev >= k && rev < n && (err != nil || got != rev+1):
			t.Errorf("cursor %d: goes on with %d, %v", rev, got, err)
		case rev == n && (err != nil || got != 0):
			t.Errorf("cursor at the head: %d, %v", got, err)
		}
		var g Group
		if err := b.At(rev, &g); rev <= k && (!errors.As(err, &gone) || gone.Oldest != k+1) {
			t.Errorf("revision %d, at or below the base: %v", rev, err)
		}
	}
	wrong := at(k, b.LogID())
	wrong.Digest++
	if _, err := first(wrong); !errors.Is(err, cursor.ErrDiverged) {
		t.Errorf("another base: %v", err)
	}
	if d, err := b.DigestAt(k); err != nil || d != at(k, a.LogID()).Digest {
		t.Errorf("digest of the base: %v, %v", d, err)
	}
}

// TestBase_L55_SlotsLost: where history begins is in the identity, so a log
// that lost both slots still knows it.
func TestBase_L55_SlotsLost(t *testing.T) {
	const n, k = 30, 12
	_, rest := continued(t, n, k, Options{CheckpointEvery: 200})
	b := rest.bytes()
	for _, off := range frame.SlotOffsets {
		b[off+100] ^= 1
	}
	rest.put(b)
	if r := rest.reader(ReaderOptions{}); r.Oldest() != k+1 {
		t.Errorf("the oldest is %d", r.Oldest())
	}
	l := rest.open(Options{})
	if h := l.Head(); h.Revision != n || l.Oldest() != k+1 {
		t.Errorf("head %d, oldest %d", h.Revision, l.Oldest())
	}
	if c := commit(t, l, []byte("on")); c.Revision != n+1 {
		t.Errorf("goes on with %d", c.Revision)
	}
	closeLog(t, l)
}

// TestBase_L55_Refused: what cannot be a base is refused before a file exists.
func TestBase_L55_Refused(t *testing.T) {
	for name, base := range map[string]cursor.Cursor{
		"no log":   {Position: cursor.Position{Revision: 3}},
		"a view":   {Position: cursor.Position{Log: cursor.LogID{1}, Revision: 3}, View: 9},
		"no room":  {Position: cursor.Position{Log: cursor.LogID{1}, Revision: 1 << 63}},
		"overflow": {Position: cursor.Position{Log: cursor.LogID{1}, Revision: 1<<64 - 1}},
	} {
		s := newSim(t)
		if _, err := CreateIn(s.env(), logName, CreateOptions{Base: base}, Options{}); err == nil {
			t.Errorf("%s: taken", name)
		}
		if names, err := s.fs.Dir().Names(); err != nil || len(names) != 0 {
			t.Errorf("%s: left behind %v, %v", name, names, err)
		}
	}
	s := newSim(t) // the place before the first commit is a base as any other
	l := s.create(CreateOptions{Base: cursor.Cursor{Position: cursor.Position{Log: cursor.LogID{1}}}}, Options{})
	if c := commit(t, l, []byte("x")); c.Revision != 1 || l.Oldest() != 1 {
		t.Error(c, l.Oldest())
	}
	closeLog(t, l)
	if got := fmt.Sprint(contents(s.reader(ReaderOptions{}), 0)); got != "[x|] <nil>" {
		t.Error(got)
	}
}
