package pagelog

import (
	"context"
	"path/filepath"
	"testing"
)

func TestCheckpoint_RoundTrip(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.log")
	l, err := Create(path, CreateOptions{}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	var b Batch
	b.CompleteOnly = true
	b.Append(make([]byte, 1000))
	for range 10000 {
		if _, err := l.Commit(ctx, &b); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Checkpoint(ctx, 5000, []byte("state at 5000")); err != nil {
		t.Fatal(err)
	}
	if rev, data, err := l.LastCheckpoint(); err != nil || rev != 5000 || string(data) != "state at 5000" {
		t.Fatal(rev, string(data), err)
	}
	for range 5000 {
		if _, err := l.Commit(ctx, &b); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l, err = Open(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if rev, data, err := l.LastCheckpoint(); err != nil || rev != 5000 || string(data) != "state at 5000" {
		t.Fatal(rev, string(data), err)
	}
	t.Logf("%+v %+v", l.Report(), l.checks)
	if l.Report().BytesRead > 2<<20 {
		t.Fatal("read too much")
	}
}
