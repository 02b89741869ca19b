package pagelog

import (
	"fmt"
	"testing"
)

// A group right behind a page header does not lie on the alignment. Whatever
// begins in the middle of the file, by revision, backwards, at a slot, must
// find it all the same.
func TestL46_AlignedLogReadsFromTheMiddle(t *testing.T) {
	for _, align := range []int{8, 512, 4096} {
		t.Run(fmt.Sprint(align), func(t *testing.T) {
			s := newSim(t)
			l := s.create(CreateOptions{PageSize: 4096, Align: align}, Options{})
			live := s.reader(ReaderOptions{})
			durable := s.reader(ReaderOptions{Durable: true})
			var want []string
			for i := range 40 {
				p := payload(i, 1+i*97%5000)
				commit(t, l, p)
				want = append(want, string(p)+"|")
			}
			complete(t, l, payload(99, 10))
			if h, err := durable.Head(); err != nil || h.Revision != 39 && h.Revision != 40 {
				t.Fatalf("durable reader: head %+v, %v", h, err)
			}
			if _, err := live.Head(); err != nil {
				t.Fatal(err)
			}
			closeLog(t, l)
			closeLog(t, s.open(Options{})) // the reader proves its last commit again
			for _, r := range []*Reader{live, durable, s.reader(ReaderOptions{})} {
				readEveryWay(t, r, want)
			}
		})
	}
}

// readEveryWay reads the first commits of a log forward from every revision,
// backward, and one by one.
func readEveryWay(t *testing.T, r *Reader, want []string) {
	t.Helper()
	for after := range len(want) {
		got, err := contents(r, uint64(after))
		if err != nil || len(got) < len(want)-after || got[0] != want[after] {
			t.Fatalf("after %d: %d commits, %v", after, len(got), err)
		}
		var g Group
		if err := r.At(uint64(after+1), &g); err != nil || string(g.body[24:24+len(want[after])-1])+"|" != want[after] {
			t.Fatalf("At(%d): %v", after+1, err)
		}
		if d, err := r.DigestAt(uint64(after + 1)); err != nil || d != g.Digest {
			t.Fatalf("DigestAt(%d): %v, %v", after+1, d, err)
		}
	}
	rev := uint64(len(want))
	for g, err := range r.Backward(rev) {
		if err != nil || g.Revision != rev {
			t.Fatalf("backward at %d: %+v, %v", rev, g, err)
		}
		rev--
	}
	if rev != 0 {
		t.Fatalf("backward ended before revision %d", rev)
	}
}
