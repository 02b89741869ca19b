package pagelog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/tidemark-log/tidemark/internal/simdisk"
)

func runCopy(t testing.TB, b []byte) (CopyReport, []byte, error) {
	t.Helper()
	s := simdisk.New()
	s.WriteFile("old", b)
	report, err := copyLog(context.Background(), simSpot(s, "old"), simSpot(s, "new"), CopyOptions{})
	if now, _ := s.ReadFile("old"); !bytes.Equal(now, b) {
		t.Error("the source was touched")
	}
	if err != nil {
		if names, _ := s.Dir().Names(); len(names) != 1 {
			t.Errorf("left behind: %v", names)
		}
		return report, nil, err
	}
	made, err := s.ReadFile("new")
	return report, made, err
}

// TestCopy_L56_SameBytesUpToTheDurableEnd: same ID, same bytes, and nothing
// that was not acknowledged.
func TestCopy_L56_SameBytesUpToTheDurableEnd(t *testing.T) {
	for name, c := range shapes() {
		b := c.bytes(777)
		report, made, err := runCopy(t, b)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		end := c.proven().end
		if report.End != end || report.Head != c.proven().rev || int64(len(made)) != end || !bytes.Equal(made[16384:], b[16384:end]) {
			t.Errorf("%s: %+v, %d bytes, want %d", name, report, len(made), end)
		}
		if r := check(t, made, 1); len(r.Findings) != 0 || r.LogID != c.id.LogID || r.Durable != end {
			t.Errorf("%s: %s", name, r.describe())
		}
	}
}

// TestCopy_L32_BesideALiveWriter copies a log again and again while it is
// written. Each copy is sound, holds all that was acknowledged when it began,
// and opens for writing.
func TestCopy_L32_BesideALiveWriter(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "live")
	l, err := Create(path, CreateOptions{PageSize: 4096}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var acked atomic.Uint64
	stop, done := make(chan struct{}), make(chan error, 1)
	go func() {
		var b Batch
		for i := 0; ; i++ {
			select {
			case <-stop:
				done <- l.Close()
				return
			default:
			}
			b.Reset()
			b.Append(make([]byte, i*37%5000))
			b.Append(fmt.Append(nil, "commit ", i+1))
			c, err := l.Commit(context.Background(), &b)
			if err != nil {
				done <- err
				return
			}
			acked.Store(c.Revision)
		}
	}()
	for i := 0; i < 15 || acked.Load() < 60; i++ {
		before := acked.Load()
		copied := filepath.Join(dir, fmt.Sprint("copy", i))
		report, err := Copy(context.Background(), path, copied, CopyOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if report.Head+1 < before { // the last acknowledged commit is named by the next header or slot
			t.Errorf("copy ends at %d, %d was acknowledged", report.Head, before)
		}
		checkCopy(t, copied, report)
	}
	close(stop)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	report, err := Copy(context.Background(), path, filepath.Join(dir, "last"), CopyOptions{})
	if err != nil || report.Head != acked.Load() {
		t.Errorf("%+v, %v; want %d", report, err, acked.Load())
	}
}

func checkCopy(t *testing.T, path string, report CopyReport) {
	t.Helper()
	if r, err := Verify(context.Background(), path, VerifyOptions{}); err != nil || len(r.Findings) != 0 || r.Head != report.Head || r.LogID != report.LogID {
		t.Fatalf("%s %v", r.describe(), err)
	}
	l, err := Open(path, Options{Expect: &Expect{Revision: report.Head, Digest: report.Digest}})
	if err != nil {
		t.Fatal(err)
	}
	var b Batch
	b.Append([]byte("on the copy"))
	if _, err := l.Commit(context.Background(), &b); err != nil {
		t.Error(err)
	}
	if err := errors.Join(l.Close(), os.Remove(path)); err != nil {
		t.Error(err)
	}
}

// TestCopy_L56_RefusesDamage: every byte of the copy is checked before it has a
// name, so damage anywhere below the durable end is found.
func TestCopy_L56_RefusesDamage(t *testing.T) {
	c := long(60)
	for off := int64(16384); off < c.durable.end; off += 37 {
		b := c.bytes(0)
		b[off] ^= 2
		if _, _, err := runCopy(t, b); !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrDiverged) {
			t.Fatalf("byte %d: %v", off, err)
		}
	}
}

// TestCopy_L56_HealsTheHeaderArea: the copy's header area is written afresh.
func TestCopy_L56_HealsTheHeaderArea(t *testing.T) {
	c := long(60)
	b := c.bytes(0)
	b[60] ^= 1
	b[4200] ^= 1
	_, made, err := runCopy(t, b)
	if err != nil {
		t.Fatal(err)
	}
	if r := check(t, made, 1); len(r.Findings) != 0 || r.Head != c.at.rev {
		t.Error(r.describe())
	}
}

// TestCopy_L56_DroppedHistoryStaysAHole: what lies below the retention floor is
// not read, and not written.
func TestCopy_L56_DroppedHistoryStaysAHole(t *testing.T) {
	c := long(400)
	floor := c.groups[300]
	at := point{end: floor.end, rev: floor.Revision, digest: floor.Digest}
	if floor.Derived() {
		t.Fatal("choose another group")
	}
	for i := range c.slots {
		c.slots[i].Floor = at.place()
	}
	b := c.bytes(0)
	clear(b[16384:c.geo.PageStart(at.end)])
	if r := check(t, b, 2); len(r.Findings) != 0 || r.Dropped != at.end-16384 {
		t.Fatal(r.describe())
	}
	report, made, err := runCopy(t, b)
	if err != nil || report.Bytes > c.at.end-c.geo.PageStart(at.end)+16384 || report.Head != c.at.rev {
		t.Fatalf("%+v, %v", report, err)
	}
	if got, want := commitsOf(t, made, true), commitsOf(t, b, true); len(got) != len(want) || got[0] != want[0] {
		t.Errorf("%d groups of %d", len(got), len(want))
	}
	salvaged, made := runSalvage(t, b, SalvageOptions{})
	if got := commitsOf(t, made, true); len(got) != len(commitsOf(t, b, true)) || salvaged.Head != c.at.rev {
		t.Errorf("salvaged %d groups: %+v", len(got), salvaged)
	}
}

func TestCopy_RefusesWhatIsThere(t *testing.T) {
	dir := t.TempDir()
	old, taken := filepath.Join(dir, "old"), filepath.Join(dir, "taken")
	if err := errors.Join(os.WriteFile(old, long(20).bytes(0), 0o600), os.WriteFile(taken, []byte("mine"), 0o600), os.Mkdir(filepath.Join(dir, "d"), 0o700)); err != nil {
		t.Fatal(err)
	}
	for _, to := range []string{taken, old, filepath.Join(dir, "d")} {
		if _, err := Copy(context.Background(), old, to, CopyOptions{}); !errors.Is(err, fs.ErrExist) {
			t.Errorf("%s: %v", to, err)
		}
		if _, err := Salvage(context.Background(), old, to, SalvageOptions{}); !errors.Is(err, fs.ErrExist) {
			t.Errorf("%s: %v", to, err)
		}
	}
	if _, err := Copy(context.Background(), filepath.Join(dir, "none"), filepath.Join(dir, "n"), CopyOptions{}); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Copy(ctx, old, filepath.Join(dir, "n"), CopyOptions{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	names, _ := os.ReadDir(dir)
	if mine, _ := os.ReadFile(taken); string(mine) != "mine" || len(names) != 3 {
		t.Error(string(mine), names)
	}
}

// TestCopy_L56_CrashLeavesAWholeLogOrNone cuts the power at every operation of
// a copy.
func TestCopy_L56_CrashLeavesAWholeLogOrNone(t *testing.T) {
	c := craft(4096, 8)
	for range 20 {
		c.commit(150)
		c.sync()
	}
	c.name()
	wholeOrNone(t, c.bytes(0), 20, func(s *simdisk.FS) error {
		_, err := copyLog(context.Background(), simSpot(s, "old"), simSpot(s, "new"), CopyOptions{})
		return err
	})
}

// TestVerify_L35_LogWithCheckpoints: what the engine itself writes, checkpoints
// and the host's own state among it, is sound, and stays so when it is copied
// and salvaged; the last checkpoint is still found.
func TestVerify_L35_LogWithCheckpoints(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "log")
	l, err := Create(path, CreateOptions{PageSize: 4096}, Options{CheckpointEvery: 8 << 10})
	if err != nil {
		t.Fatal(err)
	}
	var b Batch
	for i := range 200 {
		b.Reset()
		b.Append(make([]byte, i*13%900))
		c, err := l.Commit(context.Background(), &b)
		if err == nil && i == 150 {
			err = l.Checkpoint(context.Background(), c.Revision, []byte("the state so far"))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	copied, saved := filepath.Join(dir, "copy"), filepath.Join(dir, "saved")
	if _, err := Copy(context.Background(), path, copied, CopyOptions{}); err != nil {
		t.Fatal(err)
	}
	if r, err := Salvage(context.Background(), path, saved, SalvageOptions{}); err != nil || r.Kept != 200 || r.Saved != 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	want, err := Verify(context.Background(), path, VerifyOptions{Workers: 2})
	if err != nil || len(want.Findings) != 0 || want.Head != 200 || want.Derived == 0 {
		t.Fatalf("%s %v", want.describe(), err)
	}
	for _, p := range []string{copied, saved} {
		r, err := Verify(context.Background(), p, VerifyOptions{})
		if err != nil || len(r.Findings) != 0 || r.Derived != want.Derived || r.End != want.End {
			t.Fatalf("%s: %s %v", p, r.describe(), err)
		}
		l, err := Open(p, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if report := l.Report(); report.Head != 200 || len(report.Bridged) > 0 {
			t.Errorf("%s: %+v", p, report)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestCopy_L47_RaceWithRetention: the source drops commits while it is copied.
// The copy begins at the floor found at the end; where all that was to be copied
// is gone by then, there is no copy and nothing is left behind.
func TestCopy_L47_RaceWithRetention(t *testing.T) {
	for _, from := range []uint64{2, 12, 40, 62} {
		dir := t.TempDir()
		path, to := filepath.Join(dir, "log"), filepath.Join(dir, "copy")
		l, err := Create(path, CreateOptions{PageSize: 4096}, Options{CheckpointEvery: -1})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 60 {
			commitBytes(t, l, i)
		}
		var retained error
		once := false
		report, err := Copy(context.Background(), path, to, CopyOptions{Progress: func(done, total int64) {
			if !once { // the first piece is taken, with what is dropped now
				once = true
				if from > 60 {
					commitBytes(t, l, 60)
					commitBytes(t, l, 61)
				}
				retained = l.Retain(context.Background(), from)
			}
		}})
		if errors.Is(retained, ErrNoPunch) {
			t.Skip(retained)
		}
		if retained != nil || !once {
			t.Fatalf("from %d: dropped in the middle: %v, %v", from, once, retained)
		}
		if from > 60 {
			names, _ := os.ReadDir(dir)
			if !errors.Is(err, ErrReplaced) || len(names) != 1 {
				t.Errorf("all was dropped: %v, left behind %v", err, names)
			}
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err != nil {
			t.Fatalf("from %d: %v", from, err)
		}
		made, err := Open(to, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if made.Oldest() != from || made.Head().Revision != report.Head {
			t.Errorf("from %d: the copy holds revisions %d to %d", from, made.Oldest(), made.Head().Revision)
		}
		if err := errors.Join(made.Close(), l.Close()); err != nil {
			t.Fatal(err)
		}
		if r, err := Verify(context.Background(), to, VerifyOptions{}); err != nil || len(r.Findings) != 0 {
			t.Errorf("from %d: %+v, %v", from, r.Findings, err)
		}
	}
}

func commitBytes(t *testing.T, l *Log, i int) {
	t.Helper()
	var b Batch
	b.Append(bytes.Repeat([]byte{byte(i)}, 50_000))
	if _, err := l.Commit(context.Background(), &b); err != nil {
		t.Fatal(err)
	}
}
