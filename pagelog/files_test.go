package pagelog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidemark-log/tidemark/frame"
	"github.com/tidemark-log/tidemark/internal/disk"
	"github.com/tidemark-log/tidemark/internal/invariant"
	"github.com/tidemark-log/tidemark/internal/simdisk"
)

// countDir counts what the engine asks of a real directory's files.
type countDir struct {
	disk.Dir
	writes, syncs, reads atomic.Int64
}

type countFile struct {
	disk.File
	d *countDir
}

func (d *countDir) Open(name string, a disk.Access) (disk.File, error) {
	f, err := d.Dir.Open(name, a)
	return &countFile{f, d}, err
}

func (d *countDir) Create(name string) (disk.File, error) {
	f, err := d.Dir.Create(name)
	return &countFile{f, d}, err
}

func (d *countDir) Publish(f disk.File, name string) error {
	return d.Dir.Publish(f.(*countFile).File, name)
}

func (f *countFile) WriteAt(p []byte, off int64) (int, error) {
	f.d.writes.Add(1)
	return f.File.WriteAt(p, off)
}

func (f *countFile) ReadAt(p []byte, off int64) (int, error) {
	f.d.reads.Add(1)
	return f.File.ReadAt(p, off)
}

func (f *countFile) Sync() error {
	f.d.syncs.Add(1)
	return f.File.Sync()
}

// onDisk makes a log in a temporary directory.
func onDisk(t testing.TB, c CreateOptions, o Options) (*Log, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a.log")
	l, err := Create(path, c, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l, path
}

func TestL12_WritesAndSyncsOfACommit(t *testing.T) {
	dir, err := disk.OpenDir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	count := &countDir{Dir: dir}
	l, err := CreateIn(Env{Dir: count, Idle: -1}, logName, CreateOptions{}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	b := batchOf(make([]byte, 256))
	for range 10 { // the first writes zeros ahead
		if _, err := l.Commit(ctx0, b); err != nil {
			t.Fatal(err)
		}
	}
	writes, syncs, reads := count.writes.Load(), count.syncs.Load(), count.reads.Load()
	for range 50 {
		if _, err := l.Commit(ctx0, b); err != nil {
			t.Fatal(err)
		}
	}
	if w, s, r := count.writes.Load()-writes, count.syncs.Load()-syncs, count.reads.Load()-reads; w != 50 || s != 50 || r != 50 { // the last group, and the one before it, are looked at again (L20)
		t.Fatalf("50 commits made %d writes, %d syncs, %d reads", w, s, r)
	}
	closeLog(t, l)
}

// L13: many callers share writes and syncs; the order of revisions is the order
// in the file, and each is acknowledged with its own.
func TestL13_ManyCallersShareOneSync(t *testing.T) {
	l, path := onDisk(t, CreateOptions{}, Options{})
	const callers, each = 32, 20
	var mu sync.Mutex
	want := map[uint64]string{}
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			var b Batch
			last := uint64(0)
			for j := range each {
				b.Reset()
				text := strings.Repeat(string(rune('a'+i%26)), 1+i*j)
				b.Append([]byte(text))
				c, err := l.Commit(ctx0, &b)
				if err != nil || !c.Durable || c.Revision <= last {
					t.Errorf("caller %d: %+v, %v", i, c, err)
					return
				}
				last = c.Revision
				mu.Lock()
				want[c.Revision] = text + "|"
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	st := l.Stats()
	if st.Commits != callers*each || st.Syncs >= st.Commits {
		t.Errorf("%d syncs for %d commits", st.Syncs, st.Commits)
	}
	closeLog(t, l)
	r, err := OpenReader(path, ReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	got, err := contents(r, 0)
	if err != nil || len(got) != callers*each {
		t.Fatal(len(got), err)
	}
	for i, text := range got {
		if want[uint64(i+1)] != text {
			t.Fatalf("revision %d holds %.20q, %.20q was acknowledged as it", i+1, text, want[uint64(i+1)])
		}
	}
}

// L17: where zeros ahead buy nothing, none are written; large groups reserve.
func TestL17_ZeroAheadIsAPolicy(t *testing.T) {
	for _, c := range []struct {
		name        string
		policy      ZeroAhead
		copyOnWrite bool
		ahead       bool
	}{
		{"auto", ZeroAheadAuto, false, true},
		{"auto on a copy-on-write file system", ZeroAheadAuto, true, false},
		{"on", ZeroAheadOn, true, true},
		{"off", ZeroAheadOff, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSim(t)
			s.fs.Where = disk.FileSystem{Name: "x", CopyOnWrite: c.copyOnWrite}
			l := s.create(small, Options{ZeroAhead: c.policy})
			commit(t, l, payload(1, 100))
			if ahead := int64(len(s.bytes())) > l.head.end+1000; ahead != c.ahead {
				t.Errorf("history ends at %d, the file has %d bytes", l.head.end, len(s.bytes()))
			}
			var written, allocated int64
			s.fs.Before(func(op simdisk.Op) {
				switch op.Kind {
				case simdisk.OpWrite:
					written += op.Len
				case simdisk.OpAllocate:
					allocated += op.Len
				}
			})
			commit(t, l, make([]byte, 300<<10))
			if allocated < 300<<10 || written > 310<<10 {
				t.Errorf("a large group: %d bytes written, %d reserved", written, allocated)
			}
		})
	}
}

// L20, C37: whatever happens to the file under its writer, the next commit is
// not acknowledged.
func TestL20_ReplacedUnderTheWriter(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("an open file cannot be replaced here")
	}
	must := func(t *testing.T, errs ...error) {
		t.Helper()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
	}
	for name, attack := range map[string]func(t *testing.T, path string, backup []byte){
		"unlinked":     func(t *testing.T, path string, _ []byte) { must(t, os.Remove(path)) },
		"renamed away": func(t *testing.T, path string, _ []byte) { must(t, os.Rename(path, path+".old")) },
		"renamed over": func(t *testing.T, path string, backup []byte) {
			must(t, os.WriteFile(path+".new", backup, 0o600), os.Rename(path+".new", path))
		},
		"renamed over by a longer one": func(t *testing.T, path string, backup []byte) {
			must(t, os.WriteFile(path+".new", append(backup, make([]byte, 1<<20)...), 0o600), os.Rename(path+".new", path))
		},
		"truncated":          func(t *testing.T, path string, _ []byte) { must(t, os.Truncate(path, 20000)) },
		"a backup copied in": func(t *testing.T, path string, backup []byte) { must(t, os.WriteFile(path, backup, 0o600)) },
		"a directory now":    func(t *testing.T, path string, _ []byte) { must(t, os.Remove(path), os.Mkdir(path, 0o700)) },
		"a link to it now": func(t *testing.T, path string, _ []byte) {
			must(t, os.Rename(path, path+"2"), os.Symlink(path+"2", path))
		},
	} {
		for _, completeOnly := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				l, path := onDisk(t, small, Options{})
				commit(t, l, []byte("1"))
				closeLog(t, l)
				backup, err := os.ReadFile(path)
				must(t, err)
				backup = backup[:l.head.end] // without the zeros ahead, as copies are made
				l, err = Open(path, Options{})
				must(t, err)
				defer func() { _ = l.Close() }()
				r, err := OpenReader(path, ReaderOptions{})
				must(t, err)
				defer func() { _ = r.Close() }()
				commit(t, l, payload(1, 5000))
				commit(t, l, payload(2, 5000))
				if h, err := r.Head(); err != nil || h.Revision != 3 {
					t.Fatal(h, err)
				}
				attack(t, path, backup)
				b := batchOf([]byte("never acknowledged"))
				b.CompleteOnly = completeOnly
				if c, err := l.Commit(ctx0, b); !errors.Is(err, ErrReplaced) || !errors.Is(err, ErrUncertain) {
					t.Fatalf("%+v, %v", c, err)
				}
				if _, err := l.Commit(ctx0, b); !errors.Is(err, ErrPoisoned) || !errors.Is(err, ErrReplaced) {
					t.Fatal(err)
				}
				// L43: the reader names what happened, and never goes back.
				for range 2 {
					if h, err := r.Head(); !errors.Is(err, ErrReplaced) && !errors.Is(err, ErrDiverged) && !errors.Is(err, ErrCorrupt) {
						t.Fatalf("a reader: %+v, %v", h, err)
					}
				}
			})
		}
	}
}

// L20, C37: a backup of at least the same length, copied over the file in
// place, takes acknowledged commits with it and leaves name, inode and size as
// they were. The next commit is not acknowledged: by what the file holds where
// the last commit was.
func TestL20_BackupCopiedInPlace_C37(t *testing.T) {
	overwrite := func(t *testing.T, path string, data []byte) {
		t.Helper()
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err == nil {
			_, err = f.WriteAt(data, 0)
			err = errors.Join(err, f.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	read := func(t *testing.T, path string) []byte {
		t.Helper()
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	check := func(t *testing.T, l *Log, completeOnly bool) {
		t.Helper()
		b := batchOf([]byte("never acknowledged"))
		b.CompleteOnly = completeOnly
		if c, err := l.Commit(ctx0, b); !errors.Is(err, ErrReplaced) || !errors.Is(err, ErrUncertain) {
			t.Fatalf("%+v, %v", c, err)
		}
		if _, err := l.Commit(ctx0, b); !errors.Is(err, ErrPoisoned) {
			t.Fatal(err)
		}
	}
	for _, completeOnly := range []bool{false, true} {
		for name, commits := range map[string]struct{ before, after int }{
			"one commit ago":   {5, 1},
			"many commits ago": {5, 50},
			"before the first": {0, 1},
		} {
			t.Run(fmt.Sprintf("%s, complete-only %v", name, completeOnly), func(t *testing.T) {
				l, path := onDisk(t, small, Options{})
				for i := range commits.before {
					commit(t, l, payload(i, 300))
				}
				backup := read(t, path)
				for i := range commits.after {
					commit(t, l, payload(i, 300))
				}
				if grown := len(read(t, path)) - len(backup); grown > 0 {
					backup = append(backup, make([]byte, grown)...)
				}
				overwrite(t, path, backup)
				check(t, l, completeOnly)
			})
		}
		t.Run(fmt.Sprintf("after opening, complete-only %v", completeOnly), func(t *testing.T) {
			l, path := onDisk(t, small, Options{})
			commit(t, l, payload(1, 300))
			backup := read(t, path)
			commit(t, l, payload(2, 300))
			closeLog(t, l)
			l, err := Open(path, Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = l.Close() }()
			overwrite(t, path, append(backup, make([]byte, 1<<16)...))
			check(t, l, completeOnly)
		})
		t.Run(fmt.Sprintf("another log over an empty one, complete-only %v", completeOnly), func(t *testing.T) {
			l, path := onDisk(t, small, Options{})
			other, from := onDisk(t, small, Options{})
			for i := range 20 {
				commit(t, other, payload(i, 300))
			}
			overwrite(t, path, read(t, from))
			check(t, l, completeOnly)
		})
	}

	// While the commit is under way: the write is gone before the sync returns.
	t.Run("between write and acknowledgement", func(t *testing.T) {
		l, path := onDisk(t, small, Options{})
		commit(t, l, payload(1, 300))
		backup := read(t, path)
		l.file = afterSync{l.file, func() { overwrite(t, path, backup) }}
		check(t, l, false)
	})
	// What the durable commit builds on was not durable yet, and is gone.
	t.Run("between a complete-only commit and a durable one", func(t *testing.T) {
		l, path := onDisk(t, small, Options{})
		commit(t, l, payload(1, 300))
		complete(t, l, payload(2, 300))
		backup := read(t, path)
		complete(t, l, payload(3, 300))
		overwrite(t, path, backup)
		check(t, l, false)
	})
	// No commit is lost, but somebody cut the file, and may go on.
	t.Run("only zeros ahead are cut off", func(t *testing.T) {
		l, path := onDisk(t, small, Options{})
		commit(t, l, payload(1, 300))
		if err := os.Truncate(path, int64(len(read(t, path)))-4096); err != nil {
			t.Fatal(err)
		}
		check(t, l, false)
	})
	// The same bytes again are the same history: nothing is lost, nothing said.
	t.Run("its own bytes", func(t *testing.T) {
		l, path := onDisk(t, small, Options{})
		commit(t, l, payload(1, 300))
		overwrite(t, path, read(t, path))
		commit(t, l, payload(2, 300))
	})
}

// afterSync is a file with something that happens between a sync and what
// follows it.
type afterSync struct {
	disk.File
	do func()
}

func (f afterSync) Sync() error {
	err := f.File.Sync()
	f.do()
	return err
}

// fullSlots is a file on a copy-on-write file system that is full: what is there
// is not written over any more, unless by luck in part.
type fullSlots struct {
	disk.File
	full atomic.Bool
}

func (f *fullSlots) WriteAt(p []byte, off int64) (int, error) {
	if !f.full.Load() || off >= frame.SlotOffsetB+frame.SlotSize {
		return f.File.WriteAt(p, off)
	}
	n, _ := f.File.WriteAt(p[:100], off)
	return n, fmt.Errorf("write: %w", disk.ErrNoSpace)
}

// C29: no room for a slot takes nothing from a log whose commits find room. One
// of the slots holds at any time, and when there is room again a slot says what
// is durable.
func TestC29_NoRoomForASlot(t *testing.T) {
	l, path := onDisk(t, small, Options{})
	f := &fullSlots{File: l.file}
	l.file, l.slots.file = f, f
	for round := range 6 {
		f.full.Store(round%3 != 2)
		if err := l.Checkpoint(ctx0, commit(t, l, payload(round, 300)).Revision, []byte("state")); err != nil {
			t.Fatal(err)
		}
		h, err := readHeader(l.file)
		if err != nil {
			t.Fatal(err)
		}
		if h.newest() == nil {
			t.Fatalf("round %d: no slot holds", round)
		}
		if named := h.newest().Durable.Offset; !f.full.Load() && named != l.durable.end {
			t.Fatalf("round %d: the slots name %d, durable is %d", round, named, l.durable.end)
		}
	}
	f.full.Store(true)
	commit(t, l, payload(99, 300))

	// Two slots with no sync between them, the second in part; and a third after
	// a sync must not go over the only one that holds.
	l.mu.Lock()
	for i := range 3 {
		f.full.Store(i > 0)
		if err := l.slots.name(l.durable.place()); (err != nil) != (i > 0) {
			t.Error(err)
		}
		if i == 1 {
			l.slots.synced()
		}
	}
	l.mu.Unlock()
	if h, err := readHeader(l.file); err != nil || h.newest() == nil {
		t.Fatal("no slot holds", err)
	}
	if err := l.Close(); !errors.Is(err, ErrNoSpace) {
		t.Fatal(err)
	}
	l, err := Open(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if h := l.Head(); h.Revision != 7 {
		t.Fatalf("%+v", h)
	}
	closeLog(t, l)
}

// L21: a prepared batch is committed without allocating.
func TestL21_CommitAllocatesNothing(t *testing.T) {
	if invariant.Enabled {
		t.Skip("checks allocate")
	}
	for _, completeOnly := range []bool{false, true} {
		l, _ := onDisk(t, CreateOptions{}, Options{CheckpointEvery: -1})
		b := batchOf(make([]byte, 256), make([]byte, 64))
		b.CompleteOnly = completeOnly
		do := func() {
			if _, err := l.Commit(ctx0, b); err != nil {
				t.Fatal(err)
			}
		}
		for range 100 {
			do()
		}
		if n := testing.AllocsPerRun(200, do); n != 0 {
			t.Errorf("complete-only %v: %v allocations per commit", completeOnly, n)
		}
	}
}

// L45: iteration allocates nothing per record, and a slice kept too long is
// nonsense in a test build.
func TestL45_IterationAllocatesNothingPerRecord(t *testing.T) {
	l, _ := onDisk(t, CreateOptions{}, Options{CheckpointEvery: -1})
	for range 500 {
		complete(t, l, payload(1, 300), payload(2, 300), payload(3, 300))
	}
	records := 0
	perRun := testing.AllocsPerRun(5, func() {
		records = 0
		for g, err := range l.Commits(0) {
			if err != nil {
				t.Fatal(err)
			}
			for range g.Records() {
				records++
			}
		}
	})
	if records != 1500 || perRun > 40 {
		t.Errorf("%v allocations for %d records", perRun, records)
	}
	var kept []byte
	for g := range l.Commits(0) {
		for rec := range g.Records() {
			if kept == nil {
				kept = rec.Data
			}
		}
	}
	if invariant.Enabled && !bytes.Equal(kept, bytes.Repeat([]byte{0xDB}, len(kept))) {
		t.Error("a slice that was kept too long still reads well")
	}
}

// L46: ranges and backward, at every place, and what lies outside.
func TestL46_RangesAndTheirEnds(t *testing.T) {
	l, path := onDisk(t, small, Options{})
	var want []string
	for i := range 60 {
		p := payload(i, 1+i*97%5000)
		commit(t, l, p)
		want = append(want, string(p)+"|")
	}
	r, err := OpenReader(path, ReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	for _, r := range []*Reader{l.Reader, r} {
		readEveryWay(t, r, want)
		var g Group
		for rev, wantErr := range map[uint64]error{0: ErrCompacted, 61: ErrNotFound, 1 << 62: ErrNotFound} {
			if err := r.At(rev, &g); !errors.Is(err, wantErr) {
				t.Errorf("At(%d): %v", rev, err)
			}
		}
		if _, err := contents(r, 61); !errors.Is(err, ErrNotFound) {
			t.Errorf("after 61: %v", err)
		}
		if got, err := contents(r, 60); err != nil || len(got) != 0 {
			t.Errorf("after 60: %d commits, %v", len(got), err)
		}
		for _, err := range r.Backward(61) {
			if !errors.Is(err, ErrNotFound) {
				t.Errorf("backward from 61: %v", err)
			}
			break
		}
		n := 0
		for range r.Backward(7) {
			if n++; n == 3 {
				break
			}
		}
		if r.Oldest() != 1 {
			t.Errorf("oldest %d", r.Oldest())
		}
	}
}

// L57: numbers, and lines for whoever asks for them.
func TestL57_StatsAndLogger(t *testing.T) {
	var out bytes.Buffer
	s := newSim(t)
	o := Options{Logger: slog.New(slog.NewTextHandler(&out, nil))}
	l := s.create(small, o)
	commit(t, l, payload(1, 10))
	complete(t, l, payload(2, 10))
	st := l.Stats()
	if st.Commits != 2 || st.Writes != 2 || st.Syncs != 1 || st.Bytes != l.head.end-l.geo.HeaderArea() || st.Recovery.Epoch != 1 || st.Latency.Quantile(1) == 0 {
		t.Errorf("%+v", st)
	}
	if err := l.Checkpoint(ctx0, 1, nil); err != nil || l.Stats().Slots != st.Slots+1 {
		t.Errorf("%v, %d slots, %d before", err, l.Stats().Slots, st.Slots)
	}
	s.fs.Inject(simdisk.Fault{Kind: simdisk.OpSync})
	if err := l.Sync(ctx0); !errors.Is(err, ErrUncertain) {
		t.Error(err)
	}
	for _, want := range []string{"log opened", "log poisoned", "injected", "error"} {
		if want != "injected" && !strings.Contains(out.String(), want) {
			t.Errorf("no %q in %q", want, out.String())
		}
	}
	var h Histogram
	if h.Quantile(0.5) != 0 {
		t.Error("an empty histogram has a median")
	}
	for _, d := range []time.Duration{1, time.Microsecond, 3 * time.Microsecond, time.Hour * 10} {
		h.add(d)
	}
	if h.Quantile(0.5) != time.Microsecond || h.Quantile(0.75) != 4*time.Microsecond || h.Quantile(1) < 30*time.Minute {
		t.Errorf("%v %v %v", h.Quantile(0.5), h.Quantile(0.75), h.Quantile(1))
	}
}

// L59: network and user-space file systems are refused, with the way out.
func TestL59_NetworkFileSystems(t *testing.T) {
	s := newSim(t)
	closeLog(t, s.create(small, Options{}))
	s.fs.Where = disk.FileSystem{Name: "nfs", Network: true}
	err := s.refused(Options{}, ErrFileSystem)
	if !strings.Contains(err.Error(), "nfs") || !strings.Contains(err.Error(), "option") {
		t.Error(err)
	}
	if _, err := CreateIn(s.env(), "other", small, Options{}); !errors.Is(err, ErrFileSystem) {
		t.Error(err)
	}
	if _, err := OpenReaderIn(s.env(), logName, ReaderOptions{}); !errors.Is(err, ErrFileSystem) {
		t.Error(err)
	}
	closeLog(t, s.open(Options{AllowAnyFileSystem: true}))
	if _, err := OpenReaderIn(s.env(), logName, ReaderOptions{AllowAnyFileSystem: true}); err != nil {
		t.Error(err)
	}
}

// C40: the file is cut under eight observers: a named error, no signal.
func TestC40_CutUnderReaders(t *testing.T) {
	l, path := onDisk(t, small, Options{})
	for i := range 300 {
		complete(t, l, payload(i, 1000))
	}
	closeLog(t, l)
	var wg sync.WaitGroup
	var reading sync.WaitGroup
	reading.Add(8)
	for range 8 {
		r, err := OpenReader(path, ReaderOptions{})
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			defer func() { _ = r.Close() }()
			var began sync.Once
			for {
				_, err := contents(r, 0)
				began.Do(reading.Done)
				if err == nil {
					continue
				}
				if !errors.Is(err, ErrDiverged) && !errors.Is(err, ErrReplaced) && !errors.Is(err, ErrCorrupt) {
					t.Errorf("a reader of a file that was cut: %v", err)
				}
				return
			}
		})
	}
	reading.Wait()
	if err := os.Truncate(path, 100000); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
}

// L29: what stands in the place of a log is told apart.
func TestL29_NoRegularFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.log")
	if _, err := Open(path, Options{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing: %v", err)
	}
	if _, err := OpenReader(path, ReaderOptions{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing: %v", err)
	}
	if _, err := Open(filepath.Join(dir, "none", "a.log"), Options{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing directory: %v", err)
	}
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path, Options{}); !errors.Is(err, ErrNotALog) {
		t.Errorf("a directory: %v", err)
	}
	for _, p := range []string{".", "/", dir + "/.."} {
		if _, err := Open(p, Options{}); !errors.Is(err, ErrNotALog) {
			t.Errorf("%q: %v", p, err)
		}
	}
	l, real := onDisk(t, small, Options{})
	closeLog(t, l)
	link := filepath.Join(dir, "link.log")
	if err := os.Symlink(real, link); err == nil {
		if _, err := Open(link, Options{}); !errors.Is(err, ErrNotALog) {
			t.Errorf("a symbolic link: %v", err)
		}
	}
	if _, err := Create(real, small, Options{}); !errors.Is(err, fs.ErrExist) {
		t.Errorf("create over a log: %v", err)
	}
}

// Many processes may want to create the same log: one does, the others learn
// that it exists, and nothing is left over.
func TestC5_CreateConcurrently(t *testing.T) {
	for range 20 {
		dir := t.TempDir()
		path := filepath.Join(dir, "a.log")
		var created, exist atomic.Int64
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				l, err := Create(path, small, Options{})
				switch {
				case err == nil:
					created.Add(1)
					_ = l.Close()
				case errors.Is(err, fs.ErrExist):
					exist.Add(1)
				default:
					t.Errorf("create: %v", err)
				}
			})
		}
		wg.Wait()
		names, err := os.ReadDir(dir)
		if err != nil || len(names) != 1 || created.Load() != 1 || exist.Load() != 7 {
			t.Fatalf("%d created, %d found it there, left: %v, %v", created.Load(), exist.Load(), names, err)
		}
	}
}

// Nothing of a log that was closed goes on.
func TestClose_LeavesNoGoroutine(t *testing.T) {
	before := runtime.NumGoroutine()
	for range 10 {
		l, path := onDisk(t, small, Options{})
		ctx, cancel := context.WithCancel(ctx0)
		r, err := OpenReader(path, ReaderOptions{})
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			for range r.Follow(ctx, 0) {
				continue
			}
		}()
		for i := range 20 {
			_ = l.Submit(batchOf(payload(i, 100)))
		}
		closeLog(t, l)
		cancel()
		<-done
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
	deadline := time.After(10 * time.Second)
	for runtime.NumGoroutine() > before+2 {
		select {
		case <-deadline:
			buf := make([]byte, 1<<16)
			t.Fatalf("%d goroutines before, %d after\n%s", before, runtime.NumGoroutine(), buf[:runtime.Stack(buf, true)])
		default:
			runtime.Gosched()
		}
	}
}
