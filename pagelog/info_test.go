package pagelog

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidemark-log/tidemark/cursor"
)

// TestInfo_LiveAndBeside: the writer and a reader in another process say the
// same, and the secret of the file is in neither.
func TestInfo_LiveAndBeside(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.log")
	base := cursor.Cursor{Position: cursor.Position{Log: cursor.LogID{1}, Revision: 7}, Digest: 9}
	l, err := Create(path, CreateOptions{PageSize: 4096, Align: 512, Application: 5, MaxSize: 1 << 30, Base: base}, Options{CheckpointEvery: -1})
	if err != nil {
		t.Fatal(err)
	}
	var b Batch
	b.Append([]byte("one"))
	c, err := l.Commit(context.Background(), &b)
	if err != nil {
		t.Fatal(err)
	}
	b.CompleteOnly = true
	complete, err := l.Commit(context.Background(), &b)
	if err != nil {
		t.Fatal(err)
	}
	live, err := l.Info()
	if err != nil {
		t.Fatal(err)
	}
	if live.Head.Revision != complete.Revision || live.Durable.Revision != c.Revision || live.HeadEnd <= live.DurableEnd {
		t.Errorf("complete %d, durable %d, and the writer says %+v", complete.Revision, c.Revision, live)
	}
	r, err := OpenReader(path, ReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, from := range []*Reader{l.Reader, r} {
		info, err := from.Info()
		if err != nil {
			t.Fatal(err)
		}
		if info.PageSize != 4096 || info.Align != 512 || info.Application != 5 || info.MaxSize != 1<<30 || info.Epoch != 1 ||
			info.Base != base || info.Oldest != 8 || info.Head.Revision != 9 || info.Durable.Revision != 8 ||
			info.Floor.Revision != 7 || info.Damage != nil || len(info.BadSlots)+len(info.BadIdentities) != 0 {
			t.Errorf("info is %+v", info)
		}
		if salt := fmt.Sprint(l.id.Salt); strings.Contains(fmt.Sprintf("%+v", info), salt) {
			t.Error("the salt is shown")
		}
	}
	if err := errors.Join(l.Close(), r.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Info(); !errors.Is(err, ErrClosed) {
		t.Errorf("info of a closed reader: %v", err)
	}
}

// TestInfo_Damage: what is damaged is said, and the rest still.
func TestInfo_Damage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.log")
	l, err := Create(path, CreateOptions{}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var b Batch
	b.Append(make([]byte, 100))
	for range 3 {
		if _, err := l.Commit(context.Background(), &b); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	infoOf := func(offsets ...int64) Info {
		t.Helper()
		bad := append([]byte(nil), whole...)
		for _, off := range offsets {
			bad[off] ^= 1
		}
		file := filepath.Join(t.TempDir(), "bad.log")
		if err := os.WriteFile(file, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := OpenReader(file, ReaderOptions{})
		if err != nil {
			t.Fatal(err)
		}
		info, err := r.Info()
		if err := errors.Join(err, r.Close()); err != nil {
			t.Fatal(err)
		}
		return info
	}
	sound := infoOf()
	if sound.Damage != nil || len(sound.BadSlots) != 0 || sound.Head.Revision != 3 {
		t.Errorf("a sound log: %+v", sound)
	}
	if info := infoOf(10, 4096+10); len(info.BadIdentities) != 1 || len(info.BadSlots) != 1 || info.Damage != nil || info.Head.Digest != sound.Head.Digest {
		t.Errorf("one copy and one slot: %+v", info)
	}
	if info := infoOf(4096+10, 8192+10); len(info.BadSlots) != 2 || info.Epoch != 0 || info.Head.Revision != 3 {
		t.Errorf("both slots: %+v", info)
	}
	info := infoOf(sound.HeadEnd - 50)
	var found *CorruptError
	if !errors.As(info.Damage, &found) || found.Revision != 3 || info.Head.Revision != 2 || info.Durable.Revision != 2 || info.DurableEnd != sound.DurableEnd {
		t.Errorf("the last commit: %+v", info)
	}
}
