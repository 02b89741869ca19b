package fork_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/tidemark-log/tidemark/fork"
	"github.com/tidemark-log/tidemark/pagelog"
)

// TestFork_R95_BelongsToNobody: the fork of a run's log is no run's, also when
// only the parent's checkpoints are left to say whose it was.
func TestFork_R95_BelongsToNobody(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	parent, child := filepath.Join(dir, "parent"), filepath.Join(dir, "child")
	mine := pagelog.Options{Fence: pagelog.Fence{Run: [32]byte{1}, Token: 3}}
	l, err := pagelog.Create(parent, pagelog.CreateOptions{}, mine)
	if err != nil {
		t.Fatal(err)
	}
	var b pagelog.Batch
	b.Add(pagelog.Record{Kind: 1, Data: []byte("one")})
	if _, err := l.Commit(ctx, &b); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(l.Checkpoint(ctx, 1, []byte("state")), l.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := fork.Create(ctx, parent, child, fork.Options{}); err != nil {
		t.Fatal(err)
	}
	if _, err := pagelog.Open(parent, pagelog.Options{}); !errors.Is(err, pagelog.ErrFenced) {
		t.Errorf("the parent: %v", err)
	}
	l, err = pagelog.Open(child, pagelog.Options{Fence: pagelog.Fence{Run: [32]byte{2}, Token: 1}})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}
