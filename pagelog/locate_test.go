package pagelog

import (
	"bytes"
	"errors"
	"math"
	"sync/atomic"
	"testing"

	"github.com/tidemark-log/tidemark/frame"
	"github.com/tidemark-log/tidemark/internal/disk"
)

// AtHint reads a commit from where it lies without looking for it, and a hint
// that is wrong, whatever it is, never makes it read anything else.
func TestAtHint(t *testing.T) {
	s := newSim(t)
	l := s.create(small, Options{CheckpointEvery: 900})
	var want []string
	for i := range 40 {
		p := payload(i, i*211%3000)
		commit(t, l, p)
		want = append(want, string(p))
	}
	closeLog(t, l)
	r := s.reader(ReaderOptions{})
	var offsets []int64
	for g, err := range r.Commits(0) {
		if err != nil {
			t.Fatal(err)
		}
		offsets = append(offsets, g.Offset())
	}
	at := func(rev int, hint int64) {
		t.Helper()
		var g Group
		if err := r.AtHint(uint64(rev), hint, &g); err != nil || g.Revision != uint64(rev) || g.Offset() != offsets[rev-1] {
			t.Fatalf("revision %d, hint %d: %+v at %d, %v", rev, hint, g.Commit, g.Offset(), err)
		}
		for rec, err := range g.Records() {
			if err != nil || string(rec.Data) != want[rev-1] {
				t.Fatalf("revision %d, hint %d: %.20q, %v", rev, hint, rec.Data, err)
			}
		}
	}
	file := s.groups()
	for rev := range len(want) {
		for _, hint := range []int64{0, -8, 1, offsets[rev], offsets[rev] + 8, offsets[(rev+1)%len(want)], file[rev%len(file)].start, file[len(file)-1].end, 1 << 60, math.MaxInt64} {
			at(rev+1, hint)
		}
	}
	r = s.reader(ReaderOptions{})
	if _, err := r.Head(); err != nil {
		t.Fatal(err)
	}
	count := &countedReads{File: r.file}
	r.file = count
	var g Group
	if err := r.AtHint(20, offsets[19], &g); err != nil || count.n.Load() != 1 {
		t.Fatalf("%d reads with a hint, %v", count.n.Load(), err)
	}
	if err := r.AtHint(41, offsets[0], &g); !errors.Is(err, ErrNotFound) {
		t.Fatal(err)
	}
}

type countedReads struct {
	disk.File
	n atomic.Int64
}

func (f *countedReads) ReadAt(p []byte, off int64) (int, error) {
	f.n.Add(1)
	return f.File.ReadAt(p, off)
}

// TestLocate_L42_BadPageHeaders: whichever page headers are damaged, every
// commit is found, by number and backward.
func TestLocate_L42_BadPageHeaders(t *testing.T) {
	s := newSim(t)
	l := s.create(small, Options{CheckpointEvery: -1})
	d := dice{state: 7}
	const n = 150
	for i := range n {
		most := uint64(900)
		if i%17 == 0 {
			most = 30_000 // over several pages
		}
		commit(t, l, payload(i, int(d.next()%most)+1))
	}
	end, geo := l.head.end, l.geo
	closeLog(t, l)
	whole := s.bytes()
	for round := range 60 {
		b := bytes.Clone(whole)
		for page, share := geo.HeaderArea(), d.next()%9; page < end; page += geo.PageSize() {
			switch header := b[page : page+frame.PageHeaderSize]; {
			case d.next()%8 >= share:
			case d.next()%2 == 0:
				clear(header)
			default:
				header[d.next()%frame.PageHeaderSize] ^= 1
			}
		}
		s.put(b)
		r := s.reader(ReaderOptions{})
		var g Group
		for range 2 * n {
			rev := d.next()%n + 1
			if err := r.At(rev, &g); err != nil || g.Revision != rev {
				t.Fatalf("round %d, revision %d: %v", round, rev, err)
			}
		}
		next := uint64(n)
		for g, err := range r.Backward(0) {
			if err != nil || g.Revision != next {
				t.Fatalf("round %d, backward at revision %d: %v", round, next, err)
			}
			next--
		}
		if next != 0 {
			t.Fatalf("round %d: backward ends behind revision %d", round, next)
		}
	}
}
