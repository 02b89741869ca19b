package pagelog

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidemark-log/tidemark/checkpoint"
	"github.com/tidemark-log/tidemark/internal/disk"
)

// figures returns how many keys the bound tests use: a million, which take some
// seconds and 600 MB of disk, or as many as INDEX_KEYS says; ten million take
// ten times as much.
func figures(t testing.TB) int {
	n, err := strconv.Atoi(os.Getenv("INDEX_KEYS"))
	if err != nil {
		n = 1_000_000
		if raceEnabled {
			n = 100_000
		}
	}
	if testing.Short() {
		n = min(n, 30_000)
	}
	return n
}

func heapNow() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestIndex_Bounds_L39_Q23 covers L39 and Q23: blocks read and heap used do not
// grow with the keys, but for a run more with every factor of eight.
func TestIndex_Bounds_L39_Q23(t *testing.T) {
	n := figures(t)
	path := filepath.Join(t.TempDir(), "a.log")
	l, err := Create(path, CreateOptions{}, Options{ZeroAhead: ZeroAheadOff})
	if err != nil {
		t.Fatal(err)
	}
	fillKeys(t, l, 0, 1000, 100)
	small := heapNow()
	began := time.Now()
	fillKeys(t, l, 1000, n-1000, 100)
	filled := time.Since(began)
	large := heapNow()
	var blocks []uint64
	before := uint64(0)
	began = time.Now()
	const misses = 20_000
	for i := range misses {
		if _, _, err := l.Lookup([]byte("ns"), fmt.Appendf(nil, "missing %d", i)); !errors.Is(err, ErrNoKey) {
			t.Fatal(err)
		}
		now := l.lookups.blocks.Load()
		blocks = append(blocks, now-before)
		before = now
	}
	missed := time.Since(began)
	began = time.Now()
	for i := range misses {
		id := i * (n / misses)
		if rev, _, err := l.Lookup([]byte("ns"), fmt.Appendf(nil, "k%d", id)); err != nil || rev != uint64(id/100+1) {
			t.Fatal(id, rev, err)
		}
	}
	hits := time.Since(began)
	slices.Sort(blocks)
	mean, p999, most := float64(before)/misses, blocks[misses*999/1000], l.IndexStats().Most
	t.Logf("%d keys, filled in %v: %.2f blocks on average for a miss, p99.9 %d, most %d; heap %d KiB at 1000 keys, %d KiB; a miss %v, a hit %v; %+v",
		n, filled, mean, p999, most, small>>10, large>>10, missed/misses, hits/misses, l.IndexStats())
	if n <= 1_000_000 && (mean > 7 || p999 > 10) || mean > 8 || p999 > 12 || most > 16 {
		t.Errorf("too many blocks: %.2f on average, p99.9 %d, most %d", mean, p999, most)
	}
	if large > small+6<<20 {
		t.Errorf("the heap grew from %d to %d KiB", small>>10, large>>10)
	}
	if s := l.IndexStats(); s.InMemory > 4*tableKeys {
		t.Errorf("%d keys in memory", s.InMemory)
	}
	if l.indexer.broken != nil {
		t.Error(l.indexer.broken)
	}
	began = time.Now()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if l, err = Open(path, Options{}); err != nil {
		t.Fatal(err)
	}
	t.Logf("closed and opened in %v", time.Since(began))
	wantKeys(t, l.Reader, n, n/500, 100)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// widest is a directory whose files note their longest write.
type widest struct {
	disk.Dir
	most atomic.Int64 // a slot may be written beside a commit
}

type widestFile struct {
	disk.File
	dir *widest
}

func (d *widest) Open(name string, access disk.Access) (disk.File, error) {
	f, err := d.Dir.Open(name, access)
	return widestFile{f, d}, err
}

func (f widestFile) WriteAt(p []byte, off int64) (int, error) {
	for most := f.dir.most.Load(); int64(len(p)) > most && !f.dir.most.CompareAndSwap(most, int64(len(p))); {
		most = f.dir.most.Load()
	}
	return f.File.WriteAt(p, off)
}

// took is how long commits took, those that carried checkpoints or pieces of
// runs apart.
type took struct{ plain, carrying []time.Duration }

// times sorts and describes durations.
func times(d []time.Duration) string {
	slices.Sort(d)
	n := len(d)
	return fmt.Sprintf("%d: median %v, p99 %v, p99.9 %v, most %v", n, d[n/2], d[n*99/100], d[n*999/1000], d[n-1])
}

// commitKeys makes n commits of a key each.
func commitKeys(t *testing.T, l *Log, n int, complete bool) (took took) {
	t.Helper()
	state := func() (*levels, int64) {
		l.index.mu.RLock()
		defer l.index.mu.RUnlock()
		return l.index.lv, l.checks.last.end
	}
	var b Batch
	b.CompleteOnly = complete
	for i := range n {
		b.Reset()
		b.Append([]byte("value"))
		b.Key([]byte("ns"), strconv.AppendInt(nil, int64(i), 10))
		lv, checkpoint := state()
		began := time.Now()
		if _, err := l.Commit(context.Background(), &b); err != nil {
			t.Fatal(err)
		}
		d := time.Since(began)
		if lvNow, checkpointNow := state(); lvNow != lv || checkpointNow != checkpoint {
			took.carrying = append(took.carrying, d)
		} else {
			took.plain = append(took.plain, d)
		}
	}
	return took
}

// TestIndex_NoStall_L40 covers L40: no write carries more than a few pieces, so
// no commit waits for a merge. With INDEX_STALL set, on a machine that does
// nothing else, it makes 10^5 commits complete-only and 10^5 durable ones, and
// none that carries a checkpoint or a piece may take 5 ms longer than a plain one.
func TestIndex_NoStall_L40(t *testing.T) {
	timed := os.Getenv("INDEX_STALL") != ""
	n := min(figures(t), 100_000)
	modes := map[string]int{"complete": n, "durable": min(n, 500)}
	if timed {
		modes = map[string]int{"complete": 100_000, "durable": 100_000}
	}
	for name, n := range modes {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			l, err := Create(filepath.Join(dir, "a.log"), CreateOptions{}, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			d, err := disk.OpenDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			w := &widest{Dir: d}
			every := int64(0)
			if n < 1024 { // a checkpoint must come of it
				every = 16 << 10
			}
			if l, err = OpenIn(Env{Dir: w}, "a.log", Options{CheckpointEvery: every}); err != nil {
				t.Fatal(err)
			}
			took := commitKeys(t, l, n, name == "complete")
			if len(took.carrying) == 0 {
				t.Fatal("no commit carried anything")
			}
			plain, carrying := times(took.plain), times(took.carrying)
			t.Logf("plain commits %s; with a checkpoint or pieces %s; longest write %d bytes; %+v", plain, carrying, w.most.Load(), l.IndexStats())
			const piece = checkpoint.MaxPieceBlocks*checkpoint.BlockSize + 1024
			if w.most.Load() > 4*piece+64<<10 {
				t.Errorf("one write of %d bytes", w.most.Load())
			}
			if late := took.carrying[len(took.carrying)-1] - took.plain[len(took.plain)/2]; timed && late > 5*time.Millisecond {
				t.Errorf("a commit took %v longer than a plain one", late)
			}
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// BenchmarkLookup is a lookup among 200,000 keys.
func BenchmarkLookup(b *testing.B) {
	l, err := Create(filepath.Join(b.TempDir(), "a.log"), CreateOptions{}, Options{})
	if err != nil {
		b.Fatal(err)
	}
	const n = 200_000
	fillKeys(b, l, 0, n, 100)
	for _, kind := range []string{"hit", "miss"} {
		b.Run(kind, func(b *testing.B) {
			b.ReportAllocs()
			before, i := l.IndexStats().Blocks, 0
			for b.Loop() {
				i = (i + 7919) % n
				key := fmt.Appendf(nil, "k%d", i)
				if kind == "miss" {
					key = append(key, '?')
				}
				if _, _, err := l.Lookup([]byte("ns"), key); (err == nil) != (kind == "hit") {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(l.IndexStats().Blocks-before)/float64(b.N), "blocks/op")
		})
	}
	if err := l.Close(); err != nil {
		b.Fatal(err)
	}
}

// TestIndex_Lean_L15_L58: what the index would like to write never makes a
// commit not fit: a log with a maximum size is filled with commits to its end.
func TestIndex_Lean_L15_L58(t *testing.T) {
	for most := int64(2 << 20); most < 3<<20; most += 120_000 {
		fillUp(t, most)
	}
}

func fillUp(t *testing.T, most int64) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a.log")
	l, err := Create(path, CreateOptions{PageSize: 4096, MaxSize: most}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var b Batch
	b.CompleteOnly = true
	for i := range 10 {
		b.Append([]byte("value"))
		b.Key([]byte("ns"), fmt.Append(nil, i))
	}
	n := 0
	for err == nil {
		_, err = l.Commit(context.Background(), &b)
		n++
	}
	if !errors.Is(err, ErrNoSpace) {
		t.Fatal(err)
	}
	if free := most - l.head.end; free > b.Size()+4096 {
		t.Errorf("%d bytes are free, a commit takes %d", free, b.Size())
	}
	if rev, _, err := l.Lookup([]byte("ns"), []byte("3")); err != nil || rev != uint64(n-1) {
		t.Error(rev, err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if l, err = Open(path, Options{}); err != nil {
		t.Fatal(err)
	}
	if rev, _, err := l.Lookup([]byte("ns"), []byte("3")); err != nil || rev != uint64(n-1) {
		t.Error(rev, err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}
