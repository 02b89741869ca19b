package pagelog

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/tidemark-log/tidemark/cursor"
	"github.com/tidemark-log/tidemark/frame"
	"github.com/tidemark-log/tidemark/internal/disk"
	"github.com/tidemark-log/tidemark/internal/simdisk"
)

// scene is a log on a simulated disk whose file is taken away, cut and restored
// under a reader.
type scene struct {
	t   *testing.T
	s   *simdisk.FS
	dir disk.Dir
}

func newScene(t *testing.T) *scene {
	s := simdisk.New()
	return &scene{t, s, s.Dir()}
}

// env is a world in which nothing happens on its own.
func (sc *scene) env() Env { return Env{Dir: sc.s.Dir(), Idle: -1} }

// write opens the log, or makes it, appends n commits and closes it.
func (sc *scene) write(word string, n int) {
	sc.t.Helper()
	l, err := OpenIn(sc.env(), "a", Options{})
	if err != nil {
		l, err = CreateIn(sc.env(), "a", CreateOptions{PageSize: 4096}, Options{})
	}
	if err != nil {
		sc.t.Fatal(err)
	}
	for i := range n {
		var b Batch
		b.Append(fmt.Appendf(nil, "%s %d", word, i))
		if _, err := l.Commit(context.Background(), &b); err != nil {
			sc.t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		sc.t.Fatal(err)
	}
}

func (sc *scene) bytes() []byte {
	sc.t.Helper()
	b, err := sc.s.ReadFile("a")
	if err != nil {
		sc.t.Fatal(err)
	}
	return append([]byte(nil), b...)
}

// restore copies bytes over the file as cp does: the file stays the same one.
func (sc *scene) restore(b []byte) {
	sc.t.Helper()
	f, err := sc.dir.Open("a", disk.ReadWrite)
	if err != nil {
		sc.t.Fatal(err)
	}
	_, err = f.WriteAt(b, 0)
	if err := errors.Join(err, f.Truncate(int64(len(b))), f.Close()); err != nil {
		sc.t.Fatal(err)
	}
}

func (sc *scene) reader() *Reader {
	sc.t.Helper()
	r, err := OpenReaderIn(sc.env(), "a", ReaderOptions{})
	if err != nil {
		sc.t.Fatal(err)
	}
	return r
}

// head returns the revision of the head, or why there is none.
func head(r *Reader) (uint64, error) {
	c, err := r.Head()
	return c.Revision, err
}

// TestRestore_L43_UnderAReader: whatever becomes of the file under a reader, it
// never goes back in revision and never waits in the middle of bytes that are
// gone: the next look says what happened, and so does every later one.
func TestRestore_L43_UnderAReader(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(sc *scene, backup []byte)
		want   error // nil: it goes on
	}{
		"nothing":                   {func(*scene, []byte) {}, nil},
		"a new writer":              {func(sc *scene, _ []byte) { sc.write("on", 3) }, nil},
		"shortened by a byte":       {func(sc *scene, _ []byte) { sc.restore(sc.bytes()[:len(sc.bytes())-1]) }, nil}, // of the zeros ahead
		"shortened to the middle":   {func(sc *scene, _ []byte) { sc.restore(sc.bytes()[:20000]) }, ErrDiverged},
		"shortened to nothing":      {func(sc *scene, _ []byte) { sc.restore(nil) }, ErrReplaced},
		"shortened in the header":   {func(sc *scene, _ []byte) { sc.restore(sc.bytes()[:9000]) }, ErrReplaced},
		"removed":                   {func(sc *scene, _ []byte) { _ = sc.dir.Remove("a") }, ErrReplaced},
		"restored":                  {func(sc *scene, b []byte) { sc.restore(b) }, ErrDiverged},
		"restored, of the old size": {func(sc *scene, b []byte) { sc.restore(append(b, make([]byte, len(sc.bytes())-len(b))...)) }, ErrDiverged},
		// The new writer has the epoch that the reader saw last.
		"restored and written":      {func(sc *scene, b []byte) { sc.restore(b); sc.write("other", 1) }, ErrDiverged},
		"restored and written more": {func(sc *scene, b []byte) { sc.restore(b); sc.write("other", 60) }, ErrDiverged},
		"written and restored": {func(sc *scene, _ []byte) {
			b := sc.bytes()
			sc.write("lost", 5)
			sc.restore(b)
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			sc := newScene(t)
			sc.write("one", 20)
			backup := sc.bytes()
			sc.write("two", 20)
			r := sc.reader()
			if rev, err := head(r); err != nil || rev != 40 {
				t.Fatal(rev, err)
			}
			tc.change(sc, backup)
			rev, err := head(r)
			if tc.want == nil {
				if err != nil || rev < 40 {
					t.Fatalf("head %d, %v", rev, err)
				}
				return
			}
			for range 3 {
				if !errors.Is(err, tc.want) {
					t.Fatalf("head %d, %v; want %v", rev, err, tc.want)
				}
				_, err = head(r)
			}
			for g, err := range r.Commits(0) {
				if g != nil || !errors.Is(err, tc.want) {
					t.Fatalf("goes on with %v, %v", g, err)
				}
			}
			if err := r.Wait(context.Background(), 40); !errors.Is(err, tc.want) {
				t.Errorf("Wait says %v", err)
			}
		})
	}
}

// TestRestore_L43_SameWriter: a backup that the same writer's file was restored
// from has the same size, epoch and incarnation; its slots are older.
func TestRestore_L43_SameWriter(t *testing.T) {
	sc := newScene(t)
	l, err := CreateIn(sc.env(), "a", CreateOptions{PageSize: 4096}, Options{CheckpointEvery: 100})
	if err != nil {
		t.Fatal(err)
	}
	commit := func() {
		var b Batch
		b.Append(make([]byte, 200))
		if _, err := l.Commit(context.Background(), &b); err != nil {
			t.Fatal(err)
		}
	}
	commit()
	backup := sc.bytes()
	for range 20 {
		commit()
	}
	r := sc.reader()
	if rev, err := head(r); err != nil || rev != 21 {
		t.Fatal(rev, err)
	}
	if len(sc.bytes()) != len(backup) {
		t.Fatal("the file grew")
	}
	sc.restore(backup)
	if rev, err := head(r); !errors.Is(err, ErrDiverged) {
		t.Errorf("head %d, %v", rev, err)
	}
	_ = l.Close() // it has lost its file's contents, and may say so
}

// TestRestore_D13_Cursor: a cursor taken before a restore is future while the
// restored log is shorter, diverged once it has another commit there, and good
// for what both histories have.
func TestRestore_D13_Cursor(t *testing.T) {
	sc := newScene(t)
	sc.write("one", 20)
	backup := sc.bytes()
	sc.write("two", 5)
	cursors := map[uint64]cursor.Cursor{}
	r := sc.reader()
	for g, err := range r.Commits(0) {
		if err != nil {
			t.Fatal(err)
		}
		cursors[g.Revision] = r.Cursor(g.Commit)
	}
	sc.restore(backup)
	expect := func(rev uint64, want error, next uint64) {
		t.Helper()
		for g, err := range sc.reader().From(cursors[rev]) {
			if !errors.Is(err, want) || want == nil && (err != nil || g.Revision != next) {
				t.Errorf("cursor %d: %v, %v; want %v", rev, g, err, want)
			}
			return
		}
		if want != nil || next != 0 {
			t.Errorf("cursor %d: nothing, want %v", rev, want)
		}
	}
	expect(25, cursor.ErrFuture, 0)
	expect(21, cursor.ErrFuture, 0)
	expect(20, nil, 0)
	sc.write("other", 3)
	expect(25, cursor.ErrFuture, 0)
	expect(23, cursor.ErrDiverged, 0)
	expect(21, cursor.ErrDiverged, 0)
	expect(20, nil, 21)
	expect(7, nil, 8)
	sc.write("other", 30)
	expect(25, cursor.ErrDiverged, 0)
	// Made anew under the same name (D16): another log, whatever it holds.
	if err := sc.dir.Remove("a"); err != nil {
		t.Fatal(err)
	}
	sc.write("one", 30)
	expect(20, cursor.ErrForeign, 0)
	expect(25, cursor.ErrForeign, 0)
}

// headerHook does something before the n-th read of the slots from now.
type headerHook struct {
	disk.File
	left int
	do   func()
}

func (f *headerHook) ReadAt(p []byte, off int64) (int, error) {
	if off == frame.SlotOffsetA {
		if f.left--; f.left == 0 {
			f.do()
		}
	}
	return f.File.ReadAt(p, off)
}

// TestRestore_L43_InTheMiddleOfALook: a look reads the slots, and once more
// before it judges what is behind the tip. A copy that is restored between the
// two is noticed by the next look, whenever that is.
func TestRestore_L43_InTheMiddleOfALook(t *testing.T) {
	for n := 1; n <= 3; n++ {
		s := newSim(t)
		l := s.create(small, Options{})
		commit(t, l, payload(1, 300))
		backup := s.bytes()
		for i := range 4 {
			commit(t, l, payload(2+i, 300))
		}
		closeLog(t, l)
		backup = append(backup, make([]byte, len(s.bytes())-len(backup))...)
		r := s.reader(ReaderOptions{})
		if h, err := r.Head(); err != nil || h.Revision != 5 {
			t.Fatal(h, err)
		}
		hook := &headerHook{File: r.file, left: n, do: func() { overwriteSim(t, s, backup) }}
		r.file = hook
		for hook.left > 0 { // the look in which it happens may be over before
			_, _ = r.Head()
		}
		if h, err := r.Head(); !errors.Is(err, ErrDiverged) {
			t.Errorf("restored before read %d of the slots: head %d, %v", n, h.Revision, err)
		}
	}
}

// overwriteSim writes over the file in place, as cp does.
func overwriteSim(t *testing.T, s *sim, b []byte) {
	t.Helper()
	f, err := s.fs.Dir().Open(logName, disk.ReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(b, 0); err != nil {
		t.Error(err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}
