package pagelog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"github.com/tidemark-log/tidemark/cursor"
	"github.com/tidemark-log/tidemark/frame"
	"github.com/tidemark-log/tidemark/internal/disk"
	"github.com/tidemark-log/tidemark/internal/simdisk"
)

// kept is a log whose commits, keys and state are known: commit i holds
// "commit i" and some bytes, and has the key "k<i>".
type kept struct {
	*sim
	n     int
	state uint64 // revision of the host's last state; 0: none
}

func keptLog(t reporter, n int, state uint64) (*kept, *Log) {
	k := &kept{sim: newSim(t), n: n, state: state}
	l := k.create(small, Options{CheckpointEvery: -1})
	k.grow(l, 1, n)
	return k, l
}

func (k *kept) grow(l *Log, from, to int) {
	k.t.Helper()
	for i := from; i <= to; i++ {
		var b Batch
		b.Append(fmt.Appendf(nil, "commit %d %0*d", i, 1000+i*67%3000, 7))
		b.Key([]byte("n"), fmt.Appendf(nil, "k%d", i))
		if _, err := l.Commit(context.Background(), &b); err != nil {
			k.t.Fatal(err)
		}
		if i%5 == 3 { // a run of the index, which a floor behind it lifts
			if err := l.Checkpoint(context.Background(), uint64(i), nil); err != nil {
				k.t.Fatal(err)
			}
		}
		if uint64(i) == k.state {
			if err := l.Checkpoint(context.Background(), k.state, []byte("the state")); err != nil {
				k.t.Fatal(err)
			}
		}
	}
	k.n = max(k.n, to)
}

// holds checks all that a log, whose oldest commit is oldest, must still say.
func (k *kept) holds(r *Reader, oldest uint64) {
	k.t.Helper()
	if _, err := r.Head(); err != nil {
		k.t.Fatal(err)
	}
	if r.Oldest() != oldest {
		k.t.Fatalf("oldest %d, want %d", r.Oldest(), oldest)
	}
	next := oldest
	for g, err := range r.Commits(oldest - 1) {
		if err != nil {
			k.t.Fatalf("behind revision %d: %v", next-1, err)
		}
		for rec := range g.Records() {
			if want := fmt.Sprintf("commit %d ", next); rec.Kind == 0 && string(rec.Data[:len(want)]) != want {
				k.t.Fatalf("revision %d holds %.20q", next, rec.Data)
			}
		}
		next++
	}
	if next != uint64(k.n)+1 {
		k.t.Fatalf("the log ends at %d, want %d", next-1, k.n)
	}
	for rev := uint64(1); rev <= uint64(k.n); rev += 3 {
		got, _, err := r.Lookup([]byte("n"), fmt.Appendf(nil, "k%d", rev))
		if rev < oldest && !errors.Is(err, ErrCompacted) || rev >= oldest && (err != nil || got != rev) {
			k.t.Fatalf("key of revision %d: %d, %v", rev, got, err)
		}
	}
	if _, _, err := r.Lookup([]byte("n"), []byte("never")); !errors.Is(err, ErrNoKey) {
		k.t.Fatalf("a key that was never there: %v", err)
	}
	rev, data, err := r.LastCheckpoint()
	switch {
	case k.state == 0 && !errors.Is(err, ErrNotFound), k.state != 0 && (err != nil || rev != k.state || string(data) != "the state"):
		k.t.Fatalf("state %q of revision %d, %v", data, rev, err)
	}
	var gone *cursor.CompactedError
	var g Group
	for _, below := range []uint64{1, oldest - 1} {
		if err := r.At(below, &g); below > 0 && below < oldest && (!errors.As(err, &gone) || gone.Oldest != oldest) {
			k.t.Fatalf("revision %d: %v", below, err)
		}
	}
	if _, err := r.DigestAt(oldest - 1); err != nil {
		k.t.Fatalf("the floor's digest: %v", err)
	}
}

func (k *kept) verified() {
	k.t.Helper()
	r, err := VerifyIn(context.Background(), k.env(), logName, VerifyOptions{Workers: 1})
	if err != nil {
		k.t.Fatal(err)
	}
	for _, f := range r.Findings {
		if f.Class != ClassNote && f.Class != ClassTorn {
			k.t.Fatalf("%+v", f)
		}
	}
}

// freed fails unless the pages below the floor are holes, and the floor's is
// not.
func (k *kept) freed(l *Log) {
	k.t.Helper()
	from, to := l.droppedPages()
	b := k.bytes()
	if to <= from || !frame.IsZero(b[from:to]) || frame.IsZero(b[to:to+32]) {
		k.t.Fatalf("[%d, %d) is not free, or more is", from, to)
	}
}

// TestRetain_L47_DropsAndGoesOn: at every revision, offsets stay, space is free,
// keys and state are still found, and what was dropped is ErrCompacted, also
// after opening again and for readers that were open before.
func TestRetain_L47_DropsAndGoesOn(t *testing.T) {
	for _, state := range []uint64{0, 30} {
		for from := uint64(8); from <= 31; from += 5 {
			k, l := keptLog(t, 40, state)
			before := k.reader(ReaderOptions{})
			k.holds(before, 1)
			ends := l.head.end
			if err := l.Retain(context.Background(), from); err != nil {
				t.Fatal(err)
			}
			var g Group
			if err := l.At(40, &g); err != nil || g.end != ends {
				t.Fatalf("revision 40 ends at %d, not at %d: %v", g.end, ends, err)
			}
			k.freed(l)
			k.holds(l.Reader, from)
			k.holds(before, from)
			k.verified()
			k.grow(l, 41, 60)
			if err := l.Retain(context.Background(), from+1); err != nil { // once more
				t.Fatal(err)
			}
			k.holds(l.Reader, from+1)
			closeLog(t, l)
			l = k.open(Options{})
			k.freed(l)
			k.holds(l.Reader, from+1)
			k.holds(before, from+1)
			if err := errors.Join(before.Close(), l.Close()); err != nil {
				t.Fatal(err)
			}
			k.verified()
		}
	}
}

// TestRetain_L47_Refusals: what is still needed stays, and says why.
func TestRetain_L47_Refusals(t *testing.T) {
	k, l := keptLog(t, 40, 20)
	ctx := context.Background()
	before := k.fs.Hash()
	want := func(from uint64, want error) {
		t.Helper()
		if err := l.Retain(ctx, from); !errors.Is(err, want) {
			t.Fatalf("from %d: %v, want %v", from, err, want)
		}
		if k.fs.Hash() != before || l.Oldest() != 1 {
			t.Fatalf("from %d: the file changed", from)
		}
	}
	want(42, ErrNotFound)
	want(22, ErrPinned) // going on from the state of 20 takes 21
	release, err := l.Pin(9)
	if err != nil {
		t.Fatal(err)
	}
	want(11, ErrPinned)
	release()
	release()
	for g, err := range l.Commits(4) { // Q120: being read
		if err != nil {
			t.Fatal(err)
		}
		if g.Revision < 9 {
			want(g.Revision+1, ErrPinned)
		}
	}
	for range l.Backward(0) {
		want(3, ErrPinned)
		break
	}
	k.fs.NoPunch = true
	want(10, ErrNoPunch)
	k.fs.NoPunch = false
	if err := l.Retain(ctx, 10); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Pin(8); !errors.Is(err, ErrCompacted) {
		t.Errorf("a pin below the floor: %v", err)
	}
	if err := l.Retain(ctx, 5); err != nil || l.Oldest() != 10 {
		t.Errorf("an older floor: %v", err)
	}
	k.holds(l.Reader, 10)
	closeLog(t, l)
	if err := l.Retain(ctx, 20); !errors.Is(err, ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}

// zeroSlots overwrites slots of the log file.
func (k *kept) zeroSlots(which ...int) {
	for _, i := range which {
		if err := k.fs.ZeroSector(logName, frame.SlotOffsets[i]); err != nil {
			k.t.Fatal(err)
		}
	}
}

// on is the same log on another disk.
func (k *kept) on(img *simdisk.FS) *kept {
	return &kept{sim: &sim{t: inHook{}, fs: img, dice: k.dice}, n: k.n, state: k.state}
}

// inHook reports from within an operation of the log, where a test cannot end:
// caught does.
type inHook struct{}

func (inHook) Helper()                      {}
func (inHook) Fatal(args ...any)            { panic(failure(fmt.Sprint(args...))) }
func (inHook) Fatalf(f string, args ...any) { panic(failure(fmt.Sprintf(f, args...))) }

type failure string

// caught runs check and reports whether it failed.
func caught(t *testing.T, where func() string, check func()) (ok bool) {
	t.Helper()
	defer func() {
		if f, is := recover().(failure); is {
			t.Errorf("%s\n%s", f, where())
			ok = false
		}
	}()
	check()
	return true
}

// TestRetain_L47_CrashAtAnyStep cuts the power before every operation of a
// retention and within every sync (D32). Opening finds every commit from the old
// floor on, or from the new one; keys and state are there; nothing is free that
// a slot still leads to; and it does not matter if one slot is lost then, or
// both are.
func TestRetain_L47_CrashAtAnyStep(t *testing.T) {
	t.Run("pages to free", func(t *testing.T) { crashRetain(t, 30, 15) })
	t.Run("no page to free", func(t *testing.T) { crashRetain(t, 4, 2) })
}

func crashRetain(t *testing.T, n int, from uint64) {
	k, l := keptLog(t, n, from+1)
	points, old, new := 0, 0, 0
	cut := func(op simdisk.Op) {
		points++
		n := 0
		l.mu.Lock()
		acked := l.durable.end
		l.mu.Unlock()
		safe := func(_ string, off int64) bool { return off >= 16384 && off < acked }
		k.fs.EachImage(simdisk.ImageOptions{Mode: simdisk.Both, MaxBits: 4, Samples: 8, Garbage: true, Protected: safe}, func(img *simdisk.FS) bool {
			n++
			for _, lost := range [][]int{{}, {0}, {1}, {0, 1}} {
				if len(lost) > 0 && n%4 != 1 {
					continue
				}
				v := k.on(img.Clone())
				if !caught(t, func() string { return fmt.Sprintf("%v, slots %v lost\n%s", op, lost, img.Log()) }, func() {
					if len(lost) == 1 { // the other one must be there
						if h, err := readHeader(mustOpen(v)); err != nil || h.slots[1-lost[0]].err != nil {
							return
						}
					}
					v.zeroSlots(lost...)
					after := v.open(Options{})
					oldest := after.Oldest()
					switch oldest {
					case 1:
						old++
					case from:
						new++
						if from == 15 {
							v.freed(after)
						}
					default:
						v.t.Fatalf("oldest %d", oldest)
					}
					v.holds(after.Reader, oldest)
					if err := after.Close(); err != nil {
						v.t.Fatal(err)
					}
					v.verified()
					if after = v.open(Options{}); after.Oldest() != oldest {
						v.t.Fatalf("oldest %d, and %d when it is opened again", oldest, after.Oldest())
					}
					if err := after.Close(); err != nil {
						v.t.Fatal(err)
					}
				}) {
					return false
				}
			}
			return !t.Failed()
		})
	}
	k.fs.Before(cut)
	if err := l.Retain(context.Background(), from); err != nil {
		t.Fatal(err)
	}
	k.fs.Before(nil)
	cut(simdisk.Op{}) // when all is done
	if points < 10 || old < 20 || new < 20 {
		t.Errorf("%d crash points, %d old, %d new floors: too few to mean anything", points, old, new)
	}
	t.Logf("%d crash points, %d with the old floor, %d with the new one", points, old, new)
}

func mustOpen(k *kept) disk.File {
	f, err := k.fs.Dir().Open(logName, disk.ReadOnly)
	if err != nil {
		k.t.Fatal(err)
	}
	return f
}

func mustOpenWrite(k *kept) disk.File {
	f, err := k.fs.Dir().Open(logName, disk.ReadWrite)
	if err != nil {
		k.t.Fatal(err)
	}
	return f
}

// TestRetain_L47_PunchIsRepeated: freeing fails, or is cut short; opening does
// it, after it wrote and synced both slots itself.
func TestRetain_L47_PunchIsRepeated(t *testing.T) {
	k, l := keptLog(t, 30, 0)
	k.fs.Inject(simdisk.Fault{Kind: simdisk.OpPunch, Nth: 2}) // the first one asks
	if err := l.Retain(context.Background(), 15); !errors.Is(err, simdisk.ErrIO) {
		t.Fatalf("freeing fails: %v", err)
	}
	k.holds(l.Reader, 15)
	closeLog(t, l)
	var ops []simdisk.Op
	k.fs.Before(func(op simdisk.Op) {
		if !op.Inside {
			ops = append(ops, op)
		}
	})
	l = k.open(Options{})
	k.fs.Before(nil)
	slots, syncs := map[int64]bool{}, 0
	for _, op := range ops {
		switch {
		case op.Kind == simdisk.OpWrite && op.Len == frame.SlotSize:
			slots[op.Off] = true
		case op.Kind == simdisk.OpSync && len(slots) == 2:
			syncs++
		case op.Kind == simdisk.OpPunch && (len(slots) != 2 || syncs == 0):
			t.Fatalf("freed before both slots were on disk: %v", ops)
		}
	}
	k.freed(l)
	k.holds(l.Reader, 15)
	closeLog(t, l)
	n := 0
	k.fs.Before(func(op simdisk.Op) {
		if op.Kind == simdisk.OpPunch {
			n++
		}
	})
	closeLog(t, k.open(Options{}))
	if n != 0 {
		t.Errorf("nothing was left, and yet %d stretches were freed", n)
	}
}

// TestRetain_L47_FailsAtAnyStep lets every write and sync of a retention fail:
// the log is poisoned or goes on, and opening finds all of it.
func TestRetain_L47_FailsAtAnyStep(t *testing.T) {
	for _, kind := range []simdisk.Kind{simdisk.OpWrite, simdisk.OpSync} {
		for n := 1; ; n++ {
			k, l := keptLog(t, 25, 12)
			k.fs.Inject(simdisk.Fault{Kind: kind, Name: logName, Nth: n})
			err := l.Retain(context.Background(), 10)
			_ = l.Close() // it may be poisoned
			if err == nil {
				break
			}
			l = k.open(Options{})
			k.holds(l.Reader, l.Oldest())
			closeLog(t, l)
			k.verified()
		}
	}
}

// TestRetain_L27_TornFloorIsNone: both slots are lost, and the newest floor
// group is whole and yet no part of the history, for what was written with it is
// torn. The floor before it decides.
func TestRetain_L27_TornFloorIsNone(t *testing.T) {
	k, l := keptLog(t, 30, 0)
	if err := l.Retain(context.Background(), 4); err != nil {
		t.Fatal(err)
	}
	complete(t, l, payload(1, 100))
	torn := l.geo.Start(l.durable.end)
	var b []byte
	k.fs.Before(func(op simdisk.Op) {
		if op.Kind == simdisk.OpSync && b == nil {
			b = k.bytes()
		}
	})
	l.index = newEmptyIndex(l.index) // nothing to lift: the floor group is the next thing written
	if err := l.Retain(context.Background(), 20); err != nil {
		t.Fatal(err)
	}
	k.fs.Before(nil)
	b[torn+100] ^= 1
	k.put(b)
	k.zeroSlots(0, 1)
	l = k.open(Options{})
	if l.Oldest() != 4 || l.Head().Revision != 30 {
		t.Errorf("oldest %d, head %d", l.Oldest(), l.Head().Revision)
	}
	closeLog(t, l)
}

func newEmptyIndex(x *index) *index {
	return &index{lv: &levels{nextRun: x.lv.nextRun}, through: x.through}
}

// TestRetain_NothingIsFreedBelowAFloorThatIsNone: slots that name as floor what
// is none free nothing.
func TestRetain_NothingIsFreedBelowAFloorThatIsNone(t *testing.T) {
	k, l := keptLog(t, 30, 0)
	for range 40 {
		commit(t, l, payload(3, 40_000))
	}
	var g Group
	if err := l.At(20, &g); err != nil {
		t.Fatal(err)
	}
	closeLog(t, l)
	b := k.bytes()
	h := &header{size: int64(len(b))}
	if err := h.decode(b); err != nil {
		t.Fatal(err)
	}
	for i, off := range frame.SlotOffsets {
		h.slots[i].Floor = frame.Place{Offset: g.end, Revision: 20, Digest: uint64(g.Digest) + 1}
		h.geo.PutSlot(b[off:], off, &h.slots[i].Slot)
	}
	k.put(b)
	l, err := OpenIn(k.env(), logName, Options{})
	if err == nil {
		closeLog(t, l)
	}
	if now := k.bytes(); !bytes.Equal(now[16384:g.end], b[16384:g.end]) {
		t.Error("commits were freed")
	}
}

// TestRetain_ReaderLeftBehind: retention overtakes a reader that saw less. It
// goes on behind the floor, and says what it lost; one that looks up a revision
// with what it knew before the floor moved looks again.
func TestRetain_ReaderLeftBehind(t *testing.T) {
	k, l := keptLog(t, 10, 0)
	beside := k.reader(ReaderOptions{})
	if head, err := beside.Head(); err != nil || head.Revision != 10 {
		t.Fatal(head, err)
	}
	k.grow(l, 11, 40)
	stale, err := l.bounds()
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Retain(context.Background(), 30); err != nil {
		t.Fatal(err)
	}
	if head, err := beside.Head(); err != nil || head.Revision != 40 {
		t.Fatalf("head %d, %v", head.Revision, err)
	}
	k.holds(beside, 30)
	if err := beside.Close(); err != nil {
		t.Fatal(err)
	}
	met := 0
	for rev := uint64(1); rev <= 40; rev++ {
		b, g := stale, Group{}
		err := l.at(rev, &g, &b)
		for l.moved(&b, err) {
			met++
			err = l.at(rev, &g, &b)
		}
		if rev < 30 && !errors.Is(err, ErrCompacted) || rev >= 30 && err != nil {
			t.Fatalf("revision %d: %v", rev, err)
		}
	}
	if met == 0 {
		t.Error("nobody met a page that was freed")
	}
	closeLog(t, l)
}

// TestRetain_L39_LargeIndex retains a log whose index has levels, a merge under
// way among them: every key leads where it led, and of a key that was used again
// to its newest record.
func TestRetain_L39_LargeIndex(t *testing.T) {
	s := newSim(t)
	l := s.create(CreateOptions{}, Options{})
	const commits, per, same = 300, 90, 40
	key := func(i int) []byte { return fmt.Appendf(nil, "key%d", i) }
	for c := range commits {
		var b Batch
		for i := range per {
			b.Append([]byte("x"))
			b.Key(nil, key(c*per+i))
		}
		for i := range same {
			b.Append([]byte("again"))
			b.Key([]byte("same"), key(i))
		}
		b.CompleteOnly = true
		if _, err := l.Commit(context.Background(), &b); err != nil {
			t.Fatal(err)
		}
	}
	want := func(r *Reader, oldest uint64) {
		t.Helper()
		for i := 0; i < commits*per; i += 37 {
			rev, _, err := r.Lookup(nil, key(i))
			if at := uint64(i/per + 1); at < oldest && !errors.Is(err, ErrCompacted) || at >= oldest && (err != nil || rev != at) {
				t.Fatalf("key %d: revision %d, %v", i, rev, err)
			}
		}
		for i := range same {
			if rev, _, err := r.Lookup([]byte("same"), key(i)); err != nil || rev != commits {
				t.Fatalf("key %d, used in every commit: revision %d, %v", i, rev, err)
			}
		}
		if _, _, err := r.Lookup(nil, key(-1)); !errors.Is(err, ErrNoKey) {
			t.Fatal(err)
		}
	}
	before := s.reader(ReaderOptions{})
	want(before, 1)
	lifted := 0
	for _, from := range []uint64{2, 90, 200, 299} {
		var g Group
		if err := l.At(from-1, &g); err != nil {
			t.Fatal(err)
		}
		if l.index.lv.below(g.end) {
			lifted++
		}
		if err := l.Retain(context.Background(), from); err != nil {
			t.Fatal(err)
		}
		if l.index.lv.below(l.oldest().end) {
			t.Fatal("a part of the index lies below the floor")
		}
		want(l.Reader, from)
		want(before, from)
	}
	closeLog(t, l)
	l = s.open(Options{})
	want(l.Reader, 299)
	closeLog(t, l)
	if err := before.Close(); err != nil {
		t.Fatal(err)
	}
	if lifted == 0 {
		t.Error("nothing was to be lifted")
	}
}

// TestRetain_BesideEverything retains again and again on a real file while
// commits, lookups and readers go on.
func TestRetain_BesideEverything(t *testing.T) {
	path := filepath.Join(t.TempDir(), logName)
	l, err := Create(path, small, Options{CheckpointEvery: 16 << 10})
	if err != nil {
		t.Fatal(err)
	}
	const n = 600
	ctx := context.Background()
	var all sync.WaitGroup
	stop := make(chan struct{})
	fail := func(err error) {
		if err != nil && !t.Failed() && !errors.Is(err, ErrCompacted) && !errors.Is(err, ErrPinned) && !errors.Is(err, ErrNoKey) && !errors.Is(err, ErrNotFound) {
			t.Error(err)
		}
	}
	reading := func(r *Reader) {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			last := uint64(0)
			for g, err := range r.Commits(r.Oldest() - 1) {
				if err != nil {
					fail(err)
					break
				}
				if last != 0 && g.Revision != last+1 {
					t.Errorf("revision %d behind %d", g.Revision, last)
				}
				last = g.Revision
			}
			rev, _, err := r.Lookup([]byte("n"), fmt.Appendf(nil, "k%d", i%n))
			fail(err)
			if err == nil && rev != uint64(i%n) {
				t.Errorf("key %d leads to %d", i%n, rev)
			}
			var g Group
			fail(r.At(uint64(i%n)+1, &g))
		}
	}
	beside, err := OpenReader(path, ReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	all.Go(func() { reading(l.Reader) })
	all.Go(func() { reading(beside) })
	for i := 1; i <= n; i++ {
		var b Batch
		b.Append(make([]byte, 10+i*131%2000))
		b.Key([]byte("n"), fmt.Appendf(nil, "k%d", i))
		b.CompleteOnly = i%8 != 0
		if _, err := l.Commit(ctx, &b); err != nil {
			t.Fatal(err)
		}
		if i%40 == 0 {
			fail(l.Checkpoint(ctx, uint64(i), []byte("state")))
			if err := l.Retain(ctx, uint64(i-30)); errors.Is(err, ErrNoPunch) {
				t.Skip(err)
			} else {
				fail(err)
			}
		}
	}
	close(stop)
	all.Wait()
	if err := l.Retain(ctx, n-30); err != nil || l.Oldest() != n-30 { // nobody reads any more
		t.Errorf("oldest %d, %v", l.Oldest(), err)
	}
	if err := errors.Join(beside.Close(), l.Close()); err != nil {
		t.Fatal(err)
	}
	if r, err := Verify(ctx, path, VerifyOptions{}); err != nil || !r.Sound() {
		t.Errorf("%+v, %v", r.Findings, err)
	}
}

// beforeRead does something before the next read at an offset.
type beforeRead struct {
	disk.File
	off int64
	do  func()
}

func (f *beforeRead) ReadAt(p []byte, off int64) (int, error) {
	if do := f.do; do != nil && off == f.off {
		f.do = nil
		do()
	}
	return f.File.ReadAt(p, off)
}

// TestRetain_L47_L43_DroppedWhileItIsProven: the commit that a reader read last
// is dropped in the moment in which it is read again: that is no other history.
func TestRetain_L47_L43_DroppedWhileItIsProven(t *testing.T) {
	s := newSim(t)
	l := s.create(small, Options{CheckpointEvery: -1})
	for i := range 20 {
		commit(t, l, payload(i, 3000))
	}
	r := s.reader(ReaderOptions{})
	if h, err := r.Head(); err != nil || h.Revision != 20 {
		t.Fatal(h, err)
	}
	closeLog(t, l)
	l = s.open(Options{})
	for i := range 20 {
		commit(t, l, payload(i, 3000))
	}
	hook := &beforeRead{File: r.file, off: r.view.tipAt}
	hook.do = func() {
		if err := l.Retain(ctx0, 40); err != nil {
			t.Error(err)
		}
	}
	r.file = hook
	h, err := r.Head()
	if err != nil || h.Revision != 40 || r.Oldest() != 40 || hook.do != nil {
		t.Errorf("%+v, oldest %d, %v", h, r.Oldest(), err)
	}
}

// TestRetain_L47_L43_ReaderAtTheFloor: a reader whose last commit is the last
// one dropped has lost nothing, and goes on: also if it looks again only after
// that commit's pages were freed and another writer came.
func TestRetain_L47_L43_ReaderAtTheFloor(t *testing.T) {
	for _, damaged := range []bool{false, true} {
		s := newSim(t)
		l := s.create(small, Options{CheckpointEvery: -1})
		commit(t, l, payload(1, 300))
		commit(t, l, payload(2, 6000)) // its first page is freed
		if damaged {                   // and the reader steps over what is behind it
			if err := l.Checkpoint(ctx0, 2, []byte("state")); err != nil {
				t.Fatal(err)
			}
			b := s.bytes()
			b[l.head.end-4] ^= 1
			overwriteSim(t, s, b)
		}
		r := s.reader(ReaderOptions{})
		if h, err := r.Head(); err != nil || h.Revision != 2 {
			t.Fatal(h, err)
		}
		commit(t, l, payload(3, 300))
		if err := l.Retain(ctx0, 3); err != nil {
			t.Fatal(err)
		}
		closeLog(t, l)
		l = s.open(Options{})
		commit(t, l, payload(4, 300))
		if h, err := r.Head(); err != nil || h.Revision != 4 {
			t.Errorf("damaged %v: %+v, %v", damaged, h, err)
		}
		if got, err := contents(r, 2); err != nil || len(got) != 2 {
			t.Errorf("damaged %v: %d commits, %v", damaged, len(got), err)
		}
	}
}
