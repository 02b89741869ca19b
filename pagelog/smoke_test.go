package pagelog

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func TestLog_RoundTrip(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.log")
	l, err := Create(path, CreateOptions{PageSize: 4096}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var b Batch
	for i := range 500 {
		b.Reset()
		b.CompleteOnly = i%3 == 0
		for j := range i%5 + 1 {
			b.Append(fmt.Appendf(nil, "record %d of commit %d %s", j, i, string(make([]byte, i*7%3000))))
		}
		c, err := l.Commit(context.Background(), &b)
		if err != nil || c.Revision != uint64(i+1) {
			t.Fatal(c, err)
		}
	}
	check := func(r *Reader, n int) {
		t.Helper()
		want := uint64(1)
		for g, err := range r.Commits(0) {
			if err != nil {
				t.Fatal(err)
			}
			if g.Revision != want || g.Count != int(want-1)%5+1 {
				t.Fatalf("revision %d records %d, want %d", g.Revision, g.Count, want)
			}
			j := 0
			for rec, err := range g.Records() {
				if text := fmt.Sprintf("record %d of commit %d ", j, want-1); err != nil || want <= 500 && !strings.HasPrefix(string(rec.Data), text) {
					t.Fatalf("record %d of revision %d is %.40q, %v", j, want, rec.Data, err)
				}
				j++
			}
			want++
		}
		if want != uint64(n+1) {
			t.Fatalf("read up to %d, want %d", want-1, n)
		}
		for g, err := range r.Backward(0) {
			want--
			if err != nil || g.Revision != want {
				t.Fatal(g, err, want)
			}
		}
		var g Group
		for rev := uint64(1); rev <= uint64(n); rev += 13 {
			if err := r.At(rev, &g); err != nil || g.Revision != rev {
				t.Fatal(rev, err)
			}
		}
	}
	check(l.Reader, 500)
	r, err := OpenReader(path, ReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	check(r, 500)
	if _, err := Open(path, Options{}); !errors.Is(err, ErrLocked) {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l, err = Open(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", l.Report())
	var wg sync.WaitGroup
	for i := range 32 {
		wg.Go(func() {
			var b Batch
			for j := range 20 {
				b.Reset()
				b.Append(fmt.Appendf(nil, "%d %d", i, j))
				if _, err := l.Commit(context.Background(), &b); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	t.Logf("%+v", l.Stats())
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if h, err := r.Head(); err != nil || h.Revision != 500+640 {
		t.Fatal(h, err)
	}
}
