package pagelog

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
)

// keyed returns a log with keys k0 … k<n-1>, perCommit in each commit.
func fillKeys(t testing.TB, l *Log, from, n, perCommit int) {
	t.Helper()
	var b Batch
	ctx := context.Background()
	for i := from; i < from+n; {
		b.Reset()
		b.CompleteOnly = true
		for j := 0; j < perCommit && i < from+n; j++ {
			b.Append(fmt.Appendf(nil, "value of %d", i))
			b.Key([]byte("ns"), fmt.Appendf(nil, "k%d", i))
			i++
		}
		if _, err := l.Commit(ctx, &b); err != nil {
			t.Fatal(err)
		}
	}
}

func wantKeys(t testing.TB, r *Reader, n, step, perCommit int) {
	t.Helper()
	for i := 0; i < n; i += step {
		rev, record, err := r.Lookup([]byte("ns"), fmt.Appendf(nil, "k%d", i))
		if err != nil || rev != uint64(i/perCommit+1) || record != uint32(i%perCommit*2) {
			t.Fatalf("key %d: revision %d, record %d, %v", i, rev, record, err)
		}
	}
	for i := n; i < n+200; i++ {
		if rev, record, err := r.Lookup([]byte("ns"), fmt.Appendf(nil, "k%d", i)); !errors.Is(err, ErrNoKey) {
			t.Fatalf("missing key %d: revision %d, record %d, %v", i, rev, record, err)
		}
	}
}

// TestIndex_ResumedMerge_L40 has a log closed and opened in the middle of
// merges: they go on where the last checkpoint saw them, and nothing is in the
// result twice, or missing.
func TestIndex_ResumedMerge_L40(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.log")
	o := Options{CheckpointEvery: 4096}
	l, err := Create(path, CreateOptions{PageSize: 4096}, o)
	if err != nil {
		t.Fatal(err)
	}
	n, resumed := 24_000, 0
	fillKeys(t, l, 0, n, 50)
	for i := range 60 {
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if l, err = Open(path, o); err != nil {
			t.Fatal(err)
		}
		now := slices.ContainsFunc(l.index.lv.all[:], func(v indexLevel) bool { return v.building != nil })
		if now {
			resumed++
		}
		if now && i > 20 { // this one is done in one go
			fillKeys(t, l, n, 6000, 50)
			n += 6000
			break
		}
		fillKeys(t, l, n, 150, 50)
		n += 150
	}
	if resumed == 0 {
		t.Error("no merge was taken up again")
	}
	if l.indexer.broken != nil || l.IndexStats().Keys != uint64(n) {
		t.Errorf("%d keys of %d: %v", l.IndexStats().Keys, n, l.indexer.broken)
	}
	wantKeys(t, l.Reader, n, 7, 50)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestIndex_FindsEveryKey_L39(t *testing.T) {
	for _, page := range []int{4096, 16 << 10} {
		t.Run(fmt.Sprint(page), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "a.log")
			l, err := Create(path, CreateOptions{PageSize: page}, Options{})
			if err != nil {
				t.Fatal(err)
			}
			r, err := OpenReader(path, ReaderOptions{})
			if err != nil {
				t.Fatal(err)
			}
			const n, per = 80_000, 20
			for i := 0; i < n; i += n / 4 {
				fillKeys(t, l, i, n/4, per)
				wantKeys(t, l.Reader, i+n/4, 997, per)
				wantKeys(t, r, i+n/4, 1997, per)
			}
			t.Logf("%+v", l.IndexStats())
			t.Logf("%+v", r.IndexStats())
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			wantKeys(t, r, n, 1997, per)
			if l, err = Open(path, Options{}); err != nil {
				t.Fatal(err)
			}
			wantKeys(t, l.Reader, n, 97, per)
			fillKeys(t, l, n, n/4, per)
			wantKeys(t, l.Reader, n+n/4, 97, per)
			if l.indexer.broken != nil {
				t.Fatal(l.indexer.broken)
			}
			if err := errors.Join(l.Close(), r.Close()); err != nil {
				t.Fatal(err)
			}
		})
	}
}
