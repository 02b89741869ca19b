package pagelog

import (
	"bytes"
	"errors"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/tidemark-log/tidemark/checkpoint"
	"github.com/tidemark-log/tidemark/cursor"
	"github.com/tidemark-log/tidemark/frame"
)

// Found by an attack on the promises: files that were made for the purpose,
// with sums that hold, and ordinary ones in unlucky states. Each was red once.

// craftSlot changes slot i of a log and makes its sum right again.
func craftSlot(t testing.TB, b []byte, i int, change func(s *frame.Slot)) {
	t.Helper()
	id, err := frame.DecodeIdentity(b)
	if err != nil {
		t.Fatal(err)
	}
	off := frame.SlotOffsets[i]
	g := id.Geometry()
	s, err := g.DecodeSlot(b[off:off+frame.SlotSize], off)
	if err != nil {
		t.Fatal(err)
	}
	change(&s)
	g.PutSlot(b[off:off+frame.SlotSize], off, &s)
}

func within(t testing.TB, d time.Duration, what string, do func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); do() }()
	select {
	case <-done:
	case <-time.After(d):
		t.Errorf("%s: not done after %v", what, d)
	}
}

func TestHostile_KeyIsForgottenAfterACrash(t *testing.T) {
	s := newSim(t)
	l := s.create(small, Options{})
	var b Batch
	b.Append([]byte("value"))
	b.Key([]byte("ns"), []byte("key"))
	c, err := l.Commit(ctx0, &b)
	if err != nil {
		t.Fatal(err)
	}
	commit(t, l, []byte("its header says that the key is durable"))
	s.fs.Kill()
	l = s.open(Options{})
	ask := func(who string, r *Reader) {
		t.Helper()
		if rev, _, err := r.Lookup([]byte("ns"), []byte("key")); err != nil || rev != c.Revision {
			t.Errorf("%s: revision %d, %v", who, rev, err)
		}
	}
	ask("the log", l.Reader)
	ask("a reader beside it", s.reader(ReaderOptions{}))
	s.fs.Kill()
	l = s.open(Options{})
	ask("the log, opened again", l.Reader)
	closeLog(t, l)
	l = s.open(Options{})
	ask("the log, closed and opened again", l.Reader)
}

func TestHostile_OneLookBehindABridgeIsNotDeep(t *testing.T) {
	s := newSim(t)
	l := s.create(small, Options{CheckpointEvery: -1})
	commit(t, l, []byte("one"))
	if err := l.Checkpoint(ctx0, 1, []byte("state")); err != nil { // a slot names its end
		t.Fatal(err)
	}
	to := l.head.end
	commit(t, l, []byte("two"))        // acknowledged, and
	complete(t, l, []byte("and more")) // this header says so
	s.fs.Kill()
	b := s.bytes()
	b[to-4] ^= 1                        // the checkpoint's body
	b[to+frame.GroupHeaderSize+24] ^= 1 // the second commit's
	s.put(b)
	s.refused(Options{}, ErrCorrupt)
	h, err := s.reader(ReaderOptions{}).Head()
	if !errors.Is(err, ErrCorrupt) {
		t.Errorf("a reader's head is revision %d, %v; revision 2 was acknowledged and is damaged", h.Revision, err)
	}
	got, err := contents(s.reader(ReaderOptions{}), 0)
	if !errors.Is(err, ErrCorrupt) {
		t.Errorf("a reader got %d commits, %v", len(got), err)
	}
}

func TestHostile_DamageBehindABridgeIsSilent(t *testing.T) {
	s := newSim(t)
	l := s.create(small, Options{CheckpointEvery: -1})
	commit(t, l, []byte("one"))
	if err := l.Checkpoint(ctx0, 1, []byte("state")); err != nil { // a slot names its end
		t.Fatal(err)
	}
	to := l.head.end
	commit(t, l, []byte("two"))        // acknowledged, and
	complete(t, l, []byte("and more")) // this header says so
	s.fs.Kill()
	b := s.bytes()
	b[to-4] ^= 1                        // the checkpoint's body
	b[to+frame.GroupHeaderSize+24] ^= 1 // the second commit's
	s.put(b)
	r := s.reader(ReaderOptions{})
	_, headErr := r.Head()
	got, err := contents(r, 0)
	if err == nil {
		t.Errorf("iteration ended without an error after %d commits; 2 were acknowledged, and Head says %v", len(got), headErr)
	}
}

func TestHostile_ShortenedFileIsNotNoticed(t *testing.T) {
	for _, o := range []Options{{ZeroAhead: ZeroAheadOff}, {ZeroAhead: ZeroAheadOn}} {
		path := filepath.Join(t.TempDir(), "a.log")
		l, err := Create(path, CreateOptions{}, o)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 20 {
			commit(t, l, payload(i, 1000))
		}
		if err := os.Truncate(path, 17000); err != nil {
			t.Fatal(err)
		}
		c, err := l.Commit(ctx0, batchOf(payload(1, 70_000)))
		if errors.Is(err, ErrReplaced) {
			_ = l.Close()
			continue
		}
		closeErr := l.Close()
		_, again := Open(path, Options{})
		t.Errorf("ZeroAhead %d: revision %d was acknowledged (%v, %v) after the file was cut to 17000 bytes; reopening: %v", o.ZeroAhead, c.Revision, err, closeErr, again)
	}
}

func TestHostile_AcknowledgedStateIsForgotten(t *testing.T) {
	s := newSim(t)
	l := s.create(small, Options{CheckpointEvery: 5000})
	commit(t, l, []byte("one"))
	if err := l.Checkpoint(ctx0, 1, []byte("old state")); err != nil {
		t.Fatal(err)
	}
	commit(t, l, []byte("two"))
	slots := bytes.Clone(s.bytes()[frame.SlotOffsetA : frame.SlotOffsetB+frame.SlotSize])
	if err := l.Checkpoint(ctx0, 2, []byte("new state")); err != nil { // acknowledged; its slot is not synced
		t.Fatal(err)
	}
	from := l.head.end
	complete(t, l, make([]byte, 9000)) // zeros, and in the same write a checkpoint that is due
	s.fs.Kill()
	// The power goes. Of what is in flight the slot does not land, and of the
	// last write one sector: beside a page header it held zeros.
	b := s.bytes()
	copy(b[frame.SlotOffsetA:], slots)
	page := l.geo.PageStart(from) + l.geo.PageSize()
	clear(b[page : page+512])
	s.put(b)
	l = s.open(Options{})
	rev, data, err := l.LastCheckpoint()
	if err != nil || string(data) != "new state" {
		t.Errorf("head %d; the last state is %q of revision %d, %v; %q was acknowledged", l.Head().Revision, data, rev, err, "new state")
	}
}

func TestHostile_ReaderShowsAGroupThatRecoveryCuts(t *testing.T) {
	s := newSim(t)
	l := s.create(small, Options{CheckpointEvery: -1})
	commit(t, l, []byte("one"))
	complete(t, l, []byte("two"))
	from := l.head.end
	complete(t, l, make([]byte, 9000)) // zeros, over two edges of pages
	s.fs.Kill()
	b := s.bytes()
	page := l.geo.PageStart(from) + l.geo.PageSize()
	clear(b[page : page+512]) // this sector did not land: beside the page header it held zeros
	s.put(b)
	before, err := s.reader(ReaderOptions{}).Head()
	if err != nil {
		t.Fatal(err)
	}
	v, err := VerifyIn(ctx0, s.env(), logName, VerifyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w := s.open(Options{})
	if head := w.Head(); before.Revision != head.Revision {
		t.Errorf("a reader showed revision %d; verify says the head is %d, and opening cut it off: %d", before.Revision, v.Head, head.Revision)
	}
}

func TestHostile_DurableReaderStopsAtABridge(t *testing.T) {
	s := newSim(t)
	l := s.create(small, Options{CheckpointEvery: -1})
	commit(t, l, []byte("one"))
	if err := l.Checkpoint(ctx0, 1, []byte("state")); err != nil {
		t.Fatal(err)
	}
	to := l.head.end
	commit(t, l, []byte("two"))
	complete(t, l, []byte("three"))
	s.fs.Kill()
	b := s.bytes()
	b[to-4] ^= 1 // the checkpoint's body
	s.put(b)
	if got, err := contents(s.reader(ReaderOptions{}), 0); err != nil || len(got) != 3 {
		t.Fatalf("reader: %d commits, %v", len(got), err)
	}
	got, err := contents(s.reader(ReaderOptions{Durable: true}), 0)
	if err != nil || len(got) != 2 {
		t.Errorf("durable reader: %d commits, want 2; error %v, is ErrCorrupt: %v", len(got), err, errors.Is(err, ErrCorrupt))
	}
	if info, err := s.reader(ReaderOptions{}).Info(); err != nil {
		t.Errorf("Info: %+v, %v", info.Head, err)
	}
}

func TestHostile_RestoreBehindBridge(t *testing.T) {
	s := newSim(t)
	l := s.create(small, Options{CheckpointEvery: -1})
	commit(t, l, []byte("one"))
	closeLog(t, l)
	old := s.bytes()
	l = s.open(Options{CheckpointEvery: -1})
	commit(t, l, []byte("two"))
	if err := l.Checkpoint(ctx0, 2, []byte("state")); err != nil {
		t.Fatal(err)
	}
	to := l.head.end
	closeLog(t, l)
	whole := s.bytes()
	for _, damaged := range []bool{false, true} {
		b := bytes.Clone(whole)
		if damaged {
			b[to-4] ^= 1 // the checkpoint's body
		}
		s.put(b)
		r := s.reader(ReaderOptions{})
		if h, err := r.Head(); err != nil || h.Revision != 2 {
			t.Fatal(h, err)
		}
		s.fs.WriteFile(logName, old) // restored, in place
		h, err := r.Head()
		if !errors.Is(err, ErrDiverged) && !errors.Is(err, ErrReplaced) {
			t.Errorf("damaged %v: restored to revision 1 under a reader that read 2: head %d, %v", damaged, h.Revision, err)
		}
	}
}

func TestHostile_OpenReadsBackwardInLargeChunks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.log")
	l, err := Create(path, CreateOptions{}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	mib := payload(1, 1<<20)
	var big Batch
	for range 48 {
		big.Append(mib)
	}
	if _, err := l.Commit(ctx0, &big); err != nil {
		t.Fatal(err)
	}
	closeLog(t, l)
	began := time.Now()
	if l, err = Open(path, Options{}); err != nil {
		t.Fatal(err)
	}
	took := time.Since(began)
	read := l.Report().BytesRead
	closeLog(t, l)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if read > 3*info.Size() {
		t.Errorf("opening a log of %d MiB read %d MiB, in %v", info.Size()>>20, read>>20, took)
	}
}

func TestHostile_SalvageNeverEnds(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.log")
	l, err := Create(path, CreateOptions{MaxRecord: 4, PageSize: 4096}, Options{CheckpointEvery: -1})
	if err != nil {
		t.Fatal(err)
	}
	commit(t, l, []byte("aaaa"))
	at := l.head.end
	for range 3 {
		commit(t, l, []byte("bbbb"))
	}
	closeLog(t, l)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[at+frame.GroupHeaderSize+frame.RecordHeaderSize] ^= 1
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	within(t, 2*time.Second, "Salvage of a log of 3 commits of 4 bytes", func() {
		_, _ = Salvage(ctx0, path, filepath.Join(dir, "new.log"), SalvageOptions{}) // goes on until the process ends, or the disk is full
	})
}

func TestHostile_AutomaticCheckpointIsWhatDoesNotFit(t *testing.T) {
	s := newSim(t)
	const most = 40_000
	l := s.create(CreateOptions{PageSize: 4096, MaxSize: most}, Options{CheckpointEvery: 20_000})
	for l.head.end < 16384+20_000-200 {
		commit(t, l, payload(1, 100))
	}
	// fill up so that the next commit fits exactly, and a checkpoint is due
	n := most - l.geo.Start(l.head.end) - frame.GroupHeaderSize - frame.RecordHeaderSize
	for l.geo.End(l.geo.Start(l.head.end), frame.RecordSize(int(n))) > most {
		n -= 8
	}
	if _, err := l.Commit(ctx0, batchOf(payload(2, int(n)))); err != nil {
		t.Errorf("a commit that fits into the log's maximum size: %v", err)
	}
}

func TestHostile_CheckpointOverTheBodyLimit(t *testing.T) {
	s := newSim(t)
	create := small
	create.MaxGroup = 1 << 20
	l := s.create(create, Options{CheckpointEvery: -1})
	commit(t, l, []byte("one"))
	// As 10 million uses of one key leave it: pieces of two blocks each.
	run := checkpoint.Run{Level: 3, Last: math.MaxUint64}
	const n = 44_000
	for range n {
		run.Extents = append(run.Extents, checkpoint.Extent{Offset: 16416, First: 1, Blocks: 2})
	}
	run.Entries = n * 2 * checkpoint.BlockEntries
	l.index.lv.all[3].main = newRun(run)
	l.index.lv.nextRun = 1
	if err := l.Checkpoint(ctx0, 1, make([]byte, checkpoint.MaxBlob)); err != nil {
		t.Logf("rejected: %v", err)
		return
	}
	c := commit(t, l, []byte("two"))
	closeLog(t, l)
	l, err := OpenIn(s.env(), logName, Options{})
	if err != nil || l.Head().Revision != c.Revision {
		t.Fatalf("revision %d was acknowledged; reopening: %v", c.Revision, err)
	}
	if _, data, err := l.LastCheckpoint(); err != nil || len(data) != checkpoint.MaxBlob {
		t.Errorf("the acknowledged state is gone: %v; report %+v", err, l.Report())
	}
}

func TestHostile_NewerSlotIsTakenForDamage(t *testing.T) {
	s := acknowledged(t, Options{})
	b := s.bytes()
	id, err := frame.DecodeIdentity(b)
	if err != nil {
		t.Fatal(err)
	}
	g := id.Geometry()
	newest := 0
	var sl [2]frame.Slot
	for i, off := range frame.SlotOffsets {
		sl[i], _ = g.DecodeSlot(b[off:off+frame.SlotSize], off)
	}
	if sl[1].Number > sl[0].Number {
		newest = 1
	}
	off := frame.SlotOffsets[newest]
	x := sl[newest]
	x.Features.Incompat = 1 << 7 // a later version turned a feature on, and gave the floor a new meaning
	x.Floor.Offset = 7
	g.PutSlot(b[off:off+frame.SlotSize], off, &x)
	if _, err := g.DecodeSlot(b[off:off+frame.SlotSize], off); !errors.Is(err, frame.ErrUnsupported) {
		t.Fatal(err)
	}
	s.put(b)
	l, err := OpenIn(s.env(), logName, Options{})
	if !errors.Is(err, ErrUnsupported) {
		r := Report{}
		if err == nil {
			r = l.Report()
		}
		after := s.bytes()[off : off+frame.SlotSize]
		t.Errorf("open: %v, %+v; the newer slot was written over: %v", err, r, !bytes.Equal(after, b[off:off+frame.SlotSize]))
	}
	if _, err := OpenReaderIn(s.env(), logName, ReaderOptions{}); err == nil && l == nil {
		t.Error("a reader opens it as well")
	}
}

func TestHostile_RevisionOverflow(t *testing.T) {
	s := newSim(t)
	create := small
	create.Base = cursor.Cursor{Position: cursor.Position{Log: cursor.LogID{1}, Revision: math.MaxInt64 - 1}}
	l := s.create(create, Options{})
	acked := uint64(0)
	for range 3 {
		c, err := l.Commit(ctx0, batchOf([]byte("acknowledged")))
		if err != nil {
			break
		}
		acked = c.Revision
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l, err := OpenIn(s.env(), logName, Options{})
	if err != nil || l.Head().Revision != acked {
		t.Fatalf("revision %d was acknowledged as durable; reopening: %v", acked, err)
	}
}

func TestHostile_SlotNamesHugeOffset(t *testing.T) {
	world := func() *sim {
		s := acknowledged(t, Options{})
		b := s.bytes()
		for i := range 2 {
			craftSlot(t, b, i, func(s *frame.Slot) { s.Durable.Offset = 1 << 60 })
		}
		s.put(b)
		return s
	}
	s := world()
	within(t, 3*time.Second, "Open", func() {
		if l, err := OpenIn(s.env(), logName, Options{}); err == nil {
			t.Errorf("it opens, with %+v", l.Report())
		}
	})
	s = world()
	within(t, 3*time.Second, "Reader.Head", func() {
		r, err := OpenReaderIn(s.env(), logName, ReaderOptions{})
		if err == nil {
			_, _ = r.Head()
		}
	})
	s = world()
	within(t, 3*time.Second, "Verify", func() {
		_, _ = VerifyIn(ctx0, s.env(), logName, VerifyOptions{Workers: 1})
	})
}

func TestHostile_FloorBeyondTheFile(t *testing.T) {
	s := acknowledged(t, Options{})
	b := s.bytes()
	for i := range 2 {
		craftSlot(t, b, i, func(s *frame.Slot) {
			s.Durable = frame.Place{Offset: 64 << 20, Revision: 8, Digest: 1}
			s.Floor = s.Durable
			s.Check, s.Before = frame.Place{}, frame.Place{}
		})
	}
	s.put(b)
	l, err := OpenIn(s.env(), logName, Options{})
	if err != nil {
		return
	}
	t.Errorf("a file of %d bytes whose slots say that %d bytes are durable opens; report %+v; it has %d bytes now",
		len(b), 64<<20, l.Report(), len(s.bytes()))
}

func TestHostile_BridgingIsQuadratic(t *testing.T) {
	build := func(n int) *sim {
		s := newSim(t)
		l := s.create(small, Options{CheckpointEvery: -1})
		commit(t, l, []byte("one"))
		closeLog(t, l)
		raw := s.bytes()[:l.head.end]
		bld := frame.NewBuilder(l.geo)
		bld.Reset(l.head.end, 1)
		body := frame.AppendRecord(nil, 0x12345, 0, frame.Plain, nil)
		var end int64
		for range n {
			h := derivedHeader(l.head, body, 1, 1)
			h.Digest ^= 1 // damaged under a header that holds
			end = bld.Add(&h, body)
		}
		bld.Seal(l.head.end)
		raw = append(raw, make([]byte, bld.Offset()-int64(len(raw)))...)
		raw = append(raw, bld.Bytes()...)
		for i := range 2 {
			craftSlot(t, raw, i, func(s *frame.Slot) { s.Durable.Offset, s.Durable.Digest = end, 77 })
		}
		s.put(raw)
		return s
	}
	s := build(4000)
	within(t, time.Minute, "Verify of 4000 damaged derived groups", func() {
		r, err := VerifyIn(ctx0, s.env(), logName, VerifyOptions{Workers: 1})
		if err != nil || len(r.Findings)+int(r.Uncounted) < 4000 {
			t.Errorf("%d findings, %d uncounted, %v", len(r.Findings), r.Uncounted, err)
		}
	})
}

// Both slots are lost, and many groups that are not of the history name a floor.
func TestHostile_FloorsThatAreNone_L4(t *testing.T) {
	s := newSim(t)
	l := s.create(small, Options{CheckpointEvery: -1})
	commit(t, l, []byte("one"))
	closeLog(t, l)
	b := s.bytes()[:l.head.end]
	for _, off := range frame.SlotOffsets {
		clear(b[off : off+frame.SlotSize])
	}
	bld := frame.NewBuilder(l.geo)
	bld.Reset(l.head.end, 1)
	f := checkpoint.Floor{Place: l.head.place(), Generation: 1}
	body := frame.AppendRecord(nil, frame.KindFloor, 0, frame.Plain, f.Encode())
	at := l.head
	at.digest ^= 1
	for range 50_000 {
		h := derivedHeader(at, body, 1, 1)
		bld.Add(&h, body)
	}
	bld.Seal(l.geo.HeaderArea())
	b = append(b, make([]byte, bld.Offset()-int64(len(b)))...)
	s.put(append(b, bld.Bytes()...))
	within(t, 30*time.Second, "opening a file of 9 MB", func() { s.refused(Options{}, ErrCorrupt) })
}

func TestHostile_IndexAllocatesWhatACheckpointClaims(t *testing.T) {
	s := newSim(t)
	l := s.create(small, Options{CheckpointEvery: -1})
	commit(t, l, []byte("one"))
	closeLog(t, l)
	raw := s.bytes()[:l.head.end]
	run := checkpoint.Run{Number: 0, Level: 0, Role: checkpoint.Incoming, Last: math.MaxUint64}
	for i := range 568 {
		run.Extents = append(run.Extents, checkpoint.Extent{Offset: 16416, First: uint64(i), Blocks: checkpoint.MaxPieceBlocks})
	}
	run.Entries = 568 * checkpoint.MaxPieceBlocks * checkpoint.BlockEntries
	cp := checkpoint.Checkpoint{Resume: l.head.place(), Index: checkpoint.Index{NextRun: 2}}
	cp.Index.Runs = append(cp.Index.Runs, run)
	run.Number, run.Level = 1, 1
	cp.Index.Runs = append(cp.Index.Runs, run)
	body := frame.AppendRecord(nil, frame.KindCheckpoint, 0, frame.Plain, cp.Encode())
	bld := frame.NewBuilder(l.geo)
	bld.Reset(l.head.end, 1)
	h := derivedHeader(l.head, body, 1, 1)
	bld.Add(&h, body)
	bld.Seal(l.head.end)
	raw = append(raw, make([]byte, bld.Offset()-int64(len(raw)))...)
	raw = append(raw, bld.Bytes()...)
	s.put(raw)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_ = s.open(Options{})
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 32<<20 {
		t.Errorf("opening a file of %d KiB allocated %d MiB", len(raw)>>10, n>>20)
	}
}

func TestHostile_EpochAtItsBoundIsRefusedTooLate(t *testing.T) {
	s := acknowledged(t, Options{})
	b := s.bytes()
	for i := range 2 {
		craftSlot(t, b, i, func(s *frame.Slot) { s.Epoch = math.MaxInt64 })
	}
	s.put(b)
	if _, err := OpenIn(s.env(), logName, Options{}); !errors.Is(err, ErrCorrupt) {
		t.Fatal(err)
	}
	if after := s.bytes(); !bytes.Equal(after, b) {
		t.Errorf("refused, and changed: %d bytes were %d", len(after), len(b))
	}
}

func TestHostile_SlotNumbersRunOut(t *testing.T) {
	s := acknowledged(t, Options{})
	b := s.bytes()
	for i := range 2 {
		craftSlot(t, b, i, func(s *frame.Slot) { s.Number = math.MaxInt64 - 2 + s.Number%2 })
	}
	s.put(b)
	l, err := OpenIn(s.env(), logName, Options{})
	if err != nil {
		return // refused: fine
	}
	for range 3 {
		if err := l.Checkpoint(ctx0, 8, []byte("state")); err != nil {
			t.Fatal(err)
		}
	}
	closeLog(t, l)
	if l, err = OpenIn(s.env(), logName, Options{}); err != nil || l.Report().BadSlots > 0 {
		t.Errorf("closed in good order, and opened with %d bad slots, %v", l.Report().BadSlots, err)
	}
}

func TestHostile_DurableReaderTrustsTheSlot(t *testing.T) {
	s := newSim(t)
	l := s.create(small, Options{CheckpointEvery: -1})
	commit(t, l, []byte("one"))
	commit(t, l, []byte("two"))
	closeLog(t, l)
	l = s.open(Options{CheckpointEvery: -1})
	complete(t, l, []byte("three"))
	s.fs.Kill()
	b := bytes.Clone(s.bytes())
	for i := range 2 {
		craftSlot(t, b, i, func(s *frame.Slot) { s.Durable.Revision += 1000 })
	}
	s.put(b)
	s.refused(Options{}, ErrCorrupt)
	h, err := s.reader(ReaderOptions{Durable: true}).Head()
	if err == nil && h.Revision > 3 {
		t.Errorf("durable head %d of a log of 3 commits", h.Revision)
	}
}

func TestHostile_SweepRemovesWhatIsNotItsOwn(t *testing.T) {
	dir := t.TempDir()
	other := filepath.Join(dir, ".a.log.tmp-notes.txt")
	if err := os.WriteFile(other, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := Create(filepath.Join(dir, "a.log"), CreateOptions{}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	closeLog(t, l)
	if _, err := os.Stat(other); err != nil {
		t.Error(err)
	}
}
