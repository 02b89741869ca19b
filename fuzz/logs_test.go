package fuzz

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/tidemark-log/tidemark/checkpoint"
	"github.com/tidemark-log/tidemark/frame"
	"github.com/tidemark-log/tidemark/internal/simdisk"
	"github.com/tidemark-log/tidemark/pagelog"
)

const logName = "log"

// commit is a commit that some log really holds.
type commit struct {
	revision uint64
	digest   uint64
	records  string // what was committed
}

// keyPlace is a record that a key leads to.
type keyPlace struct {
	revision uint64
	record   uint32
}

// spot is a structure of a log: what edits aim at.
type spot struct {
	from, off, end int64  // raw end of the group before, own start, own raw end
	last           uint64 // revision of the last commit before it
	group          frame.GroupHeader
}

// original is a log as the engine wrote it, with what is known of it.
type original struct {
	name    string
	b       []byte
	id      frame.Identity
	geo     *frame.Geometry
	groups  []spot  // in order
	pages   []int64 // offsets of page headers
	commits []commit
	keys    map[string][]keyPlace // newest last
	floor   int64                 // the durable end that slots and headers prove
}

// world is a place for one log, the same in every run.
type world struct {
	fs   *simdisk.FS
	rand dice
	now  int64
}

// newWorld is a world in which the log is b.
func newWorld(b []byte) *world {
	w := &world{fs: simdisk.New(), rand: 99}
	w.fs.WriteFile(logName, b)
	return w
}

func (w *world) env() pagelog.Env {
	return pagelog.Env{Dir: w.fs.Dir(), Random: &w.rand, Now: func() int64 { w.now++; return w.now }, Idle: -1}
}

// dice is a source of bytes that gives the same ones in every run.
type dice uint64

// Read implements io.Reader.
func (d *dice) Read(p []byte) (int, error) {
	for i := range p {
		*d = *d*6364136223846793005 + 1442695040888963407
		p[i] = byte(*d >> 56)
	}
	return len(p), nil
}

// script is how a log is written: words of the same kind as the crash
// simulator's.
type script struct {
	name   string
	create pagelog.CreateOptions
	opts   pagelog.Options
	words  []string
}

// scripts are logs of every shape: one page with many groups, one group over
// many pages, ends at the edges of sectors and pages, with checkpoints and
// without, with ends that were never synced, of several lives, and two that
// went different ways from one beginning.
var scripts = []script{
	{"small", pagelog.CreateOptions{PageSize: 4096}, pagelog.Options{CheckpointEvery: -1}, []string{"c10", "c1", "c200", "c0", "c376", "c30", "c64", "close"}},
	{"pages", pagelog.CreateOptions{PageSize: 4096}, pagelog.Options{CheckpointEvery: -1}, []string{"c100", "c5000", "c3960", "c20", "close"}},
	{"checkpoints", pagelog.CreateOptions{PageSize: 4096}, pagelog.Options{CheckpointEvery: 300}, []string{"c100", "c250", "blob", "c20", "c400", "c9", "close"}},
	{"unsynced", pagelog.CreateOptions{PageSize: 4096}, pagelog.Options{CheckpointEvery: -1}, []string{"c100", "c50", "k90", "k2000", "k2500", "kill"}},
	{"lives", pagelog.CreateOptions{PageSize: 4096, Align: 512}, pagelog.Options{CheckpointEvery: 600}, []string{"c100", "kill", "open", "c300", "k30", "kill", "open", "c5", "blob", "kill", "open", "c7", "close"}},
	{"one way", pagelog.CreateOptions{PageSize: 4096}, pagelog.Options{CheckpointEvery: -1}, []string{"c100", "c50", "kill", "open", "c33", "c44", "close"}},
	{"another way", pagelog.CreateOptions{PageSize: 4096}, pagelog.Options{CheckpointEvery: -1}, []string{"c100", "c50", "close", "open", "close", "open", "x33", "x44", "k90", "kill"}},
	{"empty", pagelog.CreateOptions{PageSize: 4096}, pagelog.Options{}, []string{"close"}},
	{"keys", pagelog.CreateOptions{PageSize: 4096}, pagelog.Options{CheckpointEvery: -1}, []string{"y30", "blob", "c20", "y9", "blob", "y150", "reindex", "y5", "kill", "open", "y3", "blob", "y2", "close"}},
}

// choose returns the original that a byte stands for. Programs that found
// something are kept, and must go on to mean the same: the log of keys came
// later, and has half the bytes of the empty one.
func choose(b byte) *original {
	if b%16 == 15 {
		return originals()[8]
	}
	return originals()[b%8]
}

// originals are made once.
var originals = sync.OnceValue(func() []*original {
	var list []*original
	for _, s := range scripts {
		list = append(list, s.run())
	}
	return list
})

// written holds every commit of every original: nothing else may ever be read.
var written = sync.OnceValue(func() map[commit]bool {
	all := map[commit]bool{}
	for _, o := range originals() {
		for _, c := range o.commits {
			all[c] = true
		}
	}
	return all
})

// must is for what cannot fail in a simulated world.
func must(err error) {
	if err != nil {
		panic(fmt.Sprintf("while writing an original: %v", err))
	}
}

func (s *script) run() *original {
	w := &world{fs: simdisk.New(), rand: 1} // the same beginning: the same log ID and salt
	l, err := pagelog.CreateIn(w.env(), logName, s.create, s.opts)
	must(err)
	n := 0
	for _, word := range s.words {
		switch word {
		case "close":
			must(l.Close())
		case "kill":
			w.fs.Kill()
		case "open":
			l, err = pagelog.OpenIn(w.env(), logName, s.opts)
			must(err)
		case "reindex":
			must(l.Reindex(context.Background()))
		case "blob":
			must(l.Checkpoint(context.Background(), l.Head().Revision, []byte("state of the host")))
		default:
			n++
			var size int
			_, err := fmt.Sscanf(word[1:], "%d", &size)
			must(err)
			b := &pagelog.Batch{CompleteOnly: word[0] == 'k'}
			for i := range size {
				if word[0] != 'y' {
					break
				}
				b.Append([]byte{byte(n), byte(i)})
				b.Key([]byte("keys"), fmt.Append(nil, i)) // used again and again
			}
			data := bytes.Repeat([]byte{byte(n), word[0], 'T', 'I', 'D', 'E'}, size/6+1)[:size]
			b.Append(data)
			b.Append([]byte("and more"))
			_, err = l.Commit(context.Background(), b)
			must(err)
		}
	}
	b, err := w.fs.ReadFile(logName)
	must(err)
	return describe(s.name, b)
}

// describe finds out what is in a sound log, with the codecs alone.
func describe(name string, b []byte) *original {
	id, err := frame.DecodeIdentity(b)
	must(err)
	o := &original{name: name, b: b, id: id, geo: id.Geometry(), keys: map[string][]keyPlace{}}
	o.floor = o.slotFloor(b)
	end, last := o.geo.HeaderArea(), uint64(0)
	for {
		start := o.geo.Start(end)
		if start+frame.GroupHeaderSize > int64(len(b)) {
			break
		}
		h, err := o.geo.DecodeGroup(b[start:], start)
		if err != nil {
			break
		}
		from := end
		end = o.geo.End(start, h.Body)
		body, _ := o.geo.Gather(bytes.Clone(b[start:end]), &h, start)
		must(h.Check(body))
		o.groups = append(o.groups, spot{from, start, end, last, h})
		last = h.Revision
		o.floor = max(o.floor, h.DurableEnd)
		if !h.Derived() {
			var text strings.Builder
			for r := range frame.Records(body) {
				text.WriteString(string(r.Data) + "|")
				if k, err := checkpoint.DecodeKey(r.Data); err == nil && r.Kind == checkpoint.KindKey {
					o.keys[string(k.Key)] = append(o.keys[string(k.Key)], keyPlace{h.Revision, k.Record})
				}
			}
			o.commits = append(o.commits, commit{h.Revision, h.Digest, text.String()})
		}
	}
	for page := o.geo.HeaderArea(); page < end; page += o.geo.PageSize() {
		o.pages = append(o.pages, page)
	}
	return o
}

// slotFloor returns the durable end that the slots in b prove.
func (o *original) slotFloor(b []byte) int64 {
	floor := o.geo.HeaderArea()
	for _, off := range frame.SlotOffsets {
		if int64(len(b)) < off {
			continue
		}
		if s, err := o.geo.DecodeSlot(b[off:], off); err == nil {
			floor = max(floor, s.Durable.Offset)
		}
	}
	return floor
}

// floorOf returns the durable end that b still proves, as far as slots and the
// headers of the original's own groups go: an opened log is never shorter.
func (o *original) floorOf(b []byte) int64 {
	floor := o.slotFloor(b)
	for _, g := range o.groups {
		if g.off+frame.GroupHeaderSize > int64(len(b)) {
			break
		}
		if h, err := o.geo.DecodeGroup(b[g.off:], g.off); err == nil {
			floor = max(floor, h.DurableEnd)
		}
	}
	return floor
}

func TestOriginals(t *testing.T) {
	shapes := map[string]int{}
	for _, o := range originals() {
		shapes[o.name] = len(o.groups)
		if len(o.commits) == 0 && o.name != "empty" {
			t.Errorf("%s holds no commit", o.name)
		}
		if o.id.LogID != originals()[0].id.LogID {
			t.Errorf("%s is of another log: nothing could be spliced", o.name)
		}
	}
	t.Log(shapes)
}
