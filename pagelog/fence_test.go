package pagelog

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/tidemark-log/tidemark/cursor"
	"github.com/tidemark-log/tidemark/frame"
	"github.com/tidemark-log/tidemark/internal/disk"
)

var (
	runA = [32]byte{1}
	runB = [32]byte{2}
)

func under(run [32]byte, token uint64) Options { return Options{Fence: Fence{run, token}} }

// TestFence_R95_Open: a log belongs to one run for life, and only its newest
// holder, or a newer one, may open it. A refusal changes nothing.
func TestFence_R95_Open(t *testing.T) {
	s := newSim(t)
	closeLog(t, s.create(small, Options{}))
	closeLog(t, s.open(Options{})) // nobody's yet
	l := s.open(under(runA, 3))
	commit(t, l, []byte("one"))
	if l.Fence() != (Fence{runA, 3}) {
		t.Error(l.Fence())
	}
	closeLog(t, l)
	for _, o := range []Options{{}, under(runA, 2), under(runB, 3), under(runB, 99)} {
		before := s.bytes()
		if err := s.refused(o, ErrFenced); err == nil {
			t.Fatalf("%v opened it", o.Fence)
		}
		if !bytes.Equal(before, s.bytes()) {
			t.Fatalf("%v changed it", o.Fence)
		}
	}
	closeLog(t, s.open(under(runA, 3)))
	l = s.open(under(runA, 7))
	commit(t, l, []byte("two"))
	closeLog(t, l)
	_ = s.refused(under(runA, 3), ErrFenced)
	info, err := s.reader(ReaderOptions{}).Info()
	if err != nil || info.Owner != (Fence{runA, 7}) {
		t.Error(info.Owner, err)
	}
	for _, f := range []Fence{{Run: runA}, {Token: 1}} {
		if _, err := OpenIn(s.env(), logName, Options{Fence: f}); err == nil || errors.Is(err, ErrFenced) {
			t.Errorf("%v: %v", f, err)
		}
	}
}

// TestFence_R95_SlotsLost: a checkpoint says whose the log is when the slots do
// not, and how new its holder, when the newest slot does not.
func TestFence_R95_SlotsLost(t *testing.T) {
	for name, lose := range map[string]int{"both": 2, "newest": 1} {
		s := newSim(t)
		l := s.create(small, under(runA, 3))
		commit(t, l, []byte("one"))
		closeLog(t, l)
		l = s.open(under(runA, 5))
		commit(t, l, []byte("two"))
		if err := l.Checkpoint(context.Background(), 2, []byte("state")); err != nil {
			t.Fatal(err)
		}
		closeLog(t, l)
		b := s.bytes()
		var slots [2]frame.Slot
		for i, off := range frame.SlotOffsets {
			var err error
			if slots[i], err = l.geo.DecodeSlot(b[off:], off); err != nil {
				t.Fatal(err)
			}
		}
		for i, off := range frame.SlotOffsets {
			if lose == 2 || slots[i].Number > slots[1-i].Number {
				b[off+100] ^= 1
			} else { // as if its writer had never got to a second slot
				old := slots[i]
				old.Fence, old.Epoch = 3, 1
				l.geo.PutSlot(b[off:], off, &old)
			}
		}
		s.put(b)
		_ = s.refused(under(runA, 4), ErrFenced)
		_ = s.refused(under(runB, 9), ErrFenced)
		_ = s.refused(Options{}, ErrFenced)
		t.Log(name)
		l = s.open(under(runA, 5))
		closeLog(t, l)
		_ = s.refused(under(runA, 4), ErrFenced)
	}
}

// overtake makes the log in s look as it does after a holder with a newer token
// opened it in spite of l.
func overtake(t *testing.T, s *sim, l *Log, token uint64) {
	t.Helper()
	other := newSim(t)
	other.put(s.bytes())
	closeLog(t, other.open(under(l.Fence().Run, token)))
	b := other.bytes()
	for _, off := range frame.SlotOffsets {
		if _, err := l.file.WriteAt(b[off:off+frame.SlotSize], off); err != nil {
			t.Fatal(err)
		}
	}
}

// TestFence_R95_Overtaken: a live writer that was overtaken acknowledges
// nothing more, and writes neither a group nor a slot.
func TestFence_R95_Overtaken(t *testing.T) {
	for name, act := range map[string]func(l *Log) error{
		"commit":     func(l *Log) error { _, err := l.Commit(context.Background(), batchOf([]byte("x"))); return err },
		"complete":   func(l *Log) error { _, err := l.Commit(context.Background(), completeOnly([]byte("x"))); return err },
		"submit":     func(l *Log) error { _, err := l.Submit(batchOf([]byte("x"))).Wait(context.Background()); return err },
		"checkpoint": func(l *Log) error { return l.Checkpoint(context.Background(), 1, []byte("x")) },
		"sync":       func(l *Log) error { return l.Sync(context.Background()) },
		"idle":       func(l *Log) error { l.onIdle(); return l.poisoned() },
		"close":      func(l *Log) error { return l.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			s := newSim(t)
			l := s.create(small, under(runA, 3))
			commit(t, l, []byte("one"))
			commit(t, l, []byte("two"))
			if name == "sync" {
				complete(t, l, []byte("three"))
			}
			durable := l.Durable()
			overtake(t, s, l, 4)
			before := s.bytes()
			err := act(l)
			if !errors.Is(err, ErrFenced) {
				t.Fatalf("got %v", err)
			}
			if got := s.bytes(); !bytes.Equal(got, before) {
				t.Error("it wrote")
			}
			if l.Durable() != durable {
				t.Errorf("durable went on to %v", l.Durable())
			}
			if name == "close" {
				return
			}
			if _, err := l.Commit(context.Background(), batchOf([]byte("y"))); !errors.Is(err, ErrPoisoned) || !errors.Is(err, ErrFenced) {
				t.Errorf("goes on: %v", err)
			}
			_ = l.Close()
			if got := s.bytes(); !bytes.Equal(got, before) {
				t.Error("closing wrote")
			}
		})
	}
}

// watched counts what a log asks of its file, and lets somebody act in between.
type watched struct {
	disk.File
	reads, syncs int
	atSync       func()
}

func (w *watched) ReadAt(b []byte, off int64) (int, error) {
	w.reads++
	return w.File.ReadAt(b, off)
}

func (w *watched) Sync() error {
	w.syncs++
	if w.atSync != nil {
		w.atSync()
	}
	return w.File.Sync()
}

func watch(l *Log) *watched {
	w := &watched{File: l.file}
	l.file, l.slots.file = w, w
	if l.fenced != nil {
		l.fenced.file = w
	}
	return w
}

// TestFence_R95_OvertakenWhileWriting: a holder that comes between the write
// and its acknowledgement is seen, too.
func TestFence_R95_OvertakenWhileWriting(t *testing.T) {
	s := newSim(t)
	l := s.create(small, under(runA, 3))
	commit(t, l, []byte("one"))
	w := watch(l)
	w.atSync = func() { w.atSync = nil; overtake(t, s, l, 4) }
	if _, err := l.Commit(context.Background(), batchOf([]byte("x"))); !errors.Is(err, ErrFenced) || !errors.Is(err, ErrUncertain) {
		t.Errorf("got %v", err)
	}
	_ = l.Close()
}

// TestFence_R95_OvertakenByALaterVersion: a newer holder whose program turned on
// a feature that this one does not know is a newer holder, too.
func TestFence_R95_OvertakenByALaterVersion(t *testing.T) {
	for _, floor := range []int64{0, 7} { // 7: what a place means changed as well
		s := newSim(t)
		l := s.create(small, under(runA, 3))
		commit(t, l, []byte("one"))
		overtake(t, s, l, 4)
		b := s.bytes()
		for i, off := range frame.SlotOffsets {
			craftSlot(t, b, i, func(s *frame.Slot) {
				s.Features.Incompat = 1 << 7
				s.Floor.Offset += floor
			})
			if _, err := l.file.WriteAt(b[off:off+frame.SlotSize], off); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := l.Commit(context.Background(), batchOf([]byte("x"))); !errors.Is(err, ErrFenced) {
			t.Errorf("got %v", err)
		}
		if !bytes.Equal(s.bytes(), b) {
			t.Error("it wrote")
		}
		_ = l.Close()
	}
}

// TestFence_R95_Cost: what a fence costs a commit is one read before the write
// and one before the acknowledgement, no sync, and no allocation.
func TestFence_R95_Cost(t *testing.T) {
	count := func(o Options, later bool) (reads, syncs int) {
		s := newSim(t)
		o.CheckpointEvery = -1
		l := s.create(small, o)
		for range 3 {
			commit(t, l, []byte("one"))
		}
		w := watch(l)
		if later {
			complete(t, l, []byte("two"))
		} else {
			commit(t, l, []byte("two"))
		}
		reads, syncs = w.reads, w.syncs
		closeLog(t, l)
		return reads, syncs
	}
	for _, later := range []bool{false, true} {
		reads, syncs := count(Options{}, later)
		more, same := count(under(runA, 1), later)
		want := 2
		if later {
			want = 1
		}
		if more-reads != want || same != syncs {
			t.Errorf("complete only %v: %d reads and %d syncs became %d and %d", later, reads, syncs, more, same)
		}
	}
	s := newSim(t)
	l := s.create(small, under(runA, 1))
	if n := testing.AllocsPerRun(100, func() {
		if err := errors.Join(l.fenced.mayWrite(), l.fenced.mayAcknowledge()); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	closeLog(t, l)
}

// TestFence_R95_CompactKeeps: compacting a run's log needs no holder and keeps
// whose it is.
func TestFence_R95_CompactKeeps(t *testing.T) {
	s := newSim(t)
	l := s.create(small, under(runA, 3))
	for i := range 20 {
		commit(t, l, payload(i, 300))
	}
	closeLog(t, l)
	if _, err := CompactIn(context.Background(), s.env(), logName, CompactOptions{}); err != nil {
		t.Fatal(err)
	}
	_ = s.refused(Options{}, ErrFenced)
	_ = s.refused(under(runA, 2), ErrFenced)
	l = s.open(under(runA, 3))
	if l.Head().Revision != 20 {
		t.Error(l.Head())
	}
	closeLog(t, l)
}

// TestBase_R96_RecoveryCursor: a cursor of the log that a fresh one begins after
// is taken up at the base, and an older one is told where to begin again.
func TestBase_R96_RecoveryCursor(t *testing.T) {
	const n, k = 30, 12
	whole, rest := continued(t, n, k, Options{})
	a, b := whole.reader(ReaderOptions{}), rest.reader(ReaderOptions{})
	for rev := uint64(0); rev <= n; rev++ {
		d, err := a.DigestAt(rev)
		if err != nil {
			t.Fatal(err)
		}
		c := cursor.Cursor{Position: cursor.Position{Log: a.LogID(), Revision: rev}, Digest: d, View: 5}
		got, err := b.FromBase(c)
		var gone *cursor.CompactedError
		switch {
		case rev < k && (!errors.As(err, &gone) || gone.Recovery() != k):
			t.Errorf("cursor %d: %v, %v", rev, got, err)
		case rev == k && (err != nil || got.Log != b.LogID() || got.Revision != k || got.View != 5):
			t.Errorf("cursor at the base: %v, %v", got, err)
		case rev > k && !errors.Is(err, cursor.ErrFuture):
			t.Errorf("cursor %d: %v, %v", rev, got, err)
		}
		if rev == k {
			next := uint64(0)
			got.View = 0
			for g, err := range b.From(got) {
				if err != nil {
					t.Fatal(err)
				}
				next = g.Revision
				break
			}
			if next != k+1 {
				t.Errorf("goes on with %d", next)
			}
			c.Digest++
			if _, err := b.FromBase(c); !errors.Is(err, cursor.ErrDiverged) {
				t.Errorf("another history: %v", err)
			}
			c.Log[0]++
			if _, err := b.FromBase(c); !errors.Is(err, cursor.ErrForeign) {
				t.Errorf("a third log: %v", err)
			}
		}
	}
	own := cursor.Cursor{Position: cursor.Position{Log: b.LogID(), Revision: 3}}
	if got, err := b.FromBase(own); err != nil || got != own {
		t.Error(got, err)
	}
	if _, err := a.FromBase(own); !errors.Is(err, cursor.ErrForeign) {
		t.Errorf("a log without a base: %v", err)
	}
	if a.Base() != (cursor.Cursor{}) || b.Base().Revision != k || b.Base().Log != a.LogID() {
		t.Error(a.Base(), b.Base())
	}
}

// TestFence_R95_CopyAndSalvage: a copy is the same log and belongs to the same
// run; what was salvaged is a new one and nobody's.
func TestFence_R95_CopyAndSalvage(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	path := filepath.Join(dir, "log")
	l, err := Create(path, CreateOptions{}, under(runA, 3))
	if err != nil {
		t.Fatal(err)
	}
	commit(t, l, []byte("one"))
	if err := l.Checkpoint(ctx, 1, []byte("state")); err != nil {
		t.Fatal(err)
	}
	closeLog(t, l)
	if _, err := Copy(ctx, path, path+"-copy", CopyOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := Salvage(ctx, path, path+"-saved", SalvageOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, o := range []Options{{}, under(runA, 2), under(runB, 3)} {
		if _, err := Open(path+"-copy", o); !errors.Is(err, ErrFenced) {
			t.Errorf("the copy under %v: %v", o.Fence, err)
		}
	}
	for name, o := range map[string]Options{"-copy": under(runA, 3), "-saved": under(runB, 1)} {
		l, err := Open(path+name, o)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		closeLog(t, l)
	}
}
