package pagelog

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/tidemark-log/tidemark/internal/simdisk"
)

// keyedCrash is a workload with keys on a simulated disk whose power may go at
// any time.
type keyedCrash struct {
	t      *testing.T
	sim    *sim
	per    int
	acked  int // keys acknowledged
	handed int
	images int
}

// look opens the log that a power cut left and asks it for keys.
func (c *keyedCrash) look(img *simdisk.FS) {
	c.t.Helper()
	c.images++
	env := Env{Dir: img.Dir(), Random: &dice{state: 7}, Now: func() int64 { return 1 }, Idle: -1}
	l, err := OpenIn(env, logName, Options{})
	if err != nil {
		c.t.Fatal(err)
	}
	defer l.Close()
	c.ask(l.Reader)
	if c.images%8 == 0 { // and go on with it
		have := int(l.Head().Revision) * c.per
		fillKeys(c.t, l, have, 12*c.per, c.per)
		for i := 0; i < have+12*c.per; i += c.per / 2 {
			if rev, _, err := l.Lookup([]byte("ns"), fmt.Appendf(nil, "k%d", i)); err != nil || rev != uint64(i/c.per+1) {
				c.t.Fatalf("going on, key %d: %d, %v", i, rev, err)
			}
		}
		if l.indexer.broken != nil {
			c.t.Fatal(l.indexer.broken)
		}
	}
}

// ask looks up some keys of every commit: each that the log has is found, each
// that it has not is absent.
func (c *keyedCrash) ask(r *Reader) {
	c.t.Helper()
	head, err := r.Head()
	if err != nil {
		c.t.Fatal(err)
	}
	have := int(head.Revision) * c.per
	if have < c.acked || have > c.handed {
		c.t.Fatalf("%d keys are there, %d were acknowledged", have, c.acked)
	}
	for i := 0; i < c.handed+c.per; i += 1 + c.per/3 {
		rev, _, err := r.Lookup([]byte("ns"), fmt.Appendf(nil, "k%d", i))
		if i < have && (err != nil || rev != uint64(i/c.per+1)) || i >= have && !errors.Is(err, ErrNoKey) {
			c.t.Fatalf("key %d of %d: revision %d, %v", i, have, rev, err)
		}
	}
}

// TestIndex_Crash_D9 covers D9: the power goes before every operation of a
// workload in which runs are written, merged and rebuilt; whatever of it
// reached the disk, every key of the recovered commits is found, and no other.
func TestIndex_Crash_D9(t *testing.T) {
	c := &keyedCrash{t: t, sim: newSim(t), per: 900}
	l, err := CreateIn(c.sim.env(), logName, small, Options{})
	if err != nil {
		t.Fatal(err)
	}
	samples := 3
	if testing.Short() {
		samples = -1
	}
	point := 0
	c.sim.fs.Before(func(op simdisk.Op) {
		if point++; testing.Short() && point%4 != 0 {
			return
		}
		n := 0
		c.sim.fs.EachImage(simdisk.ImageOptions{MaxBits: 1, Samples: samples, Seed: uint64(point)}, func(img *simdisk.FS) bool {
			c.look(img)
			n++
			return n < 4
		})
	})
	for i := range 16 {
		var b Batch
		for range c.per {
			b.Append([]byte("v"))
			b.Key([]byte("ns"), fmt.Appendf(nil, "k%d", c.handed))
			c.handed++
		}
		if _, err := l.Commit(context.Background(), &b); err != nil {
			t.Fatal(err)
		}
		c.acked = c.handed
		if i == 12 {
			if err := l.Reindex(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
	}
	c.ask(l.Reader)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if n, _ := l.index.lv.merges(); n == 0 && len(l.index.lv.all[1].incoming) == 0 && l.index.lv.all[1].main == nil {
		t.Fatal("nothing was merged")
	}
	t.Logf("%d crash points, %d images, %+v", point, c.images, l.IndexStats())
}
