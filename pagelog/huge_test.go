package pagelog

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

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
