package pagelog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemark-log/tidemark/frame"
	"github.com/tidemark-log/tidemark/internal/disk"
	"github.com/tidemark-log/tidemark/internal/simdisk"
)

// Each of these holds one line of the engine that no other test would miss;
// fuzz/mutants shows which.

// A complete-only commit whose write is under way while the sync of another
// fails is uncertain: nothing is adopted any more.
func TestL14_WriteUnderWayWhileASyncFails(t *testing.T) {
	s := newSim(t)
	l := s.create(small, Options{ZeroAhead: ZeroAheadOff})
	commit(t, l, []byte("one"))
	inSync, goOn, inWrite, endWrite := make(chan struct{}), make(chan struct{}), make(chan struct{}), make(chan struct{})
	var once sync.Once
	s.fs.Before(func(op simdisk.Op) {
		switch {
		case op.Kind == simdisk.OpSync && op.Inside:
			s.fs.Inject(simdisk.Fault{Kind: simdisk.OpSync})
			close(inSync)
			<-goOn
		case op.Kind == simdisk.OpWrite && isClosed(inSync):
			once.Do(func() {
				close(inWrite)
				<-endWrite
			})
		}
	})
	failed := make(chan error, 1)
	go func() {
		_, err := l.Commit(ctx0, batchOf([]byte("two")))
		failed <- err
	}()
	<-inSync
	complete := make(chan error, 1)
	go func() {
		_, err := l.Commit(ctx0, completeOnly([]byte("three")))
		complete <- err
	}()
	<-inWrite
	close(goOn)
	if err := <-failed; !errors.Is(err, ErrUncertain) {
		t.Errorf("the commit whose sync failed: %v", err)
	}
	before := l.Head()
	close(endWrite)
	if err := <-complete; !errors.Is(err, ErrUncertain) {
		t.Errorf("the commit that was being written: %v", err)
	}
	if l.Head() != before {
		t.Errorf("the head moved from %+v to %+v after the log was poisoned", before, l.Head())
	}
}

func isClosed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// Zeros of an earlier life were cut off when the log was opened: on a disk that
// filled up meanwhile a commit is rejected, and not uncertain.
func TestC28_ZerosOfAnEarlierLifeAreNoRoom(t *testing.T) {
	s := newSim(t)
	s.fs.Capacity = 1 << 30
	l := s.create(small, Options{})
	commit(t, l, payload(1, 100))
	s.fs.Kill()
	l = s.open(Options{})
	s.fs.Capacity = int64(len(s.bytes())+511) / 512 * 512
	if _, err := l.Commit(ctx0, batchOf(payload(2, 3000))); !errors.Is(err, ErrNoSpace) || errors.Is(err, ErrUncertain) {
		t.Fatalf("on a full disk: %v", err)
	}
	s.fs.Capacity = 1 << 30
	commit(t, l, payload(3, 3000))
}

// There is room for a commit and none for the zeros ahead of it.
func TestC28_RoomForTheCommitAlone(t *testing.T) {
	s := newSim(t)
	s.fs.Capacity = 1 << 30
	l := s.create(small, Options{})
	s.fs.Capacity = int64(len(s.bytes())) + 4096
	commit(t, l, payload(1, 100))
	commit(t, l, payload(2, 2000))
}

// A checkpoint that is written while a sync runs is not named by the slot that
// follows this sync.
func TestCheckpoint_NamedOnlyWhenDurable(t *testing.T) {
	s := newSim(t)
	l := s.create(small, Options{CheckpointEvery: 1})
	s.fs.Before(func(op simdisk.Op) {
		if op.Kind == simdisk.OpSync && op.Inside {
			s.fs.Before(nil)
			complete(t, l, payload(2, 3000)) // and a checkpoint behind it
		}
	})
	commit(t, l, payload(1, 20))
	h := s.header()
	for i := range h.slots {
		if sl := &h.slots[i]; sl.err != nil || sl.Check.Offset > sl.Durable.Offset {
			t.Errorf("slot %d: %v, checkpoint at %d, durable up to %d", i, sl.err, sl.Check.Offset, sl.Durable.Offset)
		}
	}
	if h.newest().Check.Offset == 0 {
		t.Error("no slot names the durable checkpoint")
	}
}

// header reads the header area of the log.
func (s *sim) header() *header {
	s.t.Helper()
	h, err := readHeader(&memFile{b: s.bytes()})
	if err != nil {
		s.t.Fatal(err)
	}
	return h
}

// Idleness writes no slot while a sync runs: it would not know whether that
// sync covers it.
func TestSlots_IdleWritesNoneDuringASync(t *testing.T) {
	s := newSim(t)
	l := s.create(small, Options{})
	commit(t, l, []byte("one"))
	writes := 0
	s.fs.Before(func(op simdisk.Op) {
		if op.Kind == simdisk.OpSync && op.Inside {
			s.fs.Before(func(op simdisk.Op) {
				if op.Kind == simdisk.OpWrite {
					writes++
				}
			})
			l.onIdle()
			s.fs.Before(nil)
		}
	})
	commit(t, l, []byte("two"))
	if writes != 0 {
		t.Errorf("%d slots were written while a sync ran", writes)
	}
	s.fs.Before(func(op simdisk.Op) {
		if op.Kind == simdisk.OpWrite {
			writes++
		}
	})
	if l.onIdle(); writes != 1 {
		t.Errorf("%d slots were written in an idle time", writes)
	}
}

// lateFile is a file that shows other bytes once it was read: what a page cache
// does that drops pages which a failed sync left clean.
type lateFile struct {
	disk.File
	from  int64
	reads map[int64]int
	later func(b []byte, off int64, nth int) // changes what the nth read of off gives
}

func (f *lateFile) ReadAt(p []byte, off int64) (int, error) {
	n, err := f.File.ReadAt(p, off)
	if off+int64(n) > f.from {
		f.reads[f.from]++
		f.later(p[max(0, f.from-off):n], max(off, f.from), f.reads[f.from])
	}
	return n, err
}

// What is written again is what was verified, and not what the file says by
// then.
func TestC22_RewritesWhatWasVerified(t *testing.T) {
	s := newSim(t)
	l := s.create(small, Options{})
	commit(t, l, []byte("acknowledged"))
	from := l.head.end
	complete(t, l, payload(2, 300))
	end := l.head.end
	s.fs.Kill()
	whole := s.bytes()[from:end]
	f, err := s.fs.Dir().Open(logName, disk.ReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	walked := false
	shy := &lateFile{File: f, from: from, reads: map[int64]int{}, later: func(b []byte, _ int64, _ int) {
		if walked {
			clear(b) // the cache dropped the page, and the old one is back
		}
	}}
	h, err := readHeader(shy)
	if err != nil {
		t.Fatal(err)
	}
	r, err := recoverLog(shy, h, nil)
	if err != nil {
		t.Fatal(err)
	}
	walked = true
	sl := slots{now: func() int64 { return 1 }}
	if err := r.settle(&sl); err != nil {
		t.Fatal(err)
	}
	if r.report.Head != 2 || string(s.bytes()[from:end]) != string(whole) {
		t.Error("what was recovered is not what the file holds now")
	}
}

// A reader that met a bad group, then evidence that it was acknowledged, looks
// once more before it says corrupt.
func TestL42_ReaderLooksAgainAfterTheEvidence(t *testing.T) {
	s := newSim(t)
	l := s.create(small, Options{})
	commit(t, l, []byte("one"))
	from := l.head.end
	commit(t, l, []byte("two"))
	closeLog(t, l)
	for early := range 3 { // the looks of the anchor, of the walk, and the one after the evidence
		s.dir = func(d disk.Dir) disk.Dir { return &lateDir{Dir: d, from: from, early: early} }
		got, err := contents(s.reader(ReaderOptions{}), 0)
		if err != nil || len(got) != 2 {
			t.Errorf("after %d looks that came too early: %d commits, %v", early, len(got), err)
		}
	}
}

type lateDir struct {
	disk.Dir
	from  int64
	early int
}

func (d *lateDir) Open(name string, access disk.Access) (disk.File, error) {
	f, err := d.Dir.Open(name, access)
	if err != nil {
		return nil, err
	}
	return &lateFile{File: f, from: d.from, reads: map[int64]int{}, later: func(b []byte, _ int64, nth int) {
		if nth <= d.early { // the first looks came too early
			clear(b)
		}
	}}, nil
}

// The last MiB before the end is checked at every open, whatever the slots say.
func TestL25_DamageInTheLastMiBIsFoundByOpen(t *testing.T) {
	s := newSim(t)
	l := s.create(CreateOptions{}, Options{CheckpointEvery: -1})
	for i := range 30 {
		complete(t, l, payload(i, 100_000))
	}
	closeLog(t, l)
	end := l.head.end
	s.flip(end-checkedTail/2, 1)
	var c *CorruptError
	if err := s.refused(Options{}, ErrCorrupt); !errors.As(err, &c) || c.Offset >= end || c.Offset < end-checkedTail {
		t.Errorf("%v", err)
	}
}

// forge puts a group header that continues l, with a sum that holds, behind the
// head of a log that is not open any more. Its body is not there.
func (s *sim) forge(at point, change func(h *frame.GroupHeader)) {
	h := s.header()
	b := s.bytes()
	start := h.geo.Start(at.end)
	g := frame.GroupHeader{
		Count: 1, Revision: at.rev + 1, Body: 64, DurableEnd: 0, Prev: at.digest, Digest: 1, Epoch: at.epoch,
	}
	change(&g)
	b = append(b, make([]byte, max(0, start+1024-int64(len(b))))...)
	h.geo.PutGroup(b[start:], start, &g)
	s.put(b)
}

// What a later version wrote is not erased as a torn write.
func TestC31_GroupOfALaterVersionIsNotErased(t *testing.T) {
	s := newSim(t)
	l := s.create(small, Options{})
	commit(t, l, []byte("one"))
	s.fs.Kill()
	s.forge(l.head, func(h *frame.GroupHeader) { h.Flags = 1 << 7 })
	_ = s.refused(Options{}, ErrUnsupported)
}

// The new epoch is above all that were seen, also in a header behind the end.
func TestL24_EpochIsAboveATornOne(t *testing.T) {
	s := newSim(t)
	l := s.create(small, Options{})
	commit(t, l, []byte("one"))
	s.fs.Kill()
	s.forge(l.head, func(h *frame.GroupHeader) { h.Epoch = 41 })
	l = s.open(Options{})
	if r := l.Report(); r.Epoch != 42 || r.Head != 1 || r.Torn == 0 {
		t.Errorf("%+v", r)
	}
	closeLog(t, l)
}

// A page header within what a later group's header proves acknowledged is worth
// nothing against that proof: nothing is cut off for its sake.
func TestC19_BadPageHeaderBelowWhatAHeaderProves(t *testing.T) {
	s := newSim(t)
	l := s.create(small, Options{CheckpointEvery: -1})
	commit(t, l, payload(1, 20))
	from := l.head.end
	commit(t, l, payload(2, 5000)) // over a page's edge
	commit(t, l, payload(3, 20))   // says that 2 is durable; no slot does
	s.fs.Kill()
	page := l.geo.PageStart(from) + l.geo.PageSize()
	if named := s.header().durableEnd(); named > from {
		t.Fatalf("a slot names %d", named)
	}
	s.flip(page+20, 1)
	l = s.open(Options{})
	if got, err := contents(l.Reader, 0); err != nil || len(got) != 3 {
		t.Errorf("%d of 3 acknowledged commits are left, %v", len(got), err)
	}
}

// A slot whose history is not the one that the groups give is damage.
func TestC44_SlotOfAnotherHistory(t *testing.T) {
	s := newSim(t)
	l := s.create(small, Options{})
	commit(t, l, []byte("one"))
	closeLog(t, l)
	h, b := s.header(), s.bytes()
	for i := range h.slots {
		if sl := h.slots[i].Slot; sl.Durable.Offset == l.head.end {
			sl.Durable.Digest ^= 1
			l.geo.PutSlot(b[frame.SlotOffsets[i]:], frame.SlotOffsets[i], &sl)
		}
	}
	s.put(b)
	_ = s.refused(Options{}, ErrCorrupt)
}

// The last commit's header is gone, and a slot knows that there was one: its
// place is not stepped over as if it had been derived.
func TestC14_LastCommitIsNoBridge(t *testing.T) {
	s := newSim(t)
	l := s.create(small, Options{})
	commit(t, l, []byte("one"))
	from := l.head.end
	commit(t, l, []byte("two"))
	closeLog(t, l)
	b := s.bytes()
	clear(b[from:l.head.end])
	s.put(b)
	_ = s.refused(Options{}, ErrCorrupt)
}

// What copy returned without an error has its name after the loss of power.
func TestCopy_L56_NameIsDurable(t *testing.T) {
	s := newSim(t)
	l := s.create(small, Options{})
	commit(t, l, []byte("one"))
	closeLog(t, l)
	to := spot{env: s.env().withDefaults(), name: "copied", path: "copied"}
	err := to.publish(func(f disk.File) error {
		_, err := f.WriteAt(s.bytes(), 0)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	s.fs.EachImage(simdisk.ImageOptions{Mode: simdisk.Both}, func(img *simdisk.FS) bool {
		env := s.env()
		env.Dir = img.Dir()
		r, err := VerifyIn(context.Background(), env, "copied", VerifyOptions{Workers: 1})
		if err != nil || !r.Sound() || r.Head != 1 {
			t.Errorf("after a power cut: %+v, %v", r, err)
		}
		return true
	})
}

// A group above the proven end whose page header is wrong is torn, and what
// lies before it is written again without it.
func TestC4_BadPageHeaderAboveTheProvenEndIsTorn(t *testing.T) {
	s := newSim(t)
	l := s.create(small, Options{CheckpointEvery: -1})
	commit(t, l, payload(1, 20))
	complete(t, l, payload(2, 20))
	end := l.head.end
	complete(t, l, payload(3, 5000)) // over a page's edge
	s.fs.Kill()
	s.flip(l.geo.PageStart(end)+l.geo.PageSize()+20, 1)
	l = s.open(Options{})
	if r := l.Report(); r.Head != 2 || r.End != end || r.Torn == 0 || r.Rewritten == 0 {
		t.Errorf("%+v", r)
	}
	closeLog(t, l)
}

// swapDir gives the name to another file as soon as the log was opened.
type swapDir struct{ disk.Dir }

func (d swapDir) Open(name string, access disk.Access) (disk.File, error) {
	f, err := d.Dir.Open(name, access)
	if err != nil {
		return nil, err
	}
	other, err := d.Dir.Create("other")
	if err == nil {
		err = d.Dir.Replace(other, name)
	}
	return f, errors.Join(err, other.Close())
}

// A log whose name went to another file between opening and locking is not
// written to.
func TestL20_ReplacedWhileItIsOpened(t *testing.T) {
	s := newSim(t)
	closeLog(t, s.create(small, Options{}))
	s.dir = func(d disk.Dir) disk.Dir { return swapDir{d} }
	if _, err := OpenIn(s.env(), logName, Options{}); !errors.Is(err, ErrReplaced) {
		t.Errorf("%v", err)
	}
}

// An epoch that no writer can count on from is refused: one more would begin at
// 0 again, and the next opening would take what was committed then, and
// acknowledged, for the leftovers of an earlier writer, and cut it off.
func TestC31_EpochAtItsEnd(t *testing.T) {
	for _, epoch := range []uint64{1<<64 - 1, 1 << 63, 1<<63 - 1, 1<<63 - 2} {
		s := newSim(t)
		l := s.create(small, Options{})
		commit(t, l, []byte("one"))
		closeLog(t, l)
		h, b := s.header(), s.bytes()
		sl := *h.newest()
		sl.Epoch, sl.Number = epoch, sl.Number+1
		for _, off := range frame.SlotOffsets {
			l.geo.PutSlot(b[off:], off, &sl)
		}
		s.put(b)
		l, err := OpenIn(s.env(), logName, Options{})
		if epoch == 1<<63-1 {
			if !errors.Is(err, ErrCorrupt) {
				t.Errorf("epoch %d: %v", epoch, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("epoch %d: %v", epoch, err)
			continue
		}
		c := commit(t, l, []byte("acknowledged"))
		s.fs.Kill()
		if l, err = OpenIn(s.env(), logName, Options{}); err == nil && l.Head().Revision < c.Revision {
			t.Errorf("epoch %d: an acknowledged commit was cut off: %+v", epoch, l.Report())
		}
	}
}

// TestL35_ABlobThatLooksLikeACommit: bytes of the host's inside a damaged
// checkpoint that are a whole commit, sums and chain and all, are no commit: the
// checkpoint's header holds, and says how far it goes.
func TestL35_ABlobThatLooksLikeACommit(t *testing.T) {
	c := craft(4096, 8)
	c.commit(100)
	c.sync()
	c.name()

	// The forged commit will lie 512 bytes into the checkpoint.
	at := c.geo.Start(c.geo.Start(c.at.end) + 512)
	forged := frame.NewBuilder(c.geo)
	body := frame.AppendRecord(nil, 0, 0, frame.Plain, []byte("never committed"))
	h := frame.GroupHeader{Count: 1, Revision: c.at.rev + 1, Body: int64(len(body)), Prev: c.at.digest, Epoch: 1, DurableEnd: c.durable.end}
	h.Digest = h.ChainDigest(body)
	forged.Reset(at, c.at.rev)
	forged.Add(&h, body)
	forged.Seal(c.durable.end)

	blob := make([]byte, 2000)
	overhead := int64(len(frame.AppendRecord(nil, frame.KindCheckpoint, 0, frame.Plain, blob)) - len(blob))
	copy(blob[at-c.geo.Start(c.at.end)-frame.GroupHeaderSize-overhead:], forged.Bytes())
	c.group(frame.FlagDerived, frame.KindCheckpoint, blob)
	if i := bytes.Index(c.b, forged.Bytes()); int64(i) != at {
		t.Fatalf("the forged commit lies at %d, not at %d", i, at)
	}
	derived := c.groups[len(c.groups)-1]
	c.commit(50)
	c.sync()
	c.name()
	c.name()

	b := c.bytes(4096)
	b[derived.end-100] ^= 1
	s := newSim(t)
	s.put(b)
	whole := newSim(t)
	whole.put(c.bytes(4096))
	want, err := contents(whole.reader(ReaderOptions{}), 0)
	if err != nil || len(want) != 2 {
		t.Fatal(want, err)
	}
	if got, err := contents(s.reader(ReaderOptions{}), 0); err != nil || !slices.Equal(got, want) {
		t.Errorf("a reader sees %.20q, %v", got, err)
	}
	if r := check(t, b, 1); r.verdict() != "bridged" || r.Head != 2 {
		t.Errorf("verify says %s: %s", r.verdict(), r.describe())
	}
	l := s.open(Options{CheckpointEvery: -1})
	if got, err := contents(l.Reader, 0); err != nil || !slices.Equal(got, want) {
		t.Errorf("opening keeps %.20q, %v", got, err)
	}
	closeLog(t, l)
}

// TestL58_TheLastByteOfTheMaximum: a log may grow to its maximum size and no
// byte further.
func TestL58_TheLastByteOfTheMaximum(t *testing.T) {
	const limit = 24 << 10
	for _, over := range []int64{0, 8} {
		s := newSim(t)
		l := s.create(CreateOptions{PageSize: 4096, Align: 8, MaxSize: limit}, Options{ZeroAhead: ZeroAheadOff})
		commit(t, l, payload(1, 1000))
		start := l.geo.Start(l.head.end)
		n := 0
		for ; l.geo.WriteEnd(l.geo.End(start, int64(len(batchOf(payload(2, n)).body)))) < limit+over; n++ {
		}
		_, err := l.Commit(ctx0, batchOf(payload(2, n)))
		if fits := l.geo.WriteEnd(l.geo.End(start, int64(len(batchOf(payload(2, n)).body)))) <= limit; fits != (err == nil) || err != nil && !errors.Is(err, ErrNoSpace) {
			t.Errorf("a commit that ends %d bytes behind the maximum: %v", over, err)
		}
		closeLog(t, l)
	}
}

// TestL26_TheLastByteOfTheFile: garbage behind the end is reported to its last
// byte, wherever in a word the file ends.
func TestL26_TheLastByteOfTheFile(t *testing.T) {
	c := craft(4096, 8)
	c.commit(100)
	c.sync()
	c.name()
	for n := 1; n <= 80; n++ {
		b := c.bytes(n)
		b[len(b)-1] = 1
		r := check(t, b, 1)
		want := fmt.Sprintf("up to offset %d ", len(b))
		if r.verdict() != "torn" || len(r.Findings) != 1 || !strings.Contains(r.Findings[0].What, want) {
			t.Errorf("%d bytes behind the end: %s, want %q", n, r.describe(), want)
		}
	}
}

// TestL43_AFileThatGrewShorter: what a window still holds of another place is
// never taken for bytes that the file no longer has.
func TestL43_AFileThatGrewShorter(t *testing.T) {
	f := &memFile{b: payload(1, 4096)}
	w := window{r: f, limit: 4096, chunk: 1024}
	if b, err := w.read(0, 1024); err != nil || !bytes.Equal(b, f.b[:1024]) {
		t.Fatal(len(b), err)
	}
	f.b = f.b[:2100] // cut beside us
	if b, err := w.read(2048, 1024); err != nil || !bytes.Equal(b, f.b[2048:]) {
		t.Errorf("%d bytes where the file has %d, %v", len(b), 2100-2048, err)
	}
	if b, err := w.read(3000, 10); err != nil || len(b) != 0 {
		t.Errorf("%d bytes behind the end of the file, %v", len(b), err)
	}
}

// TestL35_TwoDamagedCheckpointsInARow: history goes on behind both, whichever
// part of either is damaged.
func TestL35_TwoDamagedCheckpointsInARow(t *testing.T) {
	c := craft(4096, 8)
	c.commit(100)
	c.sync()
	c.derived(300)
	c.derived(300)
	c.commit(50)
	c.sync()
	c.name()
	c.name()
	one, two := c.groups[1], c.groups[2]
	for _, first := range []int64{one.start + 40, one.end - 100} {
		for _, second := range []int64{two.start + 40, two.end - 100} {
			b := c.bytes(100)
			b[first] ^= 1
			b[second] ^= 1
			if r := check(t, b, 1); r.verdict() != "bridged" || r.Head != 2 {
				t.Errorf("damage at %d and %d: verify says %s: %s", first, second, r.verdict(), r.describe())
			}
			s := newSim(t)
			s.put(b)
			if got, err := contents(s.reader(ReaderOptions{}), 0); err != nil || len(got) != 2 {
				t.Errorf("damage at %d and %d: a reader sees %d commits, %v", first, second, len(got), err)
			}
		}
	}
}

// TestC19_AHeaderAtTheVeryEnd: the last group is cut off right behind its
// header, and only that header proves the commit before it.
func TestC19_AHeaderAtTheVeryEnd(t *testing.T) {
	c := craft(4096, 8)
	c.commit(100)
	c.sync()
	c.commit(50)
	b := c.bytes(0)[:c.groups[1].start+frame.GroupHeaderSize]
	if r := check(t, b, 1); r.verdict() != "torn" || r.Head != 1 {
		t.Errorf("cut: verify says %s: %s", r.verdict(), r.describe())
	}
	b[c.groups[0].end-20] ^= 1
	if r := check(t, b, 1); r.verdict() != "corrupt" {
		t.Errorf("cut, and the commit before it damaged: verify says %s: %s", r.verdict(), r.describe())
	}
}

// TestL35_ACheckpointOfAnotherHistory: a derived group that does not belong where
// it is hides the history behind it if it holds, for somebody wrote it; damaged,
// it is stepped over like any other.
func TestL35_ACheckpointOfAnotherHistory(t *testing.T) {
	c := craft(4096, 8)
	c.commit(100)
	c.sync()
	c.at.rev += 5
	c.derived(300)
	c.at.rev -= 5
	c.commit(50)
	c.sync()
	c.checks = nil
	c.name()
	c.name()
	b := c.bytes(100)
	if r := check(t, b, 1); r.verdict() != "corrupt" || r.Head != 1 {
		t.Errorf("whole: verify says %s: %s", r.verdict(), r.describe())
	}
	b[c.groups[1].end-100] ^= 1
	if r := check(t, b, 1); r.verdict() != "bridged" || r.Head != 2 {
		t.Errorf("damaged: verify says %s: %s", r.verdict(), r.describe())
	}
}

// TestSlots_AfterALargeSync: a sync of many bytes is named by a slot at once,
// and many small ones are after a while; a small one is not.
func TestSlots_AfterALargeSync(t *testing.T) {
	s := newSim(t)
	l := s.create(CreateOptions{}, Options{CheckpointEvery: -1})
	slotsOf := func(n int) uint64 {
		before := l.Stats().Slots
		commit(t, l, payload(1, n))
		return l.Stats().Slots - before
	}
	if n := slotsOf(slotSync / 2); n != 0 {
		t.Errorf("%d slots after a small sync", n)
	}
	if n := slotsOf(slotSync + 4096); n != 1 {
		t.Errorf("%d slots after a large sync", n)
	}
	if h, err := readHeader(&memFile{b: s.bytes()}); err != nil || h.durableEnd() != l.durable.end {
		t.Errorf("slots name %d of %d, %v", h.durableEnd(), l.durable.end, err)
	}
	var n uint64
	for range slotEvery / slotSync * 4 {
		n += slotsOf(slotSync / 2)
	}
	if n == 0 || n > 3 {
		t.Errorf("%d slots after %d bytes in small syncs", n, 2*slotEvery)
	}
	closeLog(t, l)
}

// TestL18_SyncsOfItsOwn: what stays complete-only for long enough is synced
// without anybody asking, so that little is lost and the last sync is short.
func TestL18_SyncsOfItsOwn(t *testing.T) {
	s := newSim(t)
	l := s.create(CreateOptions{}, Options{MaxUnsynced: 8 * backgroundSync})
	for range 5 {
		complete(t, l, payload(1, backgroundSync/4))
	}
	for until := time.Now().Add(10 * time.Second); l.Durable().Revision < 4; runtime.Gosched() {
		if time.Now().After(until) {
			t.Fatalf("revision %d is durable, %d were committed", l.Durable().Revision, l.Head().Revision)
		}
	}
	closeLog(t, l)
}

// TestSlots_OpenedOverTheNewest: opening writes over the newest slot, so that
// the other one, which names less, stays until the new one is durable.
func TestSlots_OpenedOverTheNewest(t *testing.T) {
	s := newSim(t)
	l := s.create(small, Options{})
	var which [2]int
	for i := range 6 {
		commit(t, l, payload(i, 100))
		if i%2 == 0 {
			closeLog(t, l)
		} else {
			s.fs.Kill()
		}
		before, err := readHeader(&memFile{b: s.bytes()})
		if err != nil {
			t.Fatal(err)
		}
		newest := 0
		if before.slots[1].Number > before.slots[0].Number {
			newest = 1
		}
		l = s.open(Options{})
		after, err := readHeader(&memFile{b: s.bytes()})
		if err != nil {
			t.Fatal(err)
		}
		if after.slots[newest].Number != before.slots[newest].Number+1 || after.slots[1-newest].Number != before.slots[1-newest].Number {
			t.Errorf("opening wrote slots %d and %d over %d and %d", after.slots[0].Number, after.slots[1].Number, before.slots[0].Number, before.slots[1].Number)
		}
		if after.slots[newest].Time <= before.slots[newest].Time {
			t.Errorf("the slot has the time of the one before it")
		}
		which[newest]++
	}
	if which[0] == 0 || which[1] == 0 {
		t.Errorf("the newest slot was always the same one: %v", which)
	}
	closeLog(t, l)
}

// TestSlots_AfterEveryIdleness: whenever nothing happens for a while after
// commits, a slot names them; once, and as often as that comes about.
func TestSlots_AfterEveryIdleness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const idle = time.Second
		s := newSim(t)
		env := s.env()
		env.Idle = idle
		l, err := CreateIn(env, logName, small, Options{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 3 {
			before := l.Stats().Slots
			for range 3 {
				commit(t, l, payload(i, 100))
				<-time.After(idle / 2) // not long enough
			}
			if n := l.Stats().Slots - before; n != 0 {
				t.Errorf("round %d: %d slots between commits", i, n)
			}
			<-time.After(5 * idle)
			if n := l.Stats().Slots - before; n != 1 || l.named != l.durable.end {
				t.Errorf("round %d: %d slots after idleness, want 1", i, n)
			}
		}
		closeLog(t, l)
	})
}

// TestL18_WrittenWhileASyncRuns: a durable commit whose write ends while a sync
// is under way that was issued before is not made durable by it, and waits for
// the next one.
func TestL18_WrittenWhileASyncRuns(t *testing.T) {
	s := newSim(t)
	l := s.create(small, Options{ZeroAhead: ZeroAheadOff})
	commit(t, l, []byte("one"))
	inSync, goOn, left := make(chan struct{}), make(chan struct{}), make(chan int, 1)
	var inWrite, inside sync.Once
	s.fs.Before(func(op simdisk.Op) {
		switch {
		case op.Kind == simdisk.OpWrite:
			inWrite.Do(func() {
				go func() {
					l.mu.Lock()
					defer l.mu.Unlock()
					l.sync()
					left <- len(l.unacked)
					l.handOver()
				}()
				<-inSync
			})
		case op.Kind == simdisk.OpSync && op.Inside:
			inside.Do(func() {
				close(inSync)
				<-goOn
			})
		}
	})
	done := make(chan error, 1)
	go func() {
		_, err := l.Commit(ctx0, batchOf([]byte("two")))
		done <- err
	}()
	for written := false; !written; runtime.Gosched() {
		l.mu.Lock()
		written = len(l.unacked) == 1
		l.mu.Unlock()
	}
	close(goOn)
	if n := <-left; n != 1 {
		t.Errorf("%d commits wait for the next sync, want 1", n)
	}
	select {
	case err := <-done:
		if d := l.Durable().Revision; err != nil || d != 2 {
			t.Errorf("acknowledged with revision %d durable, %v", d, err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("no sync comes for it")
	}
	s.fs.Before(nil)
	closeLog(t, l)
}

// TestClose_NothingToWrite: a write that finds nothing in line, because who
// asked for it left, lets Close go on.
func TestClose_NothingToWrite(t *testing.T) {
	l := newSim(t).create(small, Options{})
	l.mu.Lock()
	l.closing, l.quiet = true, make(chan struct{})
	l.write()
	if !isClosed(l.quiet) {
		t.Error("Close would wait for ever")
	}
	l.closing, l.quiet = false, nil
	l.mu.Unlock()
	commit(t, l, []byte("x"))
	closeLog(t, l)
}

// TestC44_SlotThatNamesTheBeginning: also the place at which the walk begins
// must be as a slot says.
func TestC44_SlotThatNamesTheBeginning(t *testing.T) {
	for i := range 2 {
		c := craft(4096, 8)
		c.commit(100)
		s := newSim(t)
		s.put(c.bytes(100))
		closeLog(t, s.open(Options{}))
		c.slots[i].Durable.Revision = 3
		s.put(c.bytes(100))
		if _, err := OpenIn(s.env(), logName, Options{}); !errors.Is(err, ErrCorrupt) {
			t.Errorf("slot %d says that revision 3 ends before the first group: %v", i, err)
		}
	}
}

// TestL35_AGroupThatDoesNotCarryOn: where a header behind the damage holds and
// belongs to another history, a commit may be hidden there: a slot that confirms
// the end is no bridge then.
func TestL35_AGroupThatDoesNotCarryOn(t *testing.T) {
	c := craft(4096, 8)
	c.commit(100)
	c.sync()
	before := c.at
	c.derived(300)
	c.at.rev += 5
	c.commit(50)
	c.at.rev, c.at.digest = before.rev, before.digest
	c.sync()
	c.checks = nil
	c.name()
	c.name()
	b := c.bytes(100)
	b[c.groups[1].start+40] ^= 1
	if r := check(t, b, 1); r.verdict() != "corrupt" || r.Head != 1 {
		t.Errorf("verify says %s: %s", r.verdict(), r.describe())
	}
	s := newSim(t)
	s.put(b)
	if _, err := OpenIn(s.env(), logName, Options{}); !errors.Is(err, ErrCorrupt) {
		t.Errorf("opening: %v", err)
	}
}

// TestL57_ReportSaysWhereItBegan: the report names the place from which
// everything was checked.
func TestL57_ReportSaysWhereItBegan(t *testing.T) {
	for _, n := range []int{1, 300} {
		s := newSim(t)
		l := s.create(small, Options{CheckpointEvery: -1})
		for i := range n {
			commit(t, l, payload(i, 16<<10))
		}
		closeLog(t, l)
		l = s.open(Options{CheckpointEvery: -1})
		begin, from, end := l.geo.HeaderArea(), l.Report().FromOffset, l.head.end
		if n == 1 && from != begin || n > 1 && (from <= begin+checkedTail || from > end) {
			t.Errorf("%d commits: the walk began at %d, the log goes from %d to %d", n, from, begin, end)
		}
		closeLog(t, l)
	}
}

// TestWindow_ReadsOnce: reading on reads no byte twice, and again takes no new
// memory.
func TestWindow_ReadsOnce(t *testing.T) {
	f := &countingFile{memFile: &memFile{b: payload(1, 64<<10)}}
	w := window{r: f, limit: 64 << 10, chunk: 4096}
	pass := func() {
		for off := int64(0); off < w.limit; off += 1000 {
			for range 2 {
				b, err := w.read(off, 1500)
				if err != nil || !bytes.Equal(b, f.b[off:min(off+1500, w.limit)]) {
					t.Fatalf("%d bytes at %d, %v", len(b), off, err)
				}
			}
		}
	}
	pass()
	if n := f.bytes.Load(); n != w.limit {
		t.Errorf("%d bytes are read of %d", n, w.limit)
	}
	if raceEnabled {
		return
	}
	if n := testing.AllocsPerRun(10, pass); n != 0 {
		t.Errorf("%v allocations", n)
	}
	g := craft(4096, 8).geo
	if n := testing.AllocsPerRun(100, func() {
		if _, err := search(f, g, 0, w.limit); err != nil {
			t.Fatal(err)
		}
	}); n >= 1 {
		t.Errorf("a search allocates %v times", n)
	}
}
