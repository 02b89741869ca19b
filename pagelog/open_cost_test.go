package pagelog

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/tidemark-log/tidemark/frame"
	"github.com/tidemark-log/tidemark/internal/disk"
)

// longLog lays out a log of any size on the real file system as a writer leaves
// it that was killed: slots that lag behind, whole groups above what they name,
// and the beginning of one more. Its records are zeros, which take no space; so
// a gigabyte costs some megabytes. Every byte of it is valid.
type longLog struct {
	t   *testing.T
	f   *os.File
	id  frame.Identity
	geo *frame.Geometry
	b   *frame.Builder
	at  point
	was point // where the durable end was at the last sync

	bodies map[int][]byte // by the size of their record
}

func newLongLog(t *testing.T, path string, begin point) *longLog {
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := &longLog{t: t, f: f, bodies: map[int][]byte{}, id: frame.Identity{
		PageSize: frame.MaxPageSize, Align: 8, LogID: [16]byte{4}, Salt: 99, MaxRecord: 16 << 20, MaxGroup: 64 << 20, MaxRecords: 1 << 20,
	}}
	w.geo = w.id.Geometry()
	w.b = frame.NewBuilder(w.geo)
	w.at = begin
	if w.at.end == 0 {
		w.at.end = w.geo.HeaderArea()
	}
	w.at.epoch = 1
	w.was = w.at
	w.slots(w.at)
	return w
}

// put writes what is not zero of bytes.
func (w *longLog) put(b []byte, off int64) {
	w.t.Helper()
	const block = 4096
	for len(b) > 0 {
		n := min(int64(len(b)), block-off%block)
		if !frame.IsZero(b[:n]) {
			if _, err := w.f.WriteAt(b[:n], off); err != nil {
				w.t.Fatal(err)
			}
		}
		b, off = b[n:], off+n
	}
}

// commit appends a commit of one record of n zeros.
func (w *longLog) commit(n int) {
	body := w.bodies[n]
	if body == nil {
		body = frame.AppendRecord(nil, 0, 0, frame.Plain, make([]byte, n))
		w.bodies[n] = body
	}
	h := frame.GroupHeader{Count: 1, Revision: w.at.rev + 1, Body: int64(len(body)), Prev: w.at.digest, Epoch: 1, Time: 1}
	h.Digest = h.ChainDigest(body)
	w.b.Reset(w.at.end, w.at.rev)
	w.at.end = w.b.Add(&h, body)
	w.at.rev, w.at.digest = h.Revision, h.Digest
	w.b.Seal(w.was.end)
	w.put(w.b.Bytes(), w.b.Offset())
}

// slots writes the header area; history begins at floor.
func (w *longLog) slots(floor point) {
	one := w.id.Encode()
	w.put(one, frame.IdentityOffset)
	w.put(one, frame.IdentityCopyOffset)
	s := frame.Slot{Epoch: 1, Durable: w.was.place(), Floor: floor.place(), Generation: 1}
	for i, off := range frame.SlotOffsets {
		s.Number = uint64(i + 1)
		b := make([]byte, frame.SlotSize)
		w.geo.PutSlot(b, off, &s)
		w.put(b, off)
	}
}

// killed ends it: the last 40 commits are in no slot, and half a group follows.
func (w *longLog) killed(begin point) (head uint64) {
	w.was = w.at
	w.slots(begin)
	for range 40 {
		w.commit(1000)
		w.was = w.at
	}
	head, end := w.at.rev, w.at.end
	w.commit(1000)
	if _, err := w.f.WriteAt(make([]byte, 80), end); err != nil {
		w.t.Fatal(err)
	}
	if err := errors.Join(w.f.Truncate(w.at.end+64<<10), w.f.Close()); err != nil {
		w.t.Fatal(err)
	}
	return head
}

// TestOpen_L28: opening after a kill reads the tail and not the history: with
// 1 MiB, 1 GiB and 64 GiB before it, most of which a floor dropped, at most so
// many bytes, all reading counted; the last MiB always. The time is in the log
// of the test.
func TestOpen_L28(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("files are not sparse here unless asked for: 64 GiB would be written")
	}
	read := map[string]int64{}
	for _, tc := range []struct {
		name  string
		floor int64 // where history begins; 0: at the first page
		bytes int64 // of history
	}{{"1 MiB", 0, 1 << 20}, {"1 GiB", 0, 1 << 30}, {"64 GiB", 64<<30 - 64<<20, 64 << 20}} {
		path := filepath.Join(t.TempDir(), "a.log")
		begin := point{}
		if tc.floor > 0 {
			begin = point{end: tc.floor + 4096, rev: 1_000_000, digest: 5}
		}
		w := newLongLog(t, path, begin)
		begin = w.at
		if tc.floor > 0 { // the page in which the floor lies is kept
			page := make([]byte, frame.PageHeaderSize)
			w.geo.PutPage(page, tc.floor, frame.PageHeader{Number: w.geo.Page(tc.floor), First: uint32(w.geo.Start(begin.end) - tc.floor), Last: begin.rev})
			w.put(page, tc.floor)
		}
		for w.at.end-begin.end < tc.bytes-8<<20 {
			w.commit(4<<20 - 300)
		}
		for w.at.end-begin.end < tc.bytes {
			w.commit(20_000)
		}
		head := w.killed(begin)

		best := time.Hour
		for try := range 5 {
			n, took := openTallied(t, path, head)
			best = min(best, took)
			if try == 0 {
				read[tc.name] = n
			} else if n > 3<<20 {
				t.Errorf("%s: opened again it reads %d bytes", tc.name, n)
			}
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		checkedTo(t, path)
		t.Logf("%s: a file of %d bytes opens in %v, %d bytes read after the kill", tc.name, info.Size(), best, read[tc.name])
	}
	for name, n := range read {
		if n > 3<<20 || n < 1<<20 {
			t.Errorf("%s: %d bytes were read", name, n)
		}
	}
	if d := read["64 GiB"] - read["1 GiB"]; d > 64<<10 || d < -64<<10 {
		t.Errorf("the bytes read depend on the history: %v", read)
	}
}

// checkedTo damages the byte a MiB before the head: opening finds it.
func checkedTo(t *testing.T, path string) {
	t.Helper()
	l, err := Open(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	at := l.head.end - checkedTail + 1
	closeLog(t, l)
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	var b [1]byte
	_, err = f.ReadAt(b[:], at)
	b[0] ^= 1
	if err == nil {
		_, err = f.WriteAt(b[:], at)
	}
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path, Options{}); !errors.Is(err, ErrCorrupt) {
		t.Errorf("damage a MiB before the head: %v", err)
	}
}

// openTallied opens the log, checks its head and closes it; it returns the bytes
// that opening read and the time it took.
func openTallied(t *testing.T, path string, head uint64) (int64, time.Duration) {
	t.Helper()
	dir, err := disk.OpenDir(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	var n tally
	began := time.Now()
	l, err := OpenIn(Env{Dir: tallyDir{dir, &n}, Idle: -1}, filepath.Base(path), Options{})
	took := time.Since(began)
	if err != nil {
		t.Fatal(err)
	}
	read := n.bytes.Load()
	if h := l.Head(); h.Revision != head || !h.Durable {
		t.Fatalf("head %+v, want %d", h, head)
	}
	closeLog(t, l)
	return read, took
}
