package pagelog

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemark-log/tidemark/internal/disk"
	"github.com/tidemark-log/tidemark/internal/simdisk"
)

// tally counts what a reader asks of the system.
type tally struct{ calls, bytes atomic.Int64 }

type tallyDir struct {
	disk.Dir
	*tally
}

func (d tallyDir) Open(name string, a disk.Access) (disk.File, error) {
	f, err := d.Dir.Open(name, a)
	return tallyFile{f, d.tally}, err
}

type tallyFile struct {
	disk.File
	*tally
}

func (f tallyFile) ReadAt(p []byte, off int64) (int, error) {
	n, err := f.File.ReadAt(p, off)
	f.calls.Add(1)
	f.bytes.Add(int64(n))
	return n, err
}

func (f tallyFile) Stat() (disk.Info, error) {
	f.calls.Add(1)
	return f.File.Stat()
}

func (f tallyFile) Named() (int64, bool, error) {
	f.calls.Add(2)
	return f.File.Named()
}

// TestFollow_IdleCost: a follower that waits costs less than a thousandth of a
// core, counted and not timed: in ten minutes of a clock that only tests have, at
// most so many system calls and bytes in a second, both where the system says
// when the file changes and where it has to be looked at, and however much space
// the writer has reserved behind the head. 60 calls of 5 µs and 600 KiB at
// 2 GiB/s are 0.6 ms, of which one look each second needs a quarter.
func TestFollow_IdleCost(t *testing.T) {
	for name, reserved := range map[string]int{"zeros ahead": 64 << 10, "reserved": 4 << 20} {
		for _, watched := range []bool{true, false} {
			kind := map[bool]string{true: "watched", false: "polled"}[watched]
			t.Run(name+", "+kind, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { idleMinutes(t, reserved, watched) })
			})
		}
	}
}

func idleMinutes(t *testing.T, reserved int, watched bool) {
	c := craft(16384, 8)
	for range 20 {
		c.commit(3000)
		c.sync()
	}
	c.name()
	s := simdisk.New()
	s.WriteFile("a", c.bytes(reserved))
	var n tally
	r, err := OpenReaderIn(Env{Dir: tallyDir{s.Dir(), &n}}, "a", ReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if h, err := r.Head(); err != nil || h.Revision != 20 {
		t.Fatal(h, err)
	}
	const seconds = 600
	time.AfterFunc(time.Minute, func() { // when it has come to rest
		n.calls.Store(0)
		n.bytes.Store(0)
	})
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute+seconds*time.Second)
	defer cancel()
	w := r.newWaiter()
	defer w.stop()
	if watched {
		w.changed, w.pause = make(chan struct{}), slowLook
	}
	if err := w.wait(ctx, 20); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	calls, bytes := n.calls.Load()/seconds, n.bytes.Load()/seconds
	t.Logf("%d calls and %d bytes in a second", calls, bytes)
	maxCalls := int64(60)
	if watched {
		maxCalls = 15
	}
	if calls > maxCalls || bytes > 600<<10 {
		t.Errorf("%d calls and %d bytes in a second", calls, bytes)
	}
	if calls == 0 {
		t.Error("it never looks")
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestFollow_IdleFindsDamage: looking seldom at what lies behind the head is
// not looking never: damage that only a later group proves is found, at once if
// the system says that the file changed, else within some looks.
func TestFollow_IdleFindsDamage(t *testing.T) {
	for _, told := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			c := craft(4096, 8)
			c.commit(3000)
			c.sync()
			c.name()
			s := simdisk.New()
			s.WriteFile("a", c.bytes(9000))
			dir := s.Dir()
			r, err := OpenReaderIn(Env{Dir: dir}, "a", ReaderOptions{})
			if err != nil {
				t.Fatal(err)
			}
			w := r.newWaiter()
			changed := make(chan struct{}, 1)
			w.changed, w.pause = changed, slowLook
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Hour)
			defer cancel()
			done := make(chan error, 1)
			go func() { done <- w.wait(ctx, 1) }()
			<-time.After(time.Hour + time.Second/2) // it is at rest
			c.commit(100)                           // revision 2, which the file loses
			c.sync()
			c.commit(100) // revision 3 says that 2 was durable
			f, err := dir.Open("a", disk.ReadWrite)
			if err != nil {
				t.Fatal(err)
			}
			third := c.groups[2]
			if _, err := f.WriteAt(c.b[third.start:third.end], third.start); err != nil {
				t.Fatal(err)
			}
			began, most := time.Now(), 64*slowLook
			if told {
				changed <- struct{}{}
				most = 0
			}
			if err := <-done; !errors.Is(err, ErrCorrupt) {
				t.Errorf("a follower at rest says %v of a lost commit", err)
			}
			if took := time.Since(began); took > most {
				t.Errorf("it took %v, at most %v", took, most)
			}
			if err := errors.Join(f.Close(), r.Close()); err != nil {
				t.Error(err)
			}
		})
	}
}
