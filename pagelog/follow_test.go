package pagelog

import (
	"path/filepath"
	"testing"
)

// TestFollow_SeesEveryCommitOnce covers L41 and L43 in one process, through the
// file: every commit once, in order, woken by the system.
func TestFollow_SeesEveryCommitOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.log")
	l, err := Create(path, CreateOptions{PageSize: 4096}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := OpenReader(path, ReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	const n = 300
	ctx := t.Context()
	done := make(chan error, 1)
	go func() {
		want := uint64(1)
		for g, err := range r.Follow(ctx, 0) {
			if err != nil {
				done <- err
				return
			}
			if g.Revision != want {
				t.Errorf("revision %d, want %d", g.Revision, want)
			}
			if want++; want > n {
				break
			}
		}
		done <- nil
	}()
	var b Batch
	b.Append(make([]byte, 777))
	for i := range n {
		b.CompleteOnly = i%2 == 0
		if _, err := l.Commit(ctx, &b); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
}
