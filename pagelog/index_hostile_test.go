package pagelog

import (
	"errors"
	"math"
	"runtime"
	"testing"

	"github.com/tidemark-log/tidemark/checkpoint"
	"github.com/tidemark-log/tidemark/frame"
)

// What checkpoints, floors and runs may claim under sums that hold, and numbers
// that only grow.

// TestHostile_BlobThatIsNone: a checkpoint that points anywhere for the host's
// state costs that state, and the one before it is handed out; nothing else is
// read for it, and everything that uses it goes on.
func TestHostile_BlobThatIsNone(t *testing.T) {
	var ends int64
	for _, off := range []func(l *Log) int64{
		func(*Log) int64 { return 1 },
		func(*Log) int64 { return 8 },
		func(*Log) int64 { return frame.SlotOffsetA },
		func(l *Log) int64 { return l.geo.HeaderArea() },
		func(l *Log) int64 { return l.geo.HeaderArea() + frame.PageHeaderSize },     // a commit
		func(l *Log) int64 { return l.geo.HeaderArea() + frame.PageHeaderSize + 8 }, // in a commit
		func(l *Log) int64 { return l.checks.last.group.Offset + 4 },
		func(l *Log) int64 { return l.checks.last.end },
		func(*Log) int64 { return 1 << 40 },
		func(*Log) int64 { return math.MaxInt64 },
	} {
		s := newSim(t)
		l := s.create(small, Options{CheckpointEvery: -1})
		for i := range 40 {
			commit(t, l, payload(i, 300))
		}
		if err := l.Checkpoint(ctx0, 20, []byte("a state that holds")); err != nil {
			t.Fatal(err)
		}
		l.checks.blob = frame.Place{Offset: off(l), Revision: 30, Digest: l.checks.last.blob.Digest}
		ends = l.checks.blob.Offset
		if err := l.Checkpoint(ctx0, 40, nil); err != nil {
			t.Fatal(err)
		}
		closeLog(t, l)
		l = s.open(Options{CheckpointEvery: -1})
		for who, r := range map[string]*Reader{"the log": l.Reader, "beside": s.reader(ReaderOptions{})} {
			rev, data, err := r.LastCheckpoint()
			if rev != 20 || string(data) != "a state that holds" || err != nil {
				t.Errorf("blob at %d, %s: revision %d, %q, %v", ends, who, rev, data, err)
			}
		}
		if _, err := l.Branch(35); err != nil && !isLost(err) {
			t.Errorf("blob at %d: branch: %v", ends, err)
		}
		if err := l.Retain(ctx0, 15); err != nil && !errors.Is(err, ErrPinned) {
			t.Errorf("blob at %d: retain: %v", ends, err)
		}
		closeLog(t, l)
		if _, err := CompactIn(ctx0, s.env(), logName, CompactOptions{}); err != nil {
			t.Errorf("blob at %d: compact: %v", ends, err)
		}
	}
}

// TestIndex_RunNumbersDoNotEnd_L39: rebuilding and retention take run numbers by
// the thousand. Wherever they are, what checkpoints say is read again.
func TestIndex_RunNumbersDoNotEnd_L39(t *testing.T) {
	s := newSim(t)
	l := s.create(small, Options{})
	l.index.lv.nextRun = math.MaxUint32 - 3 // as after some years of it
	fillKeys(t, l, 0, 9000, 100)
	if err := l.Checkpoint(ctx0, 90, []byte("state")); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		closeLog(t, l)
		l = s.open(Options{})
		if rev, data, err := l.LastCheckpoint(); rev != 90 || string(data) != "state" || err != nil {
			t.Fatalf("opening %d: %d, %q, %v", i, rev, data, err)
		}
		if n := len(l.index.table.entries); n != 0 {
			t.Errorf("opening %d: the keys of %d commits were read again", i, n)
		}
		wantKeys(t, l.Reader, 9000, 13, 100)
		wantKeys(t, s.reader(ReaderOptions{}), 9000, 131, 100)
		if err := l.Reindex(ctx0); err != nil {
			t.Fatal(err)
		}
	}
	if l.index.lv.nextRun <= math.MaxUint32 {
		t.Errorf("the next run has number %d", l.index.lv.nextRun)
	}
	closeLog(t, l)
}

// TestDirectory_ForgetsWhatIsUnderWay: what a lookup read of the file before it
// changed is not remembered behind that.
func TestDirectory_ForgetsWhatIsUnderWay(t *testing.T) {
	var d directory
	age := d.from(0)
	d.put(age, 8, 100)
	if lo, hi := d.narrow(50, 0, 16); lo != 0 || hi != 7 {
		t.Fatalf("pages %d to %d", lo, hi)
	}
	d.forget()
	now := d.from(0) // another lookup
	d.put(age, 8, 100)
	if lo, hi := d.narrow(50, 0, 16); lo != 0 || hi != 16 {
		t.Errorf("pages %d to %d, by what was said before", lo, hi)
	}
	d.put(now, 8, 40)
	if lo, hi := d.narrow(50, 0, 16); lo < 8 || hi != 16 {
		t.Errorf("pages %d to %d", lo, hi)
	}
}

// TestHostile_FloorAllocatesWhatAHeaderClaims: where both slots are lost, a group
// that says to be long is not read beyond the file.
func TestHostile_FloorAllocatesWhatAHeaderClaims(t *testing.T) {
	const claimed = 512 << 20
	s := newSim(t)
	l := s.create(CreateOptions{PageSize: 4096, MaxGroup: 1 << 30, MaxRecord: 1 << 29}, Options{CheckpointEvery: -1})
	c := commit(t, l, []byte("one"))
	end := l.head.end
	geo := l.geo
	closeLog(t, l)
	b := s.bytes()
	start := geo.Start(end)
	b = append(b[:end], make([]byte, 4096)...)
	h := frame.GroupHeader{Flags: frame.FlagDerived, Count: 1, Revision: c.Revision, Body: claimed, Prev: uint64(c.Digest), Epoch: 1}
	geo.PutGroup(b[start:], start, &h)
	record := frame.AppendRecord(nil, frame.KindCheckpoint, 0, frame.Plain, make([]byte, checkpoint.Size))
	b[start+frame.GroupHeaderSize+3] = 0x1f // the length of its record, which is the first field
	copy(b[start+frame.GroupHeaderSize+4:], record[4:])
	b[frame.SlotOffsetA+60] ^= 1
	b[frame.SlotOffsetB+60] ^= 1
	s.put(b)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	l, err := OpenIn(s.env(), logName, Options{})
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 64<<20 {
		t.Errorf("opening a file of %d bytes takes %d", len(b), n)
	}
	if err != nil || l.Head().Digest != c.Digest {
		t.Errorf("head %+v, %v", l.Head(), err)
	}
}
