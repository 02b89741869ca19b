package fork_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/tidemark-log/tidemark/cursor"
	"github.com/tidemark-log/tidemark/fork"
	"github.com/tidemark-log/tidemark/frame"
	"github.com/tidemark-log/tidemark/internal/simdisk"
	"github.com/tidemark-log/tidemark/pagelog"
)

// TestFork_Q132_AtEveryRevision forks logs of many shapes at every revision,
// while their writer goes on. The history up to there is the same, the fork is
// sound to the last byte, opens and goes on, and no byte of the source changes.
func TestFork_Q132_AtEveryRevision(t *testing.T) {
	sizes := []int{10, 3900, 1, 4064, 9000, 40, 0, 12300, 77, 4056, 24}
	for _, c := range []pagelog.CreateOptions{
		{PageSize: 4096}, {PageSize: 4096, Align: 512}, {PageSize: 8192, Align: 4096}, {PageSize: 32768}, {PageSize: 4096, MaxRecord: 12300, MaxGroup: 12400},
	} {
		w := newWorld(t)
		l := w.create("log", c)
		for i, n := range sizes {
			commit(t, l, i, n)
			if i == 4 {
				w.must(l.Checkpoint(ctx, 3, []byte("state")))
			}
		}
		source := w.history("log")
		for at := range len(sizes) {
			before := w.bytes("log")
			made, err := fork.CreateIn(ctx, l.Reader, w.env(), "fork", fork.Options{At: uint64(at + 1)})
			w.must(err)
			if !bytes.Equal(before, w.bytes("log")) {
				t.Fatalf("%+v at %d: the source changed", c, at+1)
			}
			w.follows(source, "fork", made)
			f := w.open("fork")
			if got := commit(t, f, 99, 5000); got.Revision != uint64(at+3) {
				t.Fatalf("the fork goes on with revision %d", got.Revision)
			}
			if _, state, err := f.LastCheckpoint(); at >= 4 && string(state) != "state" || at < 4 && !errors.Is(err, pagelog.ErrNotFound) {
				t.Fatalf("at %d: state %q, %v", at+1, state, err)
			}
			ends(t, f)
			w.sound("fork")
			w.must(w.fs.Dir().Remove("fork"))
		}
		ends(t, l)
	}
}

// TestFork_Q124_OnlyWhatIsProvenDurable: what is merely complete is no boundary
// for others; the source's own healthy writer syncs it first.
func TestFork_Q124_OnlyWhatIsProvenDurable(t *testing.T) {
	w := newWorld(t)
	l := w.create("log", pagelog.CreateOptions{PageSize: 4096})
	commit(t, l, 1, 100)
	commit(t, l, 2, 100)
	var b pagelog.Batch
	b.Append([]byte("complete"))
	b.CompleteOnly = true
	_, err := l.Commit(ctx, &b)
	w.must(err)
	syncs := countSyncs(w)
	for _, at := range []uint64{3, 4, 99} {
		_, err := w.fork("log", "fork", fork.Options{At: at})
		wants(t, err, fork.ErrForkPoint)
		_, err = fork.CreateIn(ctx, l.Reader, w.env(), "fork", fork.Options{At: at})
		wants(t, err, fork.ErrForkPoint)
	}
	if w.has("fork") || *syncs != 0 {
		t.Fatalf("a refused fork left a file, or synced %d times", *syncs)
	}
	made := w.forked("log", "fork", 0)
	if made.Revision != 2 || *syncs != 0 { // the header of the third commit proves the second
		t.Fatalf("forked at %d, the source was synced %d times", made.Revision, *syncs)
	}
	w.must(l.Sync(ctx))
	made, err = fork.CreateIn(ctx, l.Reader, w.env(), "own", fork.Options{At: 3})
	w.must(err)
	w.follows(w.history("log"), "own", made)
	ends(t, l)
}

// countSyncs counts how often the log is synced from now on.
func countSyncs(w *world) *int {
	n := new(int)
	w.fs.Before(func(op simdisk.Op) {
		if op.Kind == simdisk.OpSync && op.Name == "log" && !op.Inside {
			*n++
		}
	})
	return n
}

// TestFork_Q132_PoisonedSource: a poisoned source can be forked at what it
// acknowledged, by anybody, and is not written.
func TestFork_Q132_PoisonedSource(t *testing.T) {
	w := newWorld(t)
	l := w.create("log", pagelog.CreateOptions{PageSize: 4096})
	for i := range 4 {
		commit(t, l, i, 300)
	}
	source := w.history("log")
	w.fs.Inject(simdisk.Fault{Kind: simdisk.OpSync, Name: "log"})
	var b pagelog.Batch
	b.Append([]byte("lost"))
	_, err := l.Commit(ctx, &b)
	wants(t, err, pagelog.ErrUncertain)
	before := w.bytes("log")
	syncs := countSyncs(w)
	_, err = fork.CreateIn(ctx, l.Reader, w.env(), "five", fork.Options{At: 5})
	wants(t, err, fork.ErrForkPoint)
	made, err := fork.CreateIn(ctx, l.Reader, w.env(), "own", fork.Options{})
	w.must(err)
	w.follows(source, "own", made)
	if made.Revision != 4 {
		t.Fatalf("forked at %d", made.Revision)
	}
	made = w.forked("log", "other", 0)
	w.follows(source, "other", made)
	if *syncs != 0 || !bytes.Equal(before, w.bytes("log")) {
		t.Fatalf("the poisoned source was synced %d times, or written", *syncs)
	}
	_ = l.Close()
}

// TestFork_C36_LaterGroupsOfTheSourceMeanNothing plants what the source wrote
// behind the boundary at the very same place in the fork. It is chain-valid, and
// still nothing.
func TestFork_C36_LaterGroupsOfTheSourceMeanNothing(t *testing.T) {
	for _, end := range []int{100, 4096 - 32 - 80 - 24} { // in the page, and at its end
		w := newWorld(t)
		l := w.create("log", pagelog.CreateOptions{PageSize: 4096})
		at := commit(t, l, 1, end)
		for i := range 5 {
			commit(t, l, i, 200)
		}
		ends(t, l)
		made := w.forked("log", "fork", at.Revision)
		source, child := w.bytes("log"), w.bytes("fork")
		planted := append(bytes.Clone(child[:made.Boundary]), source[made.Boundary:]...)
		w.fs.WriteFile("fork", planted)
		r, err := pagelog.OpenReaderIn(w.env(), "fork", pagelog.ReaderOptions{})
		w.must(err)
		for g := range r.Commits(at.Revision) {
			if g != nil {
				t.Fatalf("a reader takes the source's revision %d for the fork's", g.Revision)
			}
		}
		w.must(r.Close())
		if _, err := pagelog.OpenIn(w.env(), "fork", pagelog.Options{}); !errors.Is(err, pagelog.ErrCorrupt) {
			t.Fatalf("open: %v; the fork record was overwritten, which must be noticed", err)
		}
		// Behind the fork record, where nothing is acknowledged, they are torn bytes.
		head := int64(len(child))
		planted = append(bytes.Clone(child), source[min(head, int64(len(source))):]...)
		w.fs.WriteFile("fork", planted)
		f := w.open("fork")
		if f.Head().Revision != made.Head {
			t.Fatalf("head %d, want %d", f.Head().Revision, made.Head)
		}
		ends(t, f)
	}
}

// TestFork_Q136_ForkOfAForkOfAFork: the lineage names every ancestor of which
// something is left, cut where it was cut, and the fork records stay.
func TestFork_Q136_ForkOfAForkOfAFork(t *testing.T) {
	w := newWorld(t)
	l := w.create("a", pagelog.CreateOptions{PageSize: 4096})
	for i := range 10 {
		commit(t, l, i, 700)
	}
	ends(t, l)
	grow := func(name string) {
		f := w.open(name)
		for i := range 6 {
			commit(t, f, 50+i, 900)
		}
		ends(t, f)
	}
	b := w.forked("a", "b", 8)
	grow("b") // 9 is the fork record
	c := w.forked("b", "c", 12)
	grow("c")
	d := w.forked("c", "d", 0)
	for _, m := range []struct {
		name string
		made fork.Made
		want []uint64 // revisions at which the ancestors were left
	}{{"b", b, []uint64{8}}, {"c", c, []uint64{8, 12}}, {"d", d, []uint64{8, 12, 19}}} {
		w.lineage(m.name, m.want, cursor.LogID{})
	}
	w.follows(w.history("c"), "d", d)
	// Below the first boundary everything is a's; at it, b adds nothing.
	low := w.forked("d", "low", 5)
	w.lineage("low", []uint64{5}, b.Source)
	w.follows(w.history("a"), "low", low)
	edge := w.forked("c", "edge", 8)
	w.lineage("edge", []uint64{8}, b.Source)
	if edge.Source != c.LogID {
		t.Error("the record names another source")
	}
	w.follows(w.history("a"), "edge", edge)
	mid := w.forked("d", "mid", 10)
	w.lineage("mid", []uint64{8, 10}, b.Source)
	w.follows(w.history("b"), "mid", mid)
	// Q134: the ancestors may go.
	for _, name := range []string{"a", "b", "c"} {
		w.must(w.fs.Dir().Remove(name))
	}
	f := w.open("d")
	commit(t, f, 1, 10)
	ends(t, f)
	w.sound("d")
}

func (w *world) lineage(name string, revisions []uint64, first cursor.LogID) {
	w.t.Helper()
	r, err := pagelog.OpenReaderIn(w.env(), name, pagelog.ReaderOptions{})
	w.must(err)
	defer r.Close()
	info, err := r.Info()
	w.must(err)
	var got []uint64
	for _, a := range info.Ancestors {
		got = append(got, a.Revision)
	}
	if fmt.Sprint(got) != fmt.Sprint(revisions) || first != (cursor.LogID{}) && info.Ancestors[0].Log != first {
		w.t.Errorf("%s descends from %v, want %v", name, info.Ancestors, revisions)
	}
	// D16: a cursor of the source is foreign, whatever its revision.
	for _, a := range info.Ancestors {
		for _, err := range r.From(a) {
			if !errors.Is(err, cursor.ErrForeign) {
				w.t.Errorf("%s: a cursor of its ancestor: %v", name, err)
			}
		}
	}
}

// TestFork_Q133_LimitsBeforeAFileExists: 48 ancestors and no more, and no more
// bytes than allowed.
func TestFork_Q133_LimitsBeforeAFileExists(t *testing.T) {
	w := newWorld(t)
	ends(t, w.create("log0", pagelog.CreateOptions{PageSize: 4096}))
	for i := range frame.MaxLineage {
		from, to := fmt.Sprint("log", i), fmt.Sprint("log", i+1)
		made := w.forked(from, to, 0)
		if made.Ancestors != i+1 {
			t.Fatalf("%d ancestors after %d forks", made.Ancestors, i+1)
		}
	}
	last := fmt.Sprint("log", frame.MaxLineage)
	w.sound(last)
	created := 0
	w.fs.Before(func(op simdisk.Op) { created++ })
	_, err := w.fork(last, "more", fork.Options{})
	wants(t, err, fork.ErrForkTooLarge)
	_, err = w.fork("log1", "more", fork.Options{MaxBytes: 8})
	wants(t, err, fork.ErrForkTooLarge)
	if created != 0 {
		t.Fatalf("a refused fork did %d operations", created)
	}
	if _, err := w.fork("log5", "log6", fork.Options{}); !errors.Is(err, errExist) {
		t.Fatalf("a name that is taken: %v", err)
	}
}

// TestFork_EmptyLog: a log without commits has one boundary.
func TestFork_EmptyLog(t *testing.T) {
	w := newWorld(t)
	base := cursor.Cursor{Position: cursor.Position{Log: cursor.LogID{9}, Revision: 70}, Digest: 5}
	for name, c := range map[string]pagelog.CreateOptions{"empty": {}, "based": {Base: base}} {
		ends(t, w.create(name, c))
		made := w.forked(name, name+"-fork", 0)
		w.follows(nil, name+"-fork", made)
		if made.Revision != c.Base.Revision || made.Commits != 0 {
			t.Errorf("%+v", made)
		}
	}
}

// TestFork_C35_DamageIsNotTakenOver flips each byte of the source in turn, at
// some distance: a damaged source is not forked, and nothing is left behind.
func TestFork_C35_DamageIsNotTakenOver(t *testing.T) {
	w := newWorld(t)
	l := w.create("log", pagelog.CreateOptions{PageSize: 4096})
	var at pagelog.Commit
	for i := range 8 {
		at = commit(t, l, i, 1500)
	}
	commit(t, l, 9, 10)
	ends(t, l)
	good := w.bytes("log")
	end := w.forked("log", "fork", at.Revision).Boundary
	w.must(w.fs.Dir().Remove("fork"))
	for off := int64(16384); off < end; off += 41 {
		bad := bytes.Clone(good)
		bad[off] ^= 0x10
		w.fs.WriteFile("log", bad)
		_, err := w.fork("log", "fork", fork.Options{At: at.Revision})
		if !errors.Is(err, pagelog.ErrCorrupt) {
			t.Fatalf("byte %d: %v", off, err)
		}
		if names, _ := w.fs.Dir().Names(); len(names) != 1 {
			t.Fatalf("left behind: %v", names)
		}
	}
}
