package fork_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/tidemark-log/tidemark/fork"
	"github.com/tidemark-log/tidemark/pagelog"
)

// TestFork_Q132_BesideALiveWriter forks a log of the operating system again and
// again while it is written, by a stranger and by its own writer.
func TestFork_Q132_BesideALiveWriter(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "live")
	l, err := pagelog.Create(path, pagelog.CreateOptions{PageSize: 4096}, pagelog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 40 {
		commit(t, l, i, 20000)
	}
	stop, done := make(chan struct{}), make(chan error, 1)
	go func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				done <- nil
				return
			default:
			}
			var b pagelog.Batch
			b.Append(payload(i, i*37%5000))
			if _, err := l.Commit(ctx, &b); err != nil {
				done <- err
				return
			}
		}
	}()
	for i := range 10 {
		name := filepath.Join(dir, fmt.Sprint("fork", i))
		var made fork.Made
		acked := l.Durable().Revision
		if i%2 == 0 {
			made, err = fork.Create(ctx, path, name, fork.Options{})
		} else {
			made, err = fork.CreateFrom(ctx, l, name, fork.Options{})
			if made.Revision < acked {
				t.Errorf("its own writer forks at %d, %d was acknowledged", made.Revision, acked)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		isPrefix(t, l, name, made)
	}
	close(stop)
	if err := errors.Join(<-done, l.Close()); err != nil {
		t.Fatal(err)
	}
}

// isPrefix opens a fork for writing and compares it with its source.
func isPrefix(t *testing.T, source *pagelog.Log, name string, made fork.Made) {
	t.Helper()
	r, err := pagelog.Verify(ctx, name, pagelog.VerifyOptions{})
	if err != nil || len(r.Findings) != 0 || r.Head != made.Head {
		t.Fatalf("%+v, %v", r, err)
	}
	f, err := pagelog.Open(name, pagelog.Options{Expect: &pagelog.Expect{Revision: made.Revision, Digest: made.Digest}})
	if err != nil {
		t.Fatal(err)
	}
	for rev := uint64(1); rev <= made.Revision; rev += 7 {
		want, err := source.DigestAt(rev)
		got, err2 := f.DigestAt(rev)
		if err != nil || err2 != nil || got != want {
			t.Fatalf("revision %d: %v %v, %v %v", rev, got, want, err, err2)
		}
	}
	commit(t, f, 1, 100)
	ends(t, f)
}

// TestFork_HolesStayHoles forks a log of which most is a hole.
func TestFork_HolesStayHoles(t *testing.T) {
	dir := t.TempDir()
	path, name := filepath.Join(dir, "log"), filepath.Join(dir, "fork")
	l, err := pagelog.Create(path, pagelog.CreateOptions{PageSize: 4096}, pagelog.Options{ZeroAhead: pagelog.ZeroAheadOff})
	if err != nil {
		t.Fatal(err)
	}
	var b pagelog.Batch
	b.Append(make([]byte, 4<<20)) // zeros, which are no hole
	if _, err := l.Commit(ctx, &b); err != nil {
		t.Fatal(err)
	}
	ends(t, l)
	for _, o := range []fork.Options{{}, {NoSharing: true}} {
		made, err := fork.Create(ctx, path, name, o)
		if err != nil {
			t.Fatal(err)
		}
		if made.Shared+made.Copied+made.Holes != made.Bytes {
			t.Errorf("%d bytes were to be taken over, %d shared, %d copied, %d holes", made.Bytes, made.Shared, made.Copied, made.Holes)
		}
		if r, err := pagelog.Verify(ctx, name, pagelog.VerifyOptions{}); err != nil || len(r.Findings) != 0 {
			t.Fatalf("%+v, %v", r, err)
		}
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
}

// TestFork_Cancelled: a context that ends leaves nothing behind.
func TestFork_Cancelled(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "log")
	l, err := pagelog.Create(path, pagelog.CreateOptions{PageSize: 4096}, pagelog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 8 {
		commit(t, l, i, 1<<20)
	}
	ends(t, l)
	before, _ := os.ReadFile(path)
	ends := 0
	for n := range 6 {
		ctx, cancel := context.WithCancel(ctx)
		calls := 0
		_, err := fork.Create(ctx, path, filepath.Join(dir, fmt.Sprint("fork", n)), fork.Options{NoSharing: true, Progress: func(done, total int64) {
			if calls++; calls > n || done > total {
				cancel()
			}
		}})
		cancel()
		if errors.Is(err, context.Canceled) {
			ends++
		}
	}
	if ends == 0 {
		t.Error("no fork was cancelled")
	}
	after, _ := os.ReadFile(path)
	if !bytes.Equal(before, after) {
		t.Error("the source changed")
	}
	names, err := os.ReadDir(dir)
	if err != nil || len(names) != 1+6-ends {
		t.Errorf("left behind: %v, %v", names, err)
	}
}
