package pagelog

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/tidemark-log/tidemark/checkpoint"
	"github.com/tidemark-log/tidemark/cursor"
	"github.com/tidemark-log/tidemark/frame"
)

// keyedLog makes a log of n keys whose index has runs on two levels, and
// returns the path and the log, open.
func keyedLog(t *testing.T, n, per int) (string, *Log) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a.log")
	l, err := Create(path, CreateOptions{PageSize: 4096}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	fillKeys(t, l, 0, n, per)
	return path, l
}

func runsOf(l *Log) []*run {
	var runs []*run
	l.index.lv.each(func(r *run) bool {
		runs = append(runs, r)
		return true
	})
	return runs
}

func corrupt(t *testing.T, path string, off int64) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	var b [1]byte
	if _, err := f.ReadAt(b[:], off); err != nil {
		t.Fatal(err)
	}
	b[0] ^= 0x10
	if _, err := f.WriteAt(b[:], off); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestIndex_Damage_FailsClosed_L39_Q25 covers L39 and Q25: with a damaged block
// a key is found rightly or the answer is ErrIndexDamaged, never another one;
// and Reindex heals.
func TestIndex_Damage_FailsClosed_L39_Q25(t *testing.T) {
	n, per := 40_000, 50
	if testing.Short() {
		n = 15_000
	}
	path, l := keyedLog(t, n, per)
	dice := rand.New(rand.NewPCG(1, 2))
	damaged := 0
	for _, r := range runsOf(l) {
		if r.keys != nil {
			continue
		}
		for range 10 {
			x := dice.IntN(len(r.Extents))
			block := dice.Int64N(int64(r.Extents[x].Blocks))
			corrupt(t, path, l.geo.End(r.Extents[x].Offset, pieceBody+block*checkpoint.BlockSize+dice.Int64N(checkpoint.BlockSize)))
		}
	}
	ask := func(r *Reader) {
		t.Helper()
		for i := 0; i < n+2000; i += 3 {
			rev, record, err := r.Lookup([]byte("ns"), fmt.Appendf(nil, "k%d", i))
			switch {
			case errors.Is(err, ErrIndexDamaged):
				damaged++
			case i >= n && !errors.Is(err, ErrNoKey), i < n && (err != nil || rev != uint64(i/per+1) || record != uint32(i%per*2)):
				t.Fatalf("key %d: revision %d, record %d, %v", i, rev, record, err)
			}
		}
	}
	ask(l.Reader)
	if damaged == 0 {
		t.Fatal("no lookup met the damage")
	}
	fillKeys(t, l, n, n, per)                            // commits go on, whatever merges meet
	if err := l.Sync(context.Background()); err != nil { // only what is durable is bridged
		t.Fatal(err)
	}
	for i := n; i < 2*n; i += 1 + n/100 {
		if _, _, err := l.Lookup([]byte("ns"), fmt.Appendf(nil, "k%d", i)); err != nil && !errors.Is(err, ErrIndexDamaged) {
			t.Fatal(err)
		}
	}
	beside, err := OpenReader(path, ReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 50 { // it takes the index up as it is
		if _, _, err := beside.Lookup([]byte("ns"), fmt.Appendf(nil, "k%d", i)); err != nil && !errors.Is(err, ErrIndexDamaged) {
			t.Fatal(err)
		}
	}
	if err := l.Reindex(context.Background()); err != nil {
		t.Fatal(err)
	}
	wantKeys(t, l.Reader, 2*n, 7, per)
	wantKeys(t, beside, 2*n, 101, per) // and takes up the new one where it must
	if err := beside.Close(); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if l, err = Open(path, Options{}); err != nil {
		t.Fatal(err)
	}
	wantKeys(t, l.Reader, 2*n, 7, per)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestIndex_Collisions_L39_Q22 covers Q22: entries that lead elsewhere under the
// hash of a key, hundreds of them, newer than the right one, over several
// blocks, change nothing.
func TestIndex_Collisions_L39_Q22(t *testing.T) {
	_, l := keyedLog(t, 4000, 50)
	defer l.Close()
	collide := func(i, n int) {
		var entries []checkpoint.Entry
		for j := range n {
			rev := uint64(i/50 + 2 + j%10) // another commit
			if i >= 2000 {
				rev = uint64(1 + j%30) // an older one
			}
			entries = append(entries, checkpoint.Entry{
				Hash: checkpoint.HashKey(l.id.IndexKey, []byte("ns"), fmt.Appendf(nil, "k%d", i)), Record: uint32(2 * (j % 50)), Revision: rev,
			})
		}
		l.index.table.add(entries)
	}
	collide(10, 700)
	collide(11, 1)
	collide(3900, 900)
	collide(999_999, 500) // no key has this hash
	fillKeys(t, l, 4000, 40_000, 50)
	if n := len(runsOf(l)); n < 2 {
		t.Fatalf("%d runs", n)
	}
	wantKeys(t, l.Reader, 44_000, 1, 50)
	if _, _, err := l.Lookup([]byte("ns"), []byte("k999999")); !errors.Is(err, ErrNoKey) {
		t.Fatal(err)
	}
	if l.indexer.broken != nil {
		t.Fatal(l.indexer.broken)
	}
}

// setFloor drops the commits up to a revision, as retention does.
func setFloor(t *testing.T, path string, rev uint64) {
	t.Helper()
	r, err := OpenReader(path, ReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var g Group
	if err := r.At(rev, &g); err != nil {
		t.Fatal(err)
	}
	h, err := r.readSlots()
	if err != nil {
		t.Fatal(err)
	}
	s := *h.newest()
	s.Floor = frame.Place{Offset: g.end, Revision: rev, Digest: uint64(g.Digest)}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	for i, off := range frame.SlotOffsets {
		var b [frame.SlotSize]byte
		s.Number += uint64(i + 1)
		r.geo.PutSlot(b[:], off, &s)
		if _, err := f.WriteAt(b[:], off); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestIndex_DroppedIsCompacted_L39 covers the promise that a key whose record
// was dropped is never said to be absent, also after a rebuild, and after one
// that could not read the old index.
func TestIndex_DroppedIsCompacted_L39(t *testing.T) {
	for _, damage := range []bool{false, true} {
		const n, per = 20_000, 50
		path, l := keyedLog(t, n, per)
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		setFloor(t, path, 100)
		ask := func(r *Reader, missing error) {
			t.Helper()
			for i := 0; i < n; i += 331 {
				rev, _, err := r.Lookup([]byte("ns"), fmt.Appendf(nil, "k%d", i))
				var gone *cursor.CompactedError
				if i < 100*per && (!errors.As(err, &gone) || gone.Oldest != 101) || i >= 100*per && (err != nil || rev != uint64(i/per+1)) {
					t.Fatalf("key %d: revision %d, %v", i, rev, err)
				}
			}
			if _, _, err := r.Lookup([]byte("ns"), []byte("none")); !errors.Is(err, missing) {
				t.Fatal(err)
			}
		}
		r, err := OpenReader(path, ReaderOptions{})
		if err != nil {
			t.Fatal(err)
		}
		ask(r, ErrNoKey)
		if l, err = Open(path, Options{}); err != nil {
			t.Fatal(err)
		}
		ask(l.Reader, ErrNoKey)
		missing := ErrNoKey
		if damage {
			missing = ErrCompacted
			for _, r := range runsOf(l) {
				corrupt(t, path, l.geo.End(r.Extents[0].Offset, pieceBody+100))
				r.keys = nil
			}
		}
		if err := l.Reindex(context.Background()); err != nil {
			t.Fatal(err)
		}
		ask(l.Reader, missing)
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		other, err := OpenReader(path, ReaderOptions{})
		if err != nil {
			t.Fatal(err)
		}
		ask(other, missing)
		if err := errors.Join(r.Close(), other.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestIndex_IsNoHistory_L36 covers L36: with checkpoints and runs often, seldom
// or never, and after a rebuild, commits and digests are the same.
func TestIndex_IsNoHistory_L36(t *testing.T) {
	var want cursor.Digest
	for _, every := range []int64{0, 1, 30_000, -1} {
		path := filepath.Join(t.TempDir(), "a.log")
		l, err := Create(path, CreateOptions{PageSize: 4096}, Options{CheckpointEvery: every})
		if err != nil {
			t.Fatal(err)
		}
		fillKeys(t, l, 0, 15_000, 77)
		if every == 1 {
			if err := l.Reindex(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
		fillKeys(t, l, 15_000, 3000, 1)
		wantSome := func(r *Reader) {
			for i := 0; i < 15_000; i += 499 {
				if rev, _, err := r.Lookup([]byte("ns"), fmt.Appendf(nil, "k%d", i)); err != nil || rev != uint64(i/77+1) {
					t.Fatal(i, rev, err)
				}
			}
		}
		wantSome(l.Reader)
		if got := l.Head().Digest; want == 0 {
			want = got
		} else if got != want {
			t.Errorf("every %d: digest %v, want %v", every, got, want)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestIndex_StaleOrSwapped_C44 covers C44: a checkpoint that is damaged, or
// both, or both slots, or that are of an earlier time, cost time and change no
// answer; blocks in the place of others, of their run and of another, are found
// out.
func TestIndex_StaleOrSwapped_C44(t *testing.T) {
	const n, per = 30_000, 50
	damage := map[string]func(t *testing.T, path string, l *Log){
		"newest checkpoint": func(t *testing.T, path string, l *Log) {
			corrupt(t, path, l.slots.cur.Check.Offset+90)
		},
		"both checkpoints": func(t *testing.T, path string, l *Log) {
			corrupt(t, path, l.slots.cur.Check.Offset+90)
			corrupt(t, path, l.slots.cur.Before.Offset+90)
		},
		"both slots": func(t *testing.T, path string, _ *Log) {
			corrupt(t, path, frame.SlotOffsetA+60)
			corrupt(t, path, frame.SlotOffsetB+60)
		},
	}
	for name, do := range damage {
		t.Run(name, func(t *testing.T) {
			path, l := keyedLog(t, n, per)
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			do(t, path, l)
			for range 2 {
				r, err := OpenReader(path, ReaderOptions{})
				if err != nil {
					t.Fatal(err)
				}
				wantKeys(t, r, n, 151, per)
				if err := r.Close(); err != nil {
					t.Fatal(err)
				}
				if l, err = Open(path, Options{}); err != nil {
					t.Fatal(err)
				}
				wantKeys(t, l.Reader, n, 151, per)
				if err := l.Close(); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
	t.Run("blocks in the place of others", func(t *testing.T) {
		path, l := keyedLog(t, n, per)
		var at []int64 // of blocks, two of each run and of runs beside each other
		for _, r := range runsOf(l) {
			if r.keys != nil {
				continue
			}
			for _, x := range []int{0, len(r.Extents) - 1} {
				for b := range min(r.Extents[x].Blocks, 3) {
					at = append(at, l.geo.End(r.Extents[x].Offset, pieceBody+int64(b)*checkpoint.BlockSize))
				}
			}
		}
		if len(at) < 4 {
			t.Fatal(at)
		}
		closeLog(t, l)
		rotate(t, path, at)
		r, err := OpenReader(path, ReaderOptions{})
		if err != nil {
			t.Fatal(err)
		}
		damaged := 0
		for i := range n + 500 {
			rev, record, err := r.Lookup([]byte("ns"), fmt.Appendf(nil, "k%d", i))
			switch {
			case errors.Is(err, ErrIndexDamaged):
				damaged++
			case i >= n && !errors.Is(err, ErrNoKey), i < n && (err != nil || rev != uint64(i/per+1) || record != uint32(i%per*2)):
				t.Fatalf("key %d: revision %d, record %d, %v", i, rev, record, err)
			}
		}
		if commits, err := contents(r, 0); len(commits) != n/per || err != nil {
			t.Errorf("%d commits, %v", len(commits), err)
		}
		if damaged < checkpoint.BlockEntries || damaged > n/2 {
			t.Errorf("%d lookups met blocks in the place of others", damaged)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("slots of an earlier time", func(t *testing.T) {
		path, l := keyedLog(t, n/2, per)
		closeLog(t, l)
		old, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if l, err = Open(path, Options{}); err != nil {
			t.Fatal(err)
		}
		fillKeys(t, l, n/2, n/2, per)
		if err := l.Reindex(context.Background()); err != nil {
			t.Fatal(err)
		}
		closeLog(t, l)
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, off := range frame.SlotOffsets {
			copy(raw[off:off+frame.SlotSize], old[off:])
		}
		if err := os.WriteFile(path, raw, 0o600); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			r, err := OpenReader(path, ReaderOptions{})
			if err != nil {
				t.Fatal(err)
			}
			wantKeys(t, r, n, 151, per)
			if l, err = Open(path, Options{}); err != nil {
				t.Fatal(err)
			}
			wantKeys(t, l.Reader, n, 151, per)
			if err := errors.Join(r.Close(), l.Close()); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// rotate puts the block at each offset into the place of the one before.
func rotate(t *testing.T, path string, at []int64) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	over := func(off int64, b []byte, do func(b []byte, off int64) (int, error)) { // over page headers
		for len(b) > 0 {
			if off%4096 == 0 {
				off += frame.PageHeaderSize
			}
			part := min(int64(len(b)), 4096-off%4096)
			if _, err := do(b[:part], off); err != nil {
				t.Fatal(err)
			}
			b, off = b[part:], off+part
		}
	}
	blocks := make([][]byte, len(at))
	for i, off := range at {
		blocks[i] = make([]byte, checkpoint.BlockSize)
		over(off, blocks[i], f.ReadAt)
	}
	for i, off := range at {
		over(off, blocks[(i+1)%len(at)], f.WriteAt)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestCheckpoint_LostSlots_L27: after both slots were lost, the host's state is
// found again, and stays found: the new slot names the checkpoint.
func TestCheckpoint_LostSlots_L27(t *testing.T) {
	path, l := keyedLog(t, 500, 50)
	if err := l.Checkpoint(context.Background(), 7, []byte("state at 7")); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	corrupt(t, path, frame.SlotOffsetA+60)
	corrupt(t, path, frame.SlotOffsetB+60)
	for i := range 3 {
		l, err := Open(path, Options{CheckpointEvery: -1})
		if err != nil {
			t.Fatal(err)
		}
		if rev, data, err := l.LastCheckpoint(); err != nil || rev != 7 || string(data) != "state at 7" {
			t.Fatalf("opening %d: %d, %q, %v", i, rev, data, err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
