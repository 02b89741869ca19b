package pagelog

import (
	"testing"

	"github.com/tidemark-log/tidemark/internal/simdisk"
)

// A torn group's own header is the only thing that proves how far the sync
// before it got, and what it proves lies in the middle of what the walk kept
// for writing again.
func TestL24_TornHeaderRaisesProvenEndIntoTheKeptTail(t *testing.T) {
	s := newSim(t)
	l := s.create(small, Options{})
	s.fs.Before(func(op simdisk.Op) {
		if op.Kind == simdisk.OpSync && op.Inside {
			s.fs.Before(nil)
			complete(t, l, payload(2, 60)) // knows nothing of the running sync
		}
	})
	commit(t, l, payload(1, 20))
	end := l.head.end
	complete(t, l, payload(3, 376)) // its header says that commit 1 is durable
	proven := l.durable.end
	s.flip(end+200, 1)

	l = s.open(Options{})
	if r := l.Report(); r.Head != 2 || r.ProvenEnd != proven || r.End != end || r.Rewritten != end-proven || r.Torn == 0 {
		t.Fatalf("report %+v, want head 2, proven end %d, end %d", r, proven, end)
	}
	if got, err := contents(l.Reader, 0); err != nil || len(got) != 2 {
		t.Fatal(got, err)
	}
	closeLog(t, l)
	closeLog(t, s.open(Options{}))
}
