package pagelog

import (
	"errors"
	"io/fs"
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

// L29, L16: every operation of a creation fails once: no half of a log is left
// under its name, and creating it again works, or finds it whole.
func TestL29_CreationFailsAnywhere(t *testing.T) {
	for kind := simdisk.OpCreate; kind <= simdisk.OpSyncDir; kind++ {
		for nth := 1; nth <= 4; nth++ {
			s := newSim(t)
			s.fs.Inject(simdisk.Fault{Kind: kind, Nth: nth, Part: 100})
			_, err := CreateIn(s.env(), logName, small, Options{})
			if err == nil {
				break // it makes fewer of these
			}
			if !errors.Is(err, simdisk.ErrIO) {
				t.Fatalf("%v %d failed: %v", kind, nth, err)
			}
			s.fs = s.fs.Clone()
			l, err := CreateIn(s.env(), logName, small, Options{})
			if errors.Is(err, fs.ErrExist) {
				l, err = OpenIn(s.env(), logName, Options{})
			}
			if err != nil {
				t.Fatalf("%v %d failed, and then: %v", kind, nth, err)
			}
			commit(t, l, []byte("x"))
			if names, err := s.fs.Dir().Names(); err != nil || len(names) != 1 {
				t.Fatalf("%v %d failed, left over: %q, %v", kind, nth, names, err)
			}
		}
	}
}

// C10: what the head says can be read, after recovery from every torn end.
func TestC10_EveryRevisionUpToTheHeadReads(t *testing.T) {
	s := unacknowledged(t, 300, 2000, 30)
	whole := s.bytes()
	list := s.groups()
	for cut := list[len(sizes)].end; cut <= list[len(list)-1].end; cut += 8 {
		s.put(whole[:cut])
		l := s.open(Options{})
		var g Group
		for rev := range l.Head().Revision {
			if err := l.At(rev+1, &g); err != nil {
				t.Fatalf("cut at %d, head %d, revision %d: %v", cut, l.Head().Revision, rev+1, err)
			}
		}
		closeLog(t, l)
	}
}
