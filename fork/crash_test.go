package fork_test

import (
	"bytes"
	"errors"
	"io/fs"
	"testing"

	"github.com/tidemark-log/tidemark/fork"
	"github.com/tidemark-log/tidemark/internal/simdisk"
	"github.com/tidemark-log/tidemark/pagelog"
)

var errExist = fs.ErrExist

// TestFork_Q125_CrashAtAnyStep cuts the power before every operation of a fork
// and within every sync, in every way the model knows. There is no fork or a
// whole one, the source is as it was, and forking again works.
func TestFork_Q125_CrashAtAnyStep(t *testing.T) {
	w := newWorld(t)
	l := w.create("log", pagelog.CreateOptions{PageSize: 4096})
	for i := range 5 {
		commit(t, l, i, 600)
	}
	w.must(l.Checkpoint(ctx, 4, []byte("state")))
	ends(t, l)
	w.must(w.fs.Dir().Sync())
	source, before := w.history("log"), w.bytes("log")
	dry := w.on(w.fs.Clone())
	made := dry.forked("log", "fork", 0)
	points, whole, images := 0, 0, 0
	w.fs.Before(func(op simdisk.Op) {
		points++
		stats := w.fs.EachImage(simdisk.ImageOptions{Mode: simdisk.Both, MaxBits: 7, Samples: 40, Garbage: true}, func(img *simdisk.FS) bool {
			v := w.on(img)
			if !bytes.Equal(v.bytes("log"), before) {
				t.Fatalf("the source changed\n%s", img.Log())
			}
			if v.has("fork") {
				whole++
				again := made
				again.First = v.history("fork")[made.Head].digest
				v.follows(source, "fork", again)
				f := v.open("fork")
				commit(t, f, 1, 10)
				ends(t, f)
			} else {
				v.follows(source, "fork", v.forked("log", "fork", 0))
				if names, _ := img.Dir().Names(); len(names) != 2 {
					t.Fatalf("left behind: %v\n%s", names, img.Log())
				}
			}
			return !t.Failed()
		})
		images += stats.Distinct
	})
	_, err := w.fork("log", "fork", fork.Options{})
	w.fs.Before(nil)
	w.must(err)
	if points < 12 || whole == 0 || images < 100 {
		t.Errorf("%d crash points, %d images, %d with a fork: too few to mean anything", points, images, whole)
	}
	t.Logf("%d crash points, %d images, %d with a fork", points, images, whole)
}

// TestFork_FailsAtAnyStep lets every operation fail once: nothing is left
// behind, and the source is as it was.
func TestFork_FailsAtAnyStep(t *testing.T) {
	kinds := []simdisk.Kind{
		simdisk.OpCreate, simdisk.OpWrite, simdisk.OpTruncate, simdisk.OpSync, simdisk.OpPublish, simdisk.OpSyncDir, simdisk.OpRead,
	}
	for _, kind := range kinds {
		for n := 1; ; n++ {
			w := newWorld(t)
			l := w.create("log", pagelog.CreateOptions{PageSize: 4096})
			for i := range 4 {
				commit(t, l, i, 2000)
			}
			ends(t, l)
			r, err := pagelog.OpenReaderIn(w.env(), "log", pagelog.ReaderOptions{Durable: true})
			w.must(err)
			before := w.bytes("log")
			w.fs.Inject(simdisk.Fault{Kind: kind, Nth: n, Err: errFault})
			_, err = fork.CreateIn(ctx, r, w.env(), "fork", fork.Options{})
			w.must(r.Close())
			if !bytes.Equal(w.bytes("log"), before) {
				t.Fatalf("%v %d failed: the source changed", kind, n)
			}
			if err == nil {
				if n == 1 {
					t.Fatalf("a fork does no %v", kind)
				}
				break
			}
			wants(t, err, errFault)
			if names, _ := w.fs.Dir().Names(); len(names) != 1 && kind != simdisk.OpSyncDir {
				t.Fatalf("%v %d failed and left %v", kind, n, names)
			}
			if w.has("fork") {
				w.sound("fork") // its directory was not synced, which is told
			}
		}
	}
}

var errFault = errors.New("a fault")
