package pagelog

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/tidemark-log/tidemark/checkpoint"
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

// TestIndex_LookupAt_Q107: a key leads where it led at a revision, whatever was
// added since and wherever its entries are by now; a Durable reader finds none
// that a loss of power may take back.
func TestIndex_LookupAt_Q107(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.log")
	l, err := Create(path, CreateOptions{PageSize: 4096}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	ns, key := []byte("ns"), []byte("key")
	commits := 0
	put := func(keys ...string) {
		t.Helper()
		var b Batch
		b.CompleteOnly = true
		for _, k := range keys {
			b.Append([]byte(k))
			b.Key(ns, []byte(k))
		}
		if _, err := l.Commit(context.Background(), &b); err != nil {
			t.Fatal(err)
		}
		commits++
	}
	for i := range 300 { // every third commit has the key, once or twice
		keys := []string{"other"}
		for range i % 3 {
			keys = append(keys, "key")
		}
		for j := range 60 {
			keys = append(keys, fmt.Sprint(i, ".", j))
		}
		put(keys...)
	}
	if err := l.Sync(context.Background()); err != nil {
		t.Fatal(err)
	}
	put("key", "new")
	other, err := OpenReader(path, ReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for who, r := range map[string]*Reader{"the log": l.Reader, "a durable reader": l.DurableReader(), "another process": other} {
		for rev := uint64(1); rev <= 300; rev += 7 {
			want := rev - (rev+2)%3 // revision 1 has it not, 2 once, 3 twice
			if (rev+2)%3 > 0 {
				want = rev
			} else {
				want--
			}
			got, record, err := r.LookupAt(rev, ns, key)
			if want == 0 && !errors.Is(err, ErrNoKey) || want > 0 && (err != nil || got != want || record != uint32(2*((want-1)%3))) {
				t.Fatalf("%s, at %d: revision %d, record %d, %v; want %d", who, rev, got, record, err, want)
			}
		}
	}
	for _, at := range []uint64{301, 302, 1 << 60} {
		if rev, _, err := l.LookupAt(at, ns, key); rev != 301 || err != nil {
			t.Errorf("at %d: %d, %v", at, rev, err)
		}
		if rev, _, err := l.DurableReader().LookupAt(at, ns, key); rev != 300 || err != nil {
			t.Errorf("durable, at %d: %d, %v", at, rev, err)
		}
	}
	if _, _, err := l.DurableReader().Lookup(ns, []byte("new")); !errors.Is(err, ErrNoKey) {
		t.Errorf("a key that is not durable: %v", err)
	}
	if l.IndexStats().Runs == 0 {
		t.Error("everything is in memory")
	}
	if err := errors.Join(other.Close(), l.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestIndex_NewestRunFirst_L39: of runs on one level the newest is looked at
// first, for it has the last record under a key; also where the older ones are on
// disk alone, after the log was opened again.
func TestIndex_NewestRunFirst_L39(t *testing.T) {
	var v levels
	end := int64(1 << 20)
	place := func(payload []byte) (int64, error) {
		start := end
		end += int64(len(payload)) + 4096
		return start, nil
	}
	for i := range 4 {
		e := checkpoint.Entry{Hash: checkpoint.Hash{1, 2, 3}, Revision: uint64(i + 1), Offset: 16 << 10}
		if err := v.flush([]checkpoint.Entry{e}, place); err != nil {
			t.Fatal(err)
		}
		young := v.all[0].incoming
		for j := 1; j < len(young); j++ {
			if young[j-1].Number <= young[j].Number {
				t.Errorf("run %d is looked at before run %d", young[j-1].Number, young[j].Number)
			}
		}
		for j, r := range young {
			young[j] = r.onDisk()
		}
	}
	if n := len(v.all[0].incoming); n < 2 {
		t.Errorf("%d runs, too few to be in an order", n)
	}
}
