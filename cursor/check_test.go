package cursor

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// digestOf is the chain value of a commit in the tests' one straight history.
func digestOf(revision uint64) Digest { return Digest(revision * 0x9e3779b97f4a7c15) }

// straight describes a log of that history which fails the test if it is asked
// for a digest it need not remember.
func straight(t interface{ Errorf(string, ...any) }, oldest, head uint64) History {
	return History{Log: random, Oldest: oldest, Head: head, DigestAt: func(revision uint64) (Digest, error) {
		if revision > head || revision < oldest && oldest-revision > 1 {
			t.Errorf("asked for the digest of revision %d of %d to %d", revision, oldest, head)
		}
		return digestOf(revision), nil
	}}
}

func at(revision uint64) Cursor {
	return Cursor{Position: Position{Log: random, Revision: revision}, Digest: digestOf(revision)}
}

func TestCheck_L48(t *testing.T) {
	with := func(c Cursor, change func(*Cursor)) Cursor { change(&c); return c }
	const top = math.MaxUint64
	for _, tc := range []struct {
		name         string
		c            Cursor
		view         ViewID
		oldest, head uint64
		want         error
	}{
		{"at the head", at(9), 0, 1, 9, nil},
		{"below the head", at(4), 0, 1, 9, nil},
		{"before the first", at(0), 0, 1, 9, nil},
		{"before the first of an empty log", at(0), 0, 1, 0, nil},
		{"nothing dropped, said as 0", at(0), 0, 0, 9, nil},
		{"at the base of an empty log", at(20), 0, 21, 20, nil},
		{"at the oldest", at(5), 0, 5, 9, nil},
		{"exactly before the oldest", at(4), 0, 5, 9, nil},
		{"at the largest revision", at(top), 0, top, top, nil},
		{"before the largest revision", at(top - 1), 0, top, top, nil},
		{"in a view", with(at(4), func(c *Cursor) { c.View = 3 }), 3, 1, 9, nil},

		{"other log", with(at(4), func(c *Cursor) { c.Log = counted }), 0, 1, 9, ErrForeign},
		{"no log", with(at(4), func(c *Cursor) { c.Log = LogID{} }), 0, 1, 9, ErrForeign},
		{"of everything, in a view", at(4), 3, 1, 9, ErrView},
		{"of a view, in everything", with(at(4), func(c *Cursor) { c.View = 3 }), 0, 1, 9, ErrView},
		{"one beyond the head", at(10), 0, 1, 9, ErrFuture},
		{"beyond an empty log", at(1), 0, 1, 0, ErrFuture},
		{"far beyond the head", at(top), 0, 1, 9, ErrFuture},
		{"two before the oldest", at(3), 0, 5, 9, &CompactedError{5}},
		{"before the first of what is left", at(0), 0, 5, 9, &CompactedError{5}},
		{"below the base of an empty log", at(19), 0, 21, 20, &CompactedError{21}},
		{"far before the largest revision", at(0), 0, top, top, &CompactedError{top}},
		{"other digest", with(at(4), func(c *Cursor) { c.Digest ^= 1 << 63 }), 0, 1, 9, ErrDiverged},
		{"other digest at the head", with(at(9), func(c *Cursor) { c.Digest = 0 }), 0, 1, 9, ErrDiverged},
		{"other base", with(at(0), func(c *Cursor) { c.Digest = 1 }), 0, 1, 9, ErrDiverged},
		{"other digest before the oldest", with(at(4), func(c *Cursor) { c.Digest = 1 }), 0, 5, 9, ErrDiverged},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := Check(tc.c, tc.view, straight(t, tc.oldest, tc.head))
			var compacted *CompactedError
			if want, ok := tc.want.(*CompactedError); ok {
				if !errors.As(err, &compacted) || *compacted != *want || !errors.Is(err, ErrCompacted) {
					t.Errorf("got %v, want %v", err, want)
				}
			} else if err != tc.want {
				t.Errorf("got %v, want %v", err, tc.want)
			}
		})
	}
}

// TestCheck_ZeroCursor_L48: a cursor nobody filled in resumes nowhere, not
// even in a log nobody described.
func TestCheck_ZeroCursor_L48(t *testing.T) {
	zero := func(uint64) (Digest, error) { return 0, nil }
	for _, id := range []LogID{{}, random} {
		if err := Check(Cursor{}, 0, History{Log: id, DigestAt: zero}); err != ErrForeign {
			t.Errorf("in log %v: got %v, want %v", id, err, ErrForeign)
		}
	}
}

// TestCheck_Order_L48 begins with everything wrong at once and mends the first
// thing named each time.
func TestCheck_Order_L48(t *testing.T) {
	asked := 0
	h := History{Log: random, Oldest: 50, Head: 60, DigestAt: func(uint64) (Digest, error) {
		asked++
		return 7, nil
	}}
	c := Cursor{Position{counted, 99}, 8, 1}
	for _, step := range []struct {
		want error
		mend func()
	}{
		{ErrForeign, func() { c.Log = random }},
		{ErrView, func() { c.View = 0 }},
		{ErrFuture, func() { c.Revision = 10 }},
		{ErrCompacted, func() { c.Revision = 50 }},
	} {
		if err := Check(c, 0, h); !errors.Is(err, step.want) {
			t.Fatalf("got %v, want %v", err, step.want)
		}
		step.mend()
	}
	if asked != 0 {
		t.Errorf("DigestAt asked %d times for cursors refused without it", asked)
	}
	if err := Check(c, 0, h); err != ErrDiverged {
		t.Fatalf("got %v, want %v", err, ErrDiverged)
	}
	if asked != 1 {
		t.Errorf("DigestAt asked %d times, want once", asked)
	}
}

func TestCheck_DigestFails(t *testing.T) {
	h := straight(t, 1, 9)
	for _, cause := range []error{io.ErrUnexpectedEOF, &CompactedError{Oldest: 6}} {
		h.DigestAt = func(uint64) (Digest, error) { return digestOf(4), cause }
		err := Check(at(4), 0, h)
		if !errors.Is(err, cause) || errors.Is(err, ErrDiverged) || !strings.Contains(err.Error(), "revision 4") {
			t.Errorf("got %v, want %v at revision 4", err, cause)
		}
	}
}

// TestErrors_AreDistinct_L48 keeps one error from passing for another.
func TestErrors_AreDistinct_L48(t *testing.T) {
	all := []error{ErrMalformed, ErrVersion, ErrForeign, ErrView, ErrFuture, ErrCompacted, ErrDiverged}
	texts := map[string]bool{}
	for i, a := range all {
		texts[a.Error()] = true
		for j, b := range all {
			if errors.Is(a, b) != (i == j) {
				t.Errorf("errors.Is(%v, %v) = %v", a, b, i != j)
			}
		}
		compacted := &CompactedError{Oldest: 12}
		if errors.Is(compacted, a) != (a == ErrCompacted) {
			t.Errorf("errors.Is(%v, %v) = %v", compacted, a, a != ErrCompacted)
		}
	}
	if len(texts) != len(all) {
		t.Errorf("%d texts for %d errors", len(texts), len(all))
	}
	if got, want := (&CompactedError{12}).Error(), "revision 12"; !strings.Contains(got, want) {
		t.Errorf("%q does not name %q", got, want)
	}
}

// TestCheck_RestoredCopy_D13_Q114 copies a log, lets it go on, restores the
// copy and lets that go on another way. A cursor of the first way resumes in
// the second exactly if it lies at or before the copy; otherwise it is refused
// as diverged or future, and by nothing else.
func TestCheck_RestoredCopy_D13_Q114(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		copied := rapid.Uint64Range(0, 5).Draw(t, "copied")
		first := copied + rapid.Uint64Range(0, 5).Draw(t, "commits lost")
		second := copied + rapid.Uint64Range(0, 5).Draw(t, "commits since")
		restored := straight(t, 1, second)
		restored.DigestAt = func(revision uint64) (Digest, error) {
			if revision > copied {
				return ^digestOf(revision), nil
			}
			return digestOf(revision), nil
		}
		for revision := range first + 1 {
			var want error
			switch {
			case revision > second:
				want = ErrFuture
			case revision > copied:
				want = ErrDiverged
			}
			if err := Check(at(revision), 0, restored); err != want {
				t.Fatalf("revision %d of %d, copied at %d, head %d: got %v, want %v",
					revision, first, copied, second, err, want)
			}
		}
	})
}

// TestCheck_Compacted_D14_Q115 drops commits at every place: each cursor
// either resumes without a gap or says at once what is left, never nothing.
func TestCheck_Compacted_D14_Q115(t *testing.T) {
	const head = 8
	for oldest := uint64(1); oldest <= head+1; oldest++ {
		for revision := uint64(0); revision <= head; revision++ {
			name := fmt.Sprintf("cursor at %d, oldest %d", revision, oldest)
			err := Check(at(revision), 0, straight(t, oldest, head))
			var compacted *CompactedError
			switch lost := revision+1 < oldest; {
			case !lost && err != nil:
				t.Errorf("%s: %v", name, err)
			case lost && (!errors.As(err, &compacted) || compacted.Oldest != oldest):
				t.Errorf("%s: got %v, want %v", name, err, &CompactedError{oldest})
			case lost:
				if err := Check(at(compacted.Oldest-1), 0, straight(t, oldest, head)); err != nil {
					t.Errorf("%s: resuming with what it names: %v", name, err)
				}
			}
		}
	}
}
