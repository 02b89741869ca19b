package pagelog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/tidemark-log/tidemark/cursor"
	"github.com/tidemark-log/tidemark/frame"
	"github.com/tidemark-log/tidemark/internal/disk"
	"github.com/tidemark-log/tidemark/internal/simdisk"
)

func (k *kept) compact() (CompactReport, error) {
	k.t.Helper()
	return CompactIn(context.Background(), k.env(), logName, CompactOptions{})
}

// digests reads all digests of a log.
func digests(t testing.TB, r *Reader) map[uint64]cursor.Digest {
	t.Helper()
	all := map[uint64]cursor.Digest{}
	for g, err := range r.Commits(r.Oldest() - 1) {
		if err != nil {
			t.Fatal(err)
		}
		all[g.Revision] = g.Digest
	}
	return all
}

// TestCompact_SameHistory: log ID, revisions, digests, keys and state stay,
// whatever was dropped before, and the log goes on.
func TestCompact_SameHistory(t *testing.T) {
	for _, from := range []uint64{1, 2, 17} {
		k, l := keptLog(t, 40, 25)
		if err := l.Retain(context.Background(), from); err != nil {
			t.Fatal(err)
		}
		want, id := digests(t, l.Reader), l.LogID()
		closeLog(t, l)
		report, err := k.compact()
		if err != nil {
			t.Fatal(err)
		}
		if report.Head != 40 || report.Oldest != from || report.Generation != 2 || report.After >= report.Before || report.LogID != id {
			t.Fatalf("%+v", report)
		}
		k.verified()
		l = k.open(Options{Expect: &Expect{Revision: 40, Digest: want[40]}})
		k.holds(l.Reader, from)
		for rev, d := range digests(t, l.Reader) {
			if d != want[rev] {
				t.Fatalf("revision %d has another digest", rev)
			}
		}
		k.grow(l, 41, 50)
		closeLog(t, l)
		if report, err = k.compact(); err != nil || report.Generation != 3 { // and again
			t.Fatalf("%+v, %v", report, err)
		}
		k.zeroSlots(0, 1) // the floor is in the checkpoint, too
		l = k.open(Options{})
		k.holds(l.Reader, from)
		closeLog(t, l)
		if names, _ := k.fs.Dir().Names(); len(names) != 1 {
			t.Fatalf("left behind: %v", names)
		}
	}
}

// TestCompact_ReadersGoOver: readers of every kind that are in the middle of
// something lose nothing and see nothing twice (D13).
func TestCompact_ReadersGoOver(t *testing.T) {
	k, l := keptLog(t, 40, 25)
	want := digests(t, l.Reader)
	closeLog(t, l)
	readers := map[string]*Reader{}
	for _, name := range []string{"forward", "backward", "fresh", "durable", "at", "twice"} {
		readers[name] = k.reader(ReaderOptions{Durable: name == "durable"})
		if name != "fresh" {
			if _, err := readers[name].Head(); err != nil {
				t.Fatal(err)
			}
		}
	}
	compact := func() {
		t.Helper()
		if _, err := k.compact(); err != nil {
			t.Fatal(err)
		}
	}
	next := uint64(1)
	for g, err := range readers["forward"].Commits(0) {
		if err != nil || g.Revision != next || g.Digest != want[next] {
			t.Fatalf("revision %d: %v", next, err)
		}
		if next++; next == 10 {
			compact()
			if _, err := readers["forward"].Head(); err != nil { // somebody else with the same reader goes over
				t.Fatal(err)
			}
		}
	}
	down := uint64(40)
	for g, err := range readers["backward"].Backward(0) {
		if err != nil || g.Revision != down || g.Digest != want[down] {
			t.Fatalf("revision %d: %v", down, err)
		}
		if down--; down == 30 {
			compact()
			if _, err := readers["backward"].Head(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if next != 41 || down != 0 {
		t.Fatalf("forward to %d, backward to %d", next-1, down+1)
	}
	var g Group
	if err := readers["at"].At(7, &g); err != nil || g.Digest != want[7] {
		t.Fatal(err)
	}
	compact()
	c := readers["twice"].Cursor(Commit{Revision: 12, Digest: want[12]})
	for g, err := range readers["twice"].From(c) {
		if err != nil || g.Revision != 13 {
			t.Fatalf("a cursor: %v", err)
		}
		break
	}
	for name, r := range readers {
		k.holds(r, 1)
		info, err := r.Info()
		if err != nil || info.Generation != 4 {
			t.Errorf("%s: generation %d, %v", name, info.Generation, err)
		}
		if err := r.Close(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := r.Head(); !errors.Is(err, ErrClosed) {
			t.Errorf("%s: closed: %v", name, err)
		}
	}
}

// TestCompact_OthersAreNoSuccessor: what has the name and is not the generation
// that the mark names, with the history that was read, is not gone over to.
func TestCompact_OthersAreNoSuccessor(t *testing.T) {
	for name, put := range map[string]func(k *kept, compacted []byte) []byte{
		"another log": func(*kept, []byte) []byte {
			other := &kept{sim: newSim(t)}
			other.dice.state = 99
			closeLog(t, other.create(small, Options{}))
			if _, err := other.compact(); err != nil {
				t.Fatal(err)
			}
			return other.bytes()
		},
		"another history of that generation": func(k *kept, _ []byte) []byte {
			other, l := keptLog(t, 39, 25) // the same log, for the dice fell alike
			k.grow(l, 41, 41)
			closeLog(t, l)
			if _, err := other.compact(); err != nil {
				t.Fatal(err)
			}
			return other.bytes()
		},
		"an older generation": func(_ *kept, b []byte) []byte {
			h := &header{size: int64(len(b))}
			if err := h.decode(b); err != nil {
				t.Fatal(err)
			}
			for i, off := range frame.SlotOffsets {
				h.slots[i].Generation = 1
				h.geo.PutSlot(b[off:], off, &h.slots[i].Slot)
			}
			return b
		},
		"nothing": nil,
	} {
		k, l := keptLog(t, 40, 25)
		closeLog(t, l)
		r := k.reader(ReaderOptions{})
		if _, err := r.Head(); err != nil {
			t.Fatal(err)
		}
		if _, err := k.compact(); err != nil {
			t.Fatal(err)
		}
		if put == nil {
			if err := k.fs.Dir().Remove(logName); err != nil {
				t.Fatal(err)
			}
		} else {
			b := put(k, k.bytes())
			if err := k.fs.Dir().Remove(logName); err != nil {
				t.Fatal(err)
			}
			k.fs.WriteFile(logName, b)
		}
		_, err := r.Head()
		if want := map[bool]error{true: ErrDiverged, false: ErrReplaced}[name == "another history of that generation"]; !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
	}
}

// TestCompact_CrashAtAnyStep cuts the power before every operation of a
// compaction and within every sync (D32): the log has all commits, keys and its
// state, in the old file or the new one, and no mark is left.
func TestCompact_CrashAtAnyStep(t *testing.T) {
	k, l := keptLog(t, 20, 12)
	if err := l.Retain(context.Background(), 6); err != nil {
		t.Fatal(err)
	}
	closeLog(t, l)
	safe := int64(len(k.bytes()))
	points, gen := 0, map[uint64]int{}
	k.fs.Before(func(op simdisk.Op) {
		points++
		k.fs.EachImage(simdisk.ImageOptions{Mode: simdisk.Both, MaxBits: 4, Samples: 12, Garbage: true, Protected: func(name string, off int64) bool {
			return name == logName && off >= 16384 && off < safe
		}}, func(img *simdisk.FS) bool {
			v := k.on(img)
			return caught(t, func() string { return fmt.Sprintf("%v\n%s", op, img.Log()) }, func() {
				r := v.reader(ReaderOptions{})
				v.holds(r, 6)
				after := v.open(Options{})
				v.holds(after.Reader, 6)
				v.holds(r, 6)
				info, err := r.Info()
				if err != nil || info.Superseded != 0 {
					v.t.Fatalf("superseded by %d, %v", info.Superseded, err)
				}
				gen[info.Generation]++
				if err := errors.Join(after.Close(), r.Close()); err != nil {
					v.t.Fatal(err)
				}
				v.verified()
				if report, err := v.compact(); err != nil || report.Generation != info.Generation+1 {
					v.t.Fatalf("%+v, %v", report, err)
				}
				if names, _ := v.fs.Dir().Names(); len(names) != 1 {
					v.t.Fatalf("left behind: %v", names)
				}
			})
		})
	})
	if _, err := k.compact(); err != nil {
		t.Fatal(err)
	}
	k.fs.Before(nil)
	if points < 15 || gen[1] < 20 || gen[2] == 0 {
		t.Errorf("%d crash points, generations %v: too few to mean anything", points, gen)
	}
	t.Logf("%d crash points, generations %v", points, gen)
}

// TestCompact_FailsAtAnyStep: whatever fails, the log has all it had.
func TestCompact_FailsAtAnyStep(t *testing.T) {
	for _, kind := range []simdisk.Kind{simdisk.OpCreate, simdisk.OpWrite, simdisk.OpSync, simdisk.OpReplace, simdisk.OpSyncDir, simdisk.OpTruncate} {
		for n := 1; ; n++ {
			k, l := keptLog(t, 12, 8)
			closeLog(t, l)
			k.fs.Inject(simdisk.Fault{Kind: kind, Nth: n})
			_, err := k.compact()
			if err == nil {
				break
			}
			after := k.open(Options{})
			k.holds(after.Reader, 1)
			closeLog(t, after)
			k.verified()
			if h, err := readHeader(mustOpen(k)); err != nil || h.newest().Superseded != 0 {
				t.Errorf("%v %d: %v, the mark is left", kind, n, err)
			}
		}
	}
}

// TestCompact_Lineage: a fork that is compacted keeps its ancestors, where they
// end now, also those of which nothing is left, and can be forked.
func TestCompact_Lineage(t *testing.T) {
	for _, from := range []uint64{1, 15, 35} {
		k, l := keptLog(t, 40, 0)
		id := *l.id
		if err := l.Retain(context.Background(), from); err != nil {
			t.Fatal(err)
		}
		var g Group
		for i, rev := range []uint64{10, 20, 30} { // as if it had been forked there
			a := frame.Ancestor{LogID: [16]byte{byte(i + 1)}, Salt: id.Salt, End: 1, Revision: rev}
			if err := l.At(rev, &g); err == nil {
				a.End, a.Digest = g.end, uint64(g.Digest)
			} else {
				a.End = 16384 + int64(i)*8 + 40
			}
			id.Lineage = append(id.Lineage, a)
		}
		closeLog(t, l)
		f := mustOpenWrite(k)
		for _, off := range []int64{frame.IdentityOffset, frame.IdentityCopyOffset} {
			if _, err := f.WriteAt(id.Encode(), off); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(f.Sync(), f.Close()); err != nil {
			t.Fatal(err)
		}
		if _, err := k.compact(); err != nil {
			t.Fatal(err)
		}
		k.verified()
		r := k.reader(ReaderOptions{Durable: true})
		k.holds(r, from)
		for i, a := range r.id.Lineage {
			if a.Revision != id.Lineage[i].Revision || a.LogID != id.Lineage[i].LogID {
				t.Errorf("from %d: ancestor %d is %+v", from, i, a)
			}
			if err := r.At(a.Revision, &g); a.Revision > from && (err != nil || g.end != a.End) {
				t.Errorf("from %d: ancestor %d ends at %d, its commit at %d: %v", from, i, a.End, g.end, err)
			}
		}
		if b, err := r.Branch(0); err != nil || b.At.Revision != 40 {
			t.Errorf("%+v, %v", b, err)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestCompact_FollowersOfARealFile compacts a real file between writers, while
// others follow it.
func TestCompact_FollowersOfARealFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), logName)
	l, err := Create(path, small, Options{})
	if err != nil {
		t.Fatal(err)
	}
	closeLog(t, l)
	const rounds, per = 6, 25
	ctx := t.Context()
	done := make(chan error, 3)
	for i := range cap(done) {
		r, err := OpenReader(path, ReaderOptions{Durable: i == 0})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		go func() {
			next := uint64(1)
			for g, err := range r.Follow(ctx, 0) {
				if err == nil && g.Revision != next {
					err = fmt.Errorf("revision %d", g.Revision)
				}
				if err != nil {
					done <- fmt.Errorf("instead of revision %d: %w", next, err)
					return
				}
				if next++; next > rounds*per {
					done <- nil
					return
				}
			}
		}()
	}
	for range rounds {
		l, err := Open(path, Options{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range per {
			commit(t, l, payload(i, 900))
		}
		closeLog(t, l)
		if _, err := Compact(ctx, path, CompactOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for range cap(done) {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
}

// hookedDir lets something happen between a reader's look at the slots and its
// look at the name.
type hookedDir struct {
	disk.Dir
	hook *func()
}

func (d hookedDir) Open(name string, access disk.Access) (disk.File, error) {
	f, err := d.Dir.Open(name, access)
	return hookedFile{f, d.hook}, err
}

type hookedFile struct {
	disk.File
	hook *func()
}

func (f hookedFile) Named() (int64, bool, error) {
	if do := *f.hook; do != nil {
		*f.hook = nil
		do()
	}
	return f.File.Named()
}

// TestCompact_BetweenSlotsAndName: the reader has seen slots without a mark when
// the old file is marked and loses its name.
func TestCompact_BetweenSlotsAndName(t *testing.T) {
	k, l := keptLog(t, 20, 12)
	closeLog(t, l)
	var hook func()
	env := k.env()
	env.Dir = hookedDir{env.Dir, &hook}
	r, err := OpenReaderIn(env, logName, ReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		hook = func() {
			if _, err := k.compact(); err != nil {
				t.Error(err)
			}
		}
		k.holds(r, 1)
		if hook != nil {
			t.Fatal("nobody asked for the name")
		}
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestCompact_ProvesTheNewFile: what the disk made of the new file is read
// again before it takes the name; a byte that is not as it was written refuses
// it, and the log stays as it was.
func TestCompact_ProvesTheNewFile(t *testing.T) {
	k, l := keptLog(t, 40, 25)
	closeLog(t, l)
	env := k.env()
	env.Dir = rottenDir{env.Dir}
	if _, err := CompactIn(context.Background(), env, logName, CompactOptions{}); !errors.Is(err, ErrCorrupt) {
		t.Errorf("a rotten copy took the name: %v", err)
	}
	if h, err := readHeader(&memFile{b: k.bytes()}); err != nil || h.newest().Superseded != 0 {
		t.Errorf("the log is superseded by nothing: %v", err)
	}
	l = k.open(Options{})
	k.holds(l.Reader, 1)
	closeLog(t, l)
}

// rottenDir makes files that change one byte of their first large write.
type rottenDir struct{ disk.Dir }

func (d rottenDir) Create(name string) (disk.File, error) {
	f, err := d.Dir.Create(name)
	return &rottenFile{File: f}, err
}

type rottenFile struct {
	disk.File
	done bool
}

func (f *rottenFile) WriteAt(p []byte, off int64) (int, error) {
	if !f.done && len(p) > 1000 && off >= 16384 {
		f.done = true
		p = bytes.Clone(p)
		p[len(p)/2] ^= 1
	}
	return f.File.WriteAt(p, off)
}
