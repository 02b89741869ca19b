package pagelog

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestRetain_L47_FloorThatNoSlotNames: the writer died when the floor group was
// synced and no slot named it yet. Opening completes the retention.
func TestRetain_L47_FloorThatNoSlotNames(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	l, err := Create(path, CreateOptions{PageSize: 4096}, Options{CheckpointEvery: -1})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		commitBytes(t, l, i)
	}
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Retain(context.Background(), 8); errors.Is(err, ErrNoPunch) {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	after, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	from, to := l.droppedPages()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(before[from:to], after[from:to]) {
		t.Fatal("nothing was freed")
	}
	copy(after, before[:to]) // the slots, and what they lead to, as they were
	if err := os.WriteFile(path, after, 0o600); err != nil {
		t.Fatal(err)
	}
	if l, err = Open(path, Options{}); err != nil {
		t.Fatal(err)
	}
	if l.Oldest() != 8 || l.Head().Revision != 10 {
		t.Errorf("opened with revisions %d to %d", l.Oldest(), l.Head().Revision)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now[from:to], make([]byte, to-from)) {
		t.Errorf("what was dropped is still there, %v", err)
	}
	if r, err := Verify(context.Background(), path, VerifyOptions{}); err != nil || !r.Sound() {
		t.Errorf("%+v, %v", r.Findings, err)
	}
}
