// Package logtest lets a host crash-test its own use of a log: a disk in memory
// that loses power, fails to sync and runs full whenever a test says so.
//
// A [World] is one directory on such a disk. The host's code runs in it on a
// real [pagelog.Log], opened with [World.Open] instead of [pagelog.Open]. Then
// the test takes the power away and looks at what is left:
//
//   - [World.Kill] ends the process and keeps the disk, as kill -9 does.
//   - [World.PowerCut] goes on with one of the disks that a power cut may
//     leave, chosen by the world's seed.
//   - [World.EachCut] shows every one of them, or, where there are too many, the
//     ones that find most.
//   - [World.Watch] does that at every step the host takes: before each
//     operation on the disk, and in the middle of each sync.
//
// What to check of a disk is the host's business: that what it told others, and
// only then, is there; that it can go on. That the log itself opens and holds a
// prefix of what was committed, and all that was acknowledged, is the engine's
// promise and needs no test here.
//
// What may be lost, and how, are the rules of the engine's own crash tests: of
// the sectors that no sync covered any subset may be there, each in any version
// that was written; names, sizes and data are lost independently; a failed sync
// may have kept any part. Nothing depends on the clock: the same seed and the
// same calls give the same disks, as long as one goroutine at a time commits.
package logtest

import (
	"math/rand/v2"

	"github.com/tidemark-log/tidemark/internal/simdisk"
	"github.com/tidemark-log/tidemark/pagelog"
)

// World is a directory on a simulated disk, and the process that uses it. Its
// methods may be called between the host's calls, and from the function given
// to Watch; the logs in it may be used as always.
type World struct {
	fs   *simdisk.FS
	rng  *rand.Rand
	rand *rand.ChaCha8
	now  int64
}

// New returns an empty world. The seed decides log IDs and which disk PowerCut
// goes on with.
func New(seed uint64) *World {
	w := around(simdisk.New(), seed)
	w.fs.Capacity = unlimited
	return w
}

const unlimited = 1 << 40 // bytes of a disk that is not full

func around(fs *simdisk.FS, seed uint64) *World {
	var key [32]byte
	for i := range 8 {
		key[i] = byte(seed >> (8 * i))
	}
	return &World{fs: fs, rng: rand.New(rand.NewPCG(seed, 1)), rand: rand.NewChaCha8(key)}
}

// Env is the world as pagelog's functions take it, for those that have no
// method here. Slots are not written in idle times: there is no clock.
func (w *World) Env() pagelog.Env {
	return pagelog.Env{Dir: w.fs.Dir(), Random: w.rand, Now: w.tick, Idle: -1}
}

func (w *World) tick() int64 { w.now++; return w.now }

// Create is pagelog.Create in this world. A name is one name, without a path.
func (w *World) Create(name string, c pagelog.CreateOptions, o pagelog.Options) (*pagelog.Log, error) {
	return pagelog.CreateIn(w.Env(), name, c, o)
}

// Open is pagelog.Open in this world.
func (w *World) Open(name string, o pagelog.Options) (*pagelog.Log, error) {
	return pagelog.OpenIn(w.Env(), name, o)
}

// OpenReader is pagelog.OpenReader in this world.
func (w *World) OpenReader(name string, o pagelog.ReaderOptions) (*pagelog.Reader, error) {
	return pagelog.OpenReaderIn(w.Env(), name, o)
}

// Kill ends the process: every log and reader open in the world is dead, and
// its locks are free. The disk goes on, page cache and all.
func (w *World) Kill() { w.fs.Kill() }

// PowerCut takes the power away. Every log and reader open in the world is
// dead, and the world goes on with one of the disks that are possible.
func (w *World) PowerCut() {
	w.fs.Before(nil)
	w.fs.Kill()
	img := w.fs.RandomImage(w.images(), w.rng).Clone()
	img.Capacity = w.fs.Capacity
	w.fs = img
}

// images says which disks a power cut may leave. A disk that makes garbage of
// a sector in flight is the engine's concern, not the host's.
func (w *World) images() simdisk.ImageOptions {
	return simdisk.ImageOptions{Mode: simdisk.Both, MaxBits: 8, Samples: 40, Seed: w.rng.Uint64()}
}

// EachCut calls check with every disk that a power cut now may leave: all of
// them if there are up to 256, else a choice. Each is a world of its own, valid
// until check returns. This world does not change. It returns how many there
// were.
func (w *World) EachCut(check func(after *World)) int {
	seed := w.rng.Uint64()
	stats := w.fs.EachImage(w.images(), func(img *simdisk.FS) bool {
		img.Capacity = 0
		check(around(img, seed))
		return true
	})
	return stats.Distinct
}

// Watch calls check, as EachCut does, before every operation on the disk from
// now on, and in the middle of every sync; nil ends that. check may run in any
// goroutine that uses a log of this world, while that goroutine holds a part of
// the log's work: it must not wait for this world's logs.
func (w *World) Watch(check func(after *World)) {
	if check == nil {
		w.fs.Before(nil)
		return
	}
	w.fs.Before(func(simdisk.Op) { w.EachCut(check) })
}

// FailSync makes the nth sync of a file from now on fail, counted from 1. As on
// a real disk, what it should have covered is then visible, and may or may not
// be there after a power cut.
func (w *World) FailSync(n int) { w.fs.Inject(simdisk.Fault{Kind: simdisk.OpSync, Nth: n}) }

// FailWrite makes the nth write from now on fail after some bytes, counted from
// 1.
func (w *World) FailWrite(n, bytes int) {
	w.fs.Inject(simdisk.Fault{Kind: simdisk.OpWrite, Nth: n, Part: bytes})
}

// FillDisk leaves no room for anything more; MakeRoom gives it back.
func (w *World) FillDisk() { w.fs.Capacity = disk512(w.size()) }

// MakeRoom ends what FillDisk began.
func (w *World) MakeRoom() { w.fs.Capacity = unlimited }

// disk512 is the smallest capacity that a FS takes for one: 0 means no limit.
func disk512(n int64) int64 { return max(n, simdisk.SectorSize) }

// size is how many bytes the files of the world take, in whole sectors.
func (w *World) size() int64 {
	names, err := w.fs.Dir().Names()
	if err != nil {
		panic("internal error: " + err.Error())
	}
	n := int64(0)
	for _, name := range names {
		n += int64(len(w.Bytes(name))+simdisk.SectorSize-1) / simdisk.SectorSize * simdisk.SectorSize
	}
	return n
}

// Bytes returns a file as the running system sees it, or nil if there is none.
func (w *World) Bytes(name string) []byte {
	b, err := w.fs.ReadFile(name)
	if err != nil {
		return nil
	}
	return b
}

// Put makes b the content of a file, at once and durably, as restoring a copy
// does; also to damage one. Logs that are open on it go on as they may.
func (w *World) Put(name string, b []byte) { w.fs.WriteFile(name, b) }

// History prints every operation on the disk so far, one a line, and for a
// disk that a power cut left what of them is on it: for messages.
func (w *World) History() string { return w.fs.Log() }
