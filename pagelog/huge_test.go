package pagelog

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/tidemark-log/tidemark/frame"
	"github.com/tidemark-log/tidemark/internal/disk"
)

// TestHugeHole: a log that somebody made 8 TiB long, all of it a hole, is read,
// checked, copied and opened in the time that its data takes: where the system
// says what is a hole, holes are not read.
func TestHugeHole(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "log")
	l, err := Create(path, CreateOptions{PageSize: 4096}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		var b Batch
		b.Append(bytes.Repeat([]byte{byte(i)}, 3000))
		if _, err := l.Commit(context.Background(), &b); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := disk.NextData(l.file, 0); errors.Is(err, disk.ErrNoClone) {
		t.Skip("this system does not say what is a hole")
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(context.Background(), 20*time.Second)
	defer stop()
	if err := os.Truncate(path, 8<<40); err != nil {
		t.Skipf("no file can be so long here: %v", err)
	}
	done := make(chan error, 1)
	go func() {
		for _, workers := range []int{1, 3} {
			if r, err := Verify(ctx, path, VerifyOptions{Workers: workers}); err != nil || !r.Sound() || r.Head != 20 {
				done <- errors.Join(err, errors.New("verify: the log is not sound"))
				return
			}
		}
		_, err := Inspect(ctx, path, InspectOptions{})
		if err == nil {
			_, err = Copy(ctx, path, filepath.Join(dir, "copy"), CopyOptions{})
		}
		var r *Reader
		if err == nil {
			r, err = OpenReader(path, ReaderOptions{})
		}
		if err == nil {
			_, err = r.Head()
			err = errors.Join(err, r.Close())
		}
		if err == nil {
			l, err = Open(path, Options{})
		}
		if err == nil {
			err = l.Close()
		}
		if err == nil {
			err = os.Truncate(path, 8<<40)
		}
		if err == nil {
			_, err = Compact(ctx, path, CompactOptions{})
		}
		done <- err
	}()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-ctx.Done():
		t.Fatal("somebody reads 8 TiB of nothing")
	}
}

// TestHugeHole_L26_EvidenceBehindAHole: acknowledged commits that became a hole
// are corrupt by the word of the first commit behind it, and of nobody else,
// wherever that lies: what ends a hole is not passed with it.
func TestHugeHole_L26_EvidenceBehindAHole(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "log")
	d, err := disk.OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	l, err := CreateIn(Env{Dir: d, Idle: -1}, "log", CreateOptions{PageSize: 4096}, Options{CheckpointEvery: -1})
	if err != nil {
		t.Fatal(err)
	}
	commit(t, l, payload(0, 1000))
	from := l.head.end
	var starts []int64
	for i := range 230 { // no slot names them: they are less than slotEvery
		starts = append(starts, l.geo.Start(l.head.end))
		commit(t, l, payload(i, 4000))
	}
	end := l.head.end
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	closeLog(t, l)
	for i := 1; i < len(starts); i += 7 {
		if err := errors.Join(os.Remove(path), os.WriteFile(path, raw[:from], 0o600)); err != nil {
			t.Fatal(err)
		}
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		next := end // one commit, and what was zeroed ahead of it
		if i+1 < len(starts) {
			next = starts[i+1]
		}
		_, err = f.WriteAt(raw[starts[i]:next], starts[i])
		if err := errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
		hole := starts[i] - from
		r, err := OpenReader(path, ReaderOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if c, err := r.Head(); c.Revision != 1 || !errors.Is(err, ErrCorrupt) {
			t.Errorf("a hole of %d bytes: a reader's head is %d, %v", hole, c.Revision, err)
		}
		if v, err := Verify(context.Background(), path, VerifyOptions{}); err != nil || v.Sound() {
			t.Errorf("a hole of %d bytes: verify finds the log sound, %v", hole, err)
		}
		if l, err := Open(path, Options{}); !errors.Is(err, ErrCorrupt) {
			t.Errorf("a hole of %d bytes: it opens, %v", hole, err)
			if err == nil {
				t.Logf("%+v", l.Report())
				_ = l.Close()
			}
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestHugeHole_L4_NamedByASlot: a slot made for the purpose says that history
// ends behind 8 TiB of a hole, all of it derived bytes. Readers and opening
// neither read the hole nor keep room for its pages.
func TestHugeHole_L4_NamedByASlot(t *testing.T) {
	const long = 8 << 40
	path := filepath.Join(t.TempDir(), "log")
	l, err := Create(path, CreateOptions{PageSize: 4096}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		commit(t, l, payload(i, 3000))
	}
	if _, _, err := disk.NextData(l.file, 0); errors.Is(err, disk.ErrNoClone) {
		t.Skip("this system does not say what is a hole")
	}
	closeLog(t, l)
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		craftSlot(t, raw, i, func(s *frame.Slot) {
			s.Durable = l.head.place()
			s.Durable.Offset = long - 1024
		})
	}
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, long); err != nil {
		t.Skipf("no file can be so long here: %v", err)
	}
	page := make([]byte, frame.PageHeaderSize) // of the last page: no group starts there, and few commits before
	l.geo.PutPage(page, long-4096, frame.PageHeader{Number: l.geo.Page(long - 4096), Last: 3})
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteAt(page, long-4096)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	within(t, 20*time.Second, "reading and opening", func() {
		r, err := OpenReader(path, ReaderOptions{})
		if err != nil {
			t.Error(err)
			return
		}
		if h, err := r.Head(); err != nil || h.Revision != 20 {
			t.Errorf("head %d, %v", h.Revision, err)
		}
		var g Group
		if err := r.At(7, &g); err != nil {
			t.Error(err)
		}
		n := 0
		for _, err := range r.Backward(0) {
			if n++; err != nil {
				t.Error(err)
			}
		}
		if got, err := contents(r, 7); err != nil || len(got) != 13 || n != 20 {
			t.Errorf("%d commits, %d backward, %v", len(got), n, err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		l, err := Open(path, Options{})
		if err != nil {
			t.Error(err)
			return
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 32<<20 {
		t.Errorf("a log of 20 commits took %d MiB", n>>20)
	}
}

// TestDirectory_L42_BehindDroppedPages: what finding commits keeps in memory is
// for the pages that a log has, not for the terabytes that were dropped.
func TestDirectory_L42_BehindDroppedPages(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("files are not sparse here unless asked for: 8 TiB would be written")
	}
	path := filepath.Join(t.TempDir(), "log")
	w := newLongLog(t, path, point{end: 8<<40 + 4096, rev: 1_000_000, digest: 5})
	begin := w.at
	for range 2000 {
		w.commit(5000)
	}
	head := w.killed(begin)
	r, err := OpenReader(path, ReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if h, err := r.Head(); err != nil || h.Revision != head {
		t.Fatal(h, err)
	}
	var g Group
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for rev := head; rev > begin.rev; rev -= 40 {
		if err := r.At(rev, &g); err != nil || g.Revision != rev {
			t.Fatal(rev, err)
		}
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 4<<20 {
		t.Errorf("%d KiB for a log of %d KiB", n>>10, (w.at.end-begin.end)>>10)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestHugeHole_L27_BothSlotsLost: the floor is found where both slots are lost
// and something wrote a byte 8 TiB further on: the hole is not read.
func TestHugeHole_L27_BothSlotsLost(t *testing.T) {
	const long = 8 << 40
	path := filepath.Join(t.TempDir(), "log")
	l, err := Create(path, CreateOptions{PageSize: 4096}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		commit(t, l, payload(i, 3000))
	}
	if _, _, err := disk.NextData(l.file, 0); errors.Is(err, disk.ErrNoClone) {
		t.Skip("this system does not say what is a hole")
	}
	if err := l.Retain(ctx0, 11); errors.Is(err, ErrNoPunch) {
		t.Skip("nothing can be freed here")
	} else if err != nil {
		t.Fatal(err)
	}
	closeLog(t, l)
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, off := range frame.SlotOffsets {
		if _, err := f.WriteAt(make([]byte, frame.SlotSize), off); err != nil {
			t.Fatal(err)
		}
	}
	if _, err = f.WriteAt([]byte{1}, long); err != nil {
		t.Skipf("no file can be so long here: %v", err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	within(t, 20*time.Second, "opening", func() {
		r, err := OpenReader(path, ReaderOptions{})
		if err != nil {
			t.Error(err)
			return
		}
		if got, err := contents(r, 10); err != nil || len(got) != 10 || r.Oldest() != 11 {
			t.Errorf("%d commits, the oldest is %d, %v", len(got), r.Oldest(), err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		l, err := Open(path, Options{})
		if err != nil {
			t.Error(err)
			return
		}
		if l.Oldest() != 11 || l.Head().Revision != 20 || l.Report().BadSlots != 2 {
			t.Errorf("the oldest is %d, %+v", l.Oldest(), l.Report())
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
}
