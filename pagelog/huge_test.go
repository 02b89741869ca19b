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
