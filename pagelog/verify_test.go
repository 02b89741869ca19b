package pagelog

import (
	"context"
	"path/filepath"
	"testing"
)

func TestVerify_SoundLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.log")
	l, err := Create(path, CreateOptions{PageSize: 4096}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var b Batch
	for i := range 300 {
		b.Reset()
		b.CompleteOnly = true
		b.Append(make([]byte, i*137%60000))
		if _, err := l.Commit(context.Background(), &b); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		r, err := Verify(context.Background(), path, VerifyOptions{Workers: 3})
		if err != nil || !r.Sound() || r.Head != 300 || r.Groups != 300 || r.Records != 300 || len(r.Findings) != 0 {
			t.Fatalf("%+v, %v", r, err)
		}
		_ = l.Close()
	}
}
