package pagelog

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/zeebo/xxh3"

	"github.com/tidemark-log/tidemark/frame"
	"github.com/tidemark-log/tidemark/internal/disk"
)

// bigLog is a log of about n bytes, commits of size bytes each.
func bigLog(n, size int) *crafted {
	c := craft(16384, 8)
	c.b = slices.Grow(c.b, n+4*size)
	payload := make([]byte, size)
	for i := range payload {
		payload[i] = byte(i * 31)
	}
	for len(c.b) < n {
		c.group(0, 0, payload)
		c.sync()
	}
	c.name()
	c.name()
	return c
}

// TestVerify_MemoryIsBounded: four times the log takes the same memory, all
// that is allocated counted.
func TestVerify_MemoryIsBounded(t *testing.T) {
	allocated := func(n, workers int) uint64 {
		b := bigLog(n, 4096).bytes(0)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r, err := verifyFile(context.Background(), &memFile{b: b}, VerifyOptions{}, plan{workers: workers, stretch: 1 << 20})
		runtime.ReadMemStats(&after)
		if err != nil || len(r.Findings) != 0 {
			t.Fatalf("%s %v", r.describe(), err)
		}
		return after.TotalAlloc - before.TotalAlloc
	}
	for _, workers := range []int{1, 4} {
		small, large := allocated(4<<20, workers), allocated(16<<20, workers)
		if most := uint64(workers+1) * 2 * readChunk; small > most || large > most {
			t.Errorf("%d workers: %d bytes for 4 MiB, %d for 16 MiB, at most %d wanted", workers, small, large, most)
		}
	}
}

// countingFile counts the bytes that are read.
type countingFile struct {
	*memFile
	bytes atomic.Int64
}

func (f *countingFile) ReadAt(p []byte, off int64) (int, error) {
	n, err := f.memFile.ReadAt(p, off)
	f.bytes.Add(int64(n))
	return n, err
}

// TestVerify_TakesUpWhatOthersWalked: what one goroutine walked ahead, no other
// walks again.
func TestVerify_TakesUpWhatOthersWalked(t *testing.T) {
	f := &countingFile{memFile: &memFile{b: bigLog(16<<20, 4096).bytes(0)}}
	size := int64(len(f.b))
	r, err := verifyFile(context.Background(), f, VerifyOptions{}, plan{workers: 3, stretch: 2 << 20})
	if err != nil || len(r.Findings) != 0 {
		t.Fatalf("%s %v", r.describe(), err)
	}
	if n := f.bytes.Load(); n < size || n > size*5/4 {
		t.Errorf("%d bytes are read of a log of %d", n, size)
	}
}

func TestVerify_FindingsAreBounded(t *testing.T) {
	c := craft(4096, 8)
	for range 2*MaxFindings + 100 {
		c.commit(16)
		c.sync()
	}
	c.name()
	b := c.bytes(0)
	for i := 1; i < len(c.groups); i += 2 {
		b[c.groups[i].start+frame.GroupHeaderSize+30] ^= 1
	}
	r := check(t, b, 1)
	if len(r.Findings) != MaxFindings || r.Uncounted != 50 || len(r.Intact) != MaxFindings || !r.Corrupt {
		t.Errorf("%d findings, %d left out, %d ranges", len(r.Findings), r.Uncounted, len(r.Intact))
	}
}

func TestVerify_Progress(t *testing.T) {
	b := bigLog(9<<20, 4096).bytes(100)
	for _, workers := range []int{1, 3} {
		var last, calls int64
		o := VerifyOptions{Progress: func(done, total int64) {
			if done < last || total != int64(len(b)) {
				t.Errorf("%d of %d after %d", done, total, last)
			}
			last = done
			calls++
		}}
		if _, err := verifyFile(context.Background(), &memFile{b: b}, o, plan{workers: workers, stretch: 1 << 20}); err != nil {
			t.Fatal(err)
		}
		if last != int64(len(b)) || calls < 6 {
			t.Errorf("%d workers: ended at %d of %d after %d calls", workers, last, len(b), calls)
		}
	}
}

func TestVerify_Cancelled(t *testing.T) {
	b := bigLog(9<<20, 4096).bytes(0)
	for _, workers := range []int{1, 3} {
		ctx, cancel := context.WithCancel(context.Background())
		o := VerifyOptions{Progress: func(int64, int64) { cancel() }}
		if _, err := verifyFile(ctx, &memFile{b: b}, o, plan{workers: workers, stretch: 1 << 20}); !errors.Is(err, context.Canceled) {
			t.Errorf("%d workers: %v", workers, err)
		}
		if _, err := verifyFile(ctx, &memFile{b: b}, VerifyOptions{}, plan{workers: workers, stretch: 1 << 20}); !errors.Is(err, context.Canceled) {
			t.Errorf("%d workers, cancelled before: %v", workers, err)
		}
	}
}

func TestVerify_NoLog(t *testing.T) {
	dir := t.TempDir()
	c := craft(4096, 8)
	newer := c.bytes(0)
	for _, off := range []int{frame.IdentityOffset, frame.IdentityCopyOffset} {
		newer[off+8] = 2
		sum := xxh3.Hash(newer[off : off+4088])
		for i := range 8 {
			newer[off+4088+i] = byte(sum >> (8 * i))
		}
	}
	bothBad := c.bytes(0)
	bothBad[70] ^= 1
	bothBad[frame.IdentityCopyOffset+70] ^= 1
	files := map[string]struct {
		b   []byte
		err error
	}{
		"empty":           {nil, ErrNotALog},
		"zero":            {make([]byte, 40000), ErrNotALog},
		"foreign":         {[]byte("%PDF-1.7 and so on"), ErrNotALog},
		"short":           {c.bytes(0)[:9000], ErrNotALog},
		"newer":           {newer, ErrUnsupported},
		"both identities": {bothBad, ErrNotALog},
	}
	for name, f := range files {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, f.b, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Verify(context.Background(), path, VerifyOptions{}); !errors.Is(err, f.err) {
			t.Errorf("%s: %v, want %v", name, err, f.err)
		}
	}
	if _, err := Verify(context.Background(), filepath.Join(dir, "missing"), VerifyOptions{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing: %v", err)
	}
	if _, err := Verify(context.Background(), dir, VerifyOptions{}); !errors.Is(err, ErrNotALog) {
		t.Errorf("directory: %v", err)
	}
	if _, err := Verify(context.Background(), filepath.Join(dir, "zero"), VerifyOptions{Workers: -1}); err == nil {
		t.Error("negative workers")
	}
}

// TestVerify_BesideALiveWriter checks a log again and again while it is
// written, closed and opened: it is never called corrupt.
func TestVerify_BesideALiveWriter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "live")
	l, err := Create(path, CreateOptions{PageSize: 4096}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var head atomic.Uint64
	done := make(chan error, 1)
	stop := make(chan struct{})
	go func() {
		var b Batch
		var err error
		for i := 0; err == nil; i++ {
			select {
			case <-stop:
				done <- l.Close()
				return
			default:
			}
			b.Reset()
			b.CompleteOnly = i%4 != 0
			b.Append(make([]byte, i*37%9000))
			_, err = l.Commit(context.Background(), &b)
			head.Add(1)
			if i%100 == 99 && err == nil {
				if err = l.Close(); err == nil {
					l, err = Open(path, Options{})
				}
			}
		}
		done <- err
	}()
	for i := 0; head.Load() < 400 || i < 40; i++ {
		before := head.Load()
		r := verifyPath(t, path, 1+i%3)
		if !r.Sound() || r.Head < before {
			t.Errorf("at %d: %s", before, r.describe())
			break
		}
	}
	close(stop)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if r := verifyPath(t, path, 2); len(r.Findings) != 0 || r.Head != head.Load() || r.Durable != r.End {
		t.Errorf("closed: %s", r.describe())
	}
}

// changedFile is a file that another writer opens, under a new epoch, between
// the first time its header is read and the second.
type changedFile struct {
	memFile
	before, after []byte
	headers       int
}

func (f *changedFile) ReadAt(p []byte, off int64) (int, error) {
	f.b = f.before
	if off == 0 {
		f.headers++
	}
	if f.headers > 2 || f.headers == 2 && len(p) == frame.SlotSize { // each check reads the header area twice
		f.b = f.after
	}
	return f.memFile.ReadAt(p, off)
}

// TestVerify_AnotherWriterOpens: what looks like damage while another writer
// opens the log is looked at again.
func TestVerify_AnotherWriterOpens(t *testing.T) {
	c := long(30)
	before := c.bytes(0)
	before[c.groups[10].start+8] ^= 1
	for i := range c.slots {
		c.slots[i].Epoch++
	}
	f := &changedFile{before: before, after: c.bytes(0)}
	f.b = before
	r, err := verifyFile(context.Background(), f, VerifyOptions{}, plan{workers: 1, stretch: 4096})
	if err != nil || len(r.Findings) != 0 || r.Head != c.at.rev {
		t.Errorf("%s %v", r.describe(), err)
	}
}

// inFlight is a file in which one byte is not there yet when it is first read.
type inFlight struct {
	memFile
	off  int64
	seen bool
}

func (f *inFlight) ReadAt(p []byte, off int64) (int, error) {
	n, err := f.memFile.ReadAt(p, off)
	if !f.seen && off <= f.off && f.off < off+int64(n) && off > 0 {
		f.seen = true
		p[f.off-off] = 0
	}
	return n, err
}

// TestVerify_ReadsAgainBeforeItSaysCorrupt: a group that was in flight when it
// was read, and acknowledged when that was asked, is read once more.
func TestVerify_ReadsAgainBeforeItSaysCorrupt(t *testing.T) {
	c := long(30)
	f := &inFlight{off: c.groups[20].start}
	f.b = c.bytes(0)
	r, err := verifyFile(context.Background(), f, VerifyOptions{}, plan{workers: 1, stretch: 4096})
	if err != nil || !f.seen || len(r.Findings) != 0 || r.Head != c.at.rev {
		t.Errorf("%s %v", r.describe(), err)
	}
}

func verifyPath(t testing.TB, path string, workers int) VerifyReport {
	t.Helper()
	d, err := disk.OpenDir(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	f, err := d.Open(filepath.Base(path), disk.ReadOnly)
	if err != nil {
		t.Fatal(err)
	}
	r, err := verifyFile(context.Background(), f, VerifyOptions{}, plan{workers: workers, stretch: 64 << 10})
	if err := errors.Join(err, f.Close(), d.Close()); err != nil {
		t.Fatal(err)
	}
	return r
}

// BenchmarkVerify stands beside the loop that only reads the same file and sums
// it.
func BenchmarkVerify(b *testing.B) {
	for _, size := range []int{256, 4096} {
		c := bigLog(64<<20, size)
		path := filepath.Join(b.TempDir(), "big")
		if err := os.WriteFile(path, c.bytes(0), 0o600); err != nil {
			b.Fatal(err)
		}
		for _, workers := range []int{1, 2} {
			b.Run(fmt.Sprintf("verify/record=%d/workers=%d", size, workers), func(b *testing.B) {
				b.SetBytes(int64(len(c.b)))
				b.ReportAllocs()
				for b.Loop() {
					if _, err := Verify(context.Background(), path, VerifyOptions{Workers: workers}); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
		b.Run(fmt.Sprintf("raw/record=%d", size), func(b *testing.B) {
			f, err := os.Open(path)
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(len(c.b)))
			buf := make([]byte, readChunk)
			for b.Loop() {
				for off := 0; off < len(c.b); off += len(buf) {
					n, _ := f.ReadAt(buf, int64(off))
					xxh3.Hash(buf[:n])
				}
			}
			_ = f.Close()
		})
	}
}
