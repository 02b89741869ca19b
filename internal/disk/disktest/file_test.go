package disktest_test

import (
	"errors"
	"io"
	"io/fs"
	"strings"
	"sync"
	"testing"

	"github.com/tidemark-log/tidemark/internal/disk"
)

func zeros(n int) string { return strings.Repeat("\x00", n) }

var fileBehaviours = []behaviour{
	{"ReadAt/End", func(t *testing.T, dir opener) {
		f := create(t, dir(), "log", "tidemark")
		for _, c := range []struct {
			off  int64
			size int
			want string
			err  error
		}{
			{0, 8, "tidemark", nil},
			{4, 4, "mark", nil},
			{4, 5, "mark", io.EOF},
			{8, 1, "", io.EOF},
			{1 << 40, 1, "", io.EOF},
			{3, 0, "", nil},
		} {
			p := make([]byte, c.size)
			n, err := f.ReadAt(p, c.off)
			if string(p[:n]) != c.want || err != c.err {
				t.Errorf("ReadAt(%d bytes, %d) = %q, %v, want %q, %v", c.size, c.off, p[:n], err, c.want, c.err)
			}
		}
		_, err := f.ReadAt(make([]byte, 1), -1)
		refuse(t, "ReadAt(-1)", err, fs.ErrInvalid)
	}},
	{"WriteAt/AnyPlace", func(t *testing.T, dir opener) {
		f := create(t, dir(), "log", "")
		put(t, f, "tide", 1000)
		holds(t, f, zeros(1000)+"tide")
		put(t, f, strings.Repeat("x", 700), 300)
		holds(t, f, zeros(300)+strings.Repeat("x", 700)+"tide")
		put(t, f, "", 5000)
		holds(t, f, zeros(300)+strings.Repeat("x", 700)+"tide")
		put(t, f, "mark", 1004)
		holds(t, f, zeros(300)+strings.Repeat("x", 700)+"tidemark")
		_, err := f.WriteAt([]byte("x"), -1)
		refuse(t, "WriteAt(-1)", err, fs.ErrInvalid)
	}},
	{"WriteAt/Large", func(t *testing.T, dir opener) {
		f := create(t, dir(), "log", "")
		large := strings.Repeat("tidemark", 1<<17) + "end"
		put(t, f, large, 77)
		holds(t, f, zeros(77)+large)
	}},
	{"Allocate/ExtendsWithZeros", func(t *testing.T, dir opener) {
		f := create(t, dir(), "log", "tide")
		need(t, f.Allocate(2, 5000))
		holds(t, f, "tide"+zeros(4998))
		put(t, f, "mark", 4)
		need(t, f.Sync())
		holds(t, f, "tidemark"+zeros(4994))
	}},
	{"Allocate/InsideChangesNothing", func(t *testing.T, dir opener) {
		f := create(t, dir(), "log", strings.Repeat("tide", 2000))
		need(t, f.Allocate(0, 4096), f.Allocate(100, 0))
		holds(t, f, strings.Repeat("tide", 2000))
	}},
	{"Allocate/Beyond", func(t *testing.T, dir opener) {
		f := create(t, dir(), "log", "tide")
		need(t, f.Allocate(8192, 100))
		holds(t, f, "tide"+zeros(8192+100-4))
	}},
	{"Allocate/Nonsense", func(t *testing.T, dir opener) {
		f := create(t, dir(), "log", "tide")
		refuse(t, "Allocate(-1, 1)", f.Allocate(-1, 1), fs.ErrInvalid)
		refuse(t, "Allocate(0, -1)", f.Allocate(0, -1), fs.ErrInvalid)
		refuse(t, "Allocate(overflow)", f.Allocate(1<<62, 1<<62), fs.ErrInvalid)
		refuse(t, "Punch(-1, 1)", f.Punch(-1, 1), fs.ErrInvalid)
		refuse(t, "Punch(overflow)", f.Punch(1<<62, 1<<62), fs.ErrInvalid)
		refuse(t, "Truncate(-1)", f.Truncate(-1), fs.ErrInvalid)
		holds(t, f, "tide")
	}},
	{"Punch", func(t *testing.T, dir opener) {
		f := create(t, dir(), "log", strings.Repeat("x", 20000))
		if err := f.Punch(100, 16000); errors.Is(err, disk.ErrNoPunch) {
			holds(t, f, strings.Repeat("x", 20000))
			t.Skip("this file system cannot punch holes")
		} else if err != nil {
			t.Fatal(err)
		}
		holds(t, f, strings.Repeat("x", 100)+zeros(16000)+strings.Repeat("x", 3900))
		need(t, f.Punch(19000, 9000), f.Punch(40000, 100))
		holds(t, f, strings.Repeat("x", 100)+zeros(16000)+strings.Repeat("x", 2900)+zeros(1000))
		put(t, f, "tide", 8000)
		holds(t, f, strings.Repeat("x", 100)+zeros(7900)+"tide"+zeros(8096)+strings.Repeat("x", 2900)+zeros(1000))
	}},
	{"Truncate", func(t *testing.T, dir opener) {
		f := create(t, dir(), "log", strings.Repeat("x", 9000))
		need(t, f.Truncate(8000))
		holds(t, f, strings.Repeat("x", 8000))
		need(t, f.Truncate(100), f.Truncate(100), f.Truncate(5000))
		holds(t, f, strings.Repeat("x", 100)+zeros(4900))
		need(t, f.Truncate(0))
		holds(t, f, "")
	}},
	{"Stat", func(t *testing.T, dir opener) {
		f := create(t, dir(), "log", "tide")
		if info, err := f.Stat(); err != nil || info != (disk.Info{Size: 4, Links: 1}) {
			t.Errorf("Stat = %+v, %v", info, err)
		}
	}},
	{"Stat/SeesOtherHandles", func(t *testing.T, dir opener) {
		d := dir()
		f := create(t, d, "log", "tide")
		need(t, open(t, dir(), "log", disk.ReadWrite).Truncate(1))
		holds(t, f, "t")
	}},
	{"Named/AnotherFileThere", func(t *testing.T, dir opener) {
		d := dir()
		needUnlink(t, d)
		f := create(t, d, "log", "mine")
		g := open(t, d, "log", disk.ReadOnly)
		need(t, d.Remove("log"))
		isNamed(t, g, false, 0)
		create(t, d, "log", "another's")
		isNamed(t, f, false, 0)
		isNamed(t, g, false, 0)
	}},
	{"Named/RenamedThroughAnotherHandle", func(t *testing.T, dir opener) {
		d := dir()
		f := create(t, d, "tmp", "tide")
		g := open(t, d, "tmp", disk.ReadOnly)
		need(t, d.Publish(f, "log"))
		isNamed(t, f, true, 1)
		isNamed(t, g, false, 1) // it was opened under the name that is gone
	}},
	{"Close/EndsTheHandle", func(t *testing.T, dir opener) {
		f := create(t, dir(), "log", "tide")
		need(t, f.Close())
		_, err := f.ReadAt(make([]byte, 1), 0)
		refuse(t, "ReadAt", err, fs.ErrClosed)
		_, err = f.WriteAt([]byte("x"), 0)
		refuse(t, "WriteAt", err, fs.ErrClosed)
		_, err = f.Stat()
		refuse(t, "Stat", err, fs.ErrClosed)
		_, _, err = f.Named()
		refuse(t, "Named", err, fs.ErrClosed)
		refuse(t, "Allocate", f.Allocate(0, 1), fs.ErrClosed)
		refuse(t, "Punch", f.Punch(0, 1), fs.ErrClosed)
		refuse(t, "Truncate", f.Truncate(0), fs.ErrClosed)
		refuse(t, "Sync", f.Sync(), fs.ErrClosed)
		refuse(t, "Lock", f.Lock(), fs.ErrClosed)
		refuse(t, "second Close", f.Close(), fs.ErrClosed)
	}},
	{"Concurrent", concurrentUse},
}

// concurrentUse has everything happen at once and then looks at the result. It
// is meant for the race detector.
func concurrentUse(t *testing.T, dir opener) {
	d := dir()
	f := create(t, d, "log", "")
	const writers, stretch = 4, 1000
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			for k := range 20 {
				_, err := f.WriteAt([]byte(strings.Repeat(string(rune('a'+i)), stretch/20)), int64(i*stretch+k*stretch/20))
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Go(func() {
		p := make([]byte, stretch)
		for range 20 {
			if _, err := f.ReadAt(p, 0); err != nil && err != io.EOF {
				t.Error(err)
			}
			if _, _, err := f.Named(); err != nil {
				t.Error(err)
			}
			if _, err := f.Stat(); err != nil {
				t.Error(err)
			}
		}
	})
	wg.Go(func() {
		for range 3 {
			if err := errors.Join(f.Sync(), d.Sync()); err != nil {
				t.Error(err)
			}
		}
	})
	wg.Wait()
	var want strings.Builder
	for i := range writers {
		want.WriteString(strings.Repeat(string(rune('a'+i)), stretch))
	}
	holds(t, f, want.String())
}
