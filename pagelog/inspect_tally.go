package pagelog

import (
	"cmp"
	"slices"
	"time"

	"github.com/tidemark-log/tidemark/cursor"
	"github.com/tidemark-log/tidemark/frame"
)

// What a Picture counts of a whole log, in bounded memory whatever its size.

// Bounds of a Tally.
const (
	tallyKinds = 64  // record kinds told apart
	tallyLine  = 240 // stretches of the timeline at most; half as many at least, once it is full
	tallyMarks = 256 // places of one kind that are kept
)

// Tally is what the groups of a log hold.
type Tally struct {
	Kinds    []KindTally // by kind; the last one may stand for all that are not told apart
	Timeline []Stretch   // the commits in the order of the file
	Places   []PlacePart // checkpoints, floors and fork records, in the order of the file
	Skipped  uint64      // places beyond those kept, evenly among them
	Keys     uint64      // index keys
}

// KindTally counts the records of one kind.
type KindTally struct {
	Kind       uint32 `json:"kind"`
	Other      bool   `json:"other"` // all kinds that are not told apart
	Records    uint64 `json:"records"`
	Compressed uint64 `json:"compressed"` // records among them
	Stored     int64  `json:"stored"`     // bytes of payload as stored
	Raw        int64  `json:"raw"`        // bytes of payload once decoded
}

// Stretch is a run of commits.
type Stretch struct {
	First, Last uint64 // revisions
	From, To    int64  // byte offsets
	Begin, End  time.Time
	Commits     uint64
	Records     uint64
	Largest     int64  // bytes of the largest commit
	Epoch       uint64 // of the last one
	Writers     uint64 // epochs that begin in it
}

// PlacePart is a group that is worth a mark on the map.
type PlacePart struct {
	Kind     string // checkpoint, floor or fork
	Offset   int64
	Revision uint64
}

// ForkPart is an ancestor of the log: what lies before End was its.
type ForkPart struct {
	Log      cursor.LogID
	End      int64
	Revision uint64
	Digest   cursor.Digest
}

// tallier counts while the verifier walks.
type tallier struct {
	Tally
	kinds map[uint32]int
	width uint64 // commits of a stretch
	every map[string]uint64
	seen  map[string]uint64
}

func (t *tallier) visit(p *passed) {
	kind := kindOf(p)
	if !p.Derived() {
		t.line(p)
	}
	fork := false
	for r := range frame.Records(p.body) {
		t.record(&r)
		fork = fork || r.Kind == frame.KindFork && !p.Derived()
	}
	switch {
	case fork:
		t.place("fork", p)
	case kind == kindCheckpoint || kind == kindFloor:
		t.place(kind, p)
	}
}

// record counts one record.
func (t *tallier) record(r *frame.Record) {
	if t.kinds == nil {
		t.kinds = map[uint32]int{}
	}
	i, ok := t.kinds[r.Kind]
	switch {
	case ok:
	case len(t.Kinds) < tallyKinds:
		i = len(t.Kinds)
		t.kinds[r.Kind] = i
		t.Kinds = append(t.Kinds, KindTally{Kind: r.Kind})
	default:
		if i = tallyKinds; len(t.Kinds) == i {
			t.Kinds = append(t.Kinds, KindTally{Other: true})
		}
	}
	k := &t.Kinds[i]
	k.Records++
	k.Stored += int64(len(r.Data))
	if r.Codec() == frame.Plain {
		k.Raw += int64(len(r.Data))
	} else {
		k.Compressed++
		k.Raw += int64(r.Raw)
	}
	if r.Kind == frame.KindIndexKey {
		t.Keys++
	}
}

// line puts a commit on the timeline. When it is full, each two stretches
// become one.
func (t *tallier) line(p *passed) {
	n := len(t.Timeline)
	t.width = max(t.width, 1)
	if n == tallyLine && t.Timeline[n-1].Commits >= t.width {
		t.width *= 2
		for i := range n / 2 {
			t.Timeline[i] = t.Timeline[2*i].join(&t.Timeline[2*i+1])
		}
		n /= 2
		t.Timeline = t.Timeline[:n]
	}
	when := time.Unix(0, p.Time)
	if n == 0 || t.Timeline[n-1].Commits >= t.width {
		before := uint64(0)
		if n > 0 {
			before = t.Timeline[n-1].Epoch
		}
		t.Timeline = append(t.Timeline, Stretch{First: p.Revision, From: p.start, Begin: when, End: when, Epoch: before})
	}
	s := &t.Timeline[len(t.Timeline)-1]
	if p.Epoch != s.Epoch {
		s.Writers++
	}
	s.Last, s.To, s.Epoch = p.Revision, p.end, p.Epoch
	s.Commits++
	s.Records += uint64(p.Count)
	s.Largest = max(s.Largest, p.end-p.start)
	if when.Before(s.Begin) {
		s.Begin = when
	}
	if when.After(s.End) {
		s.End = when
	}
}

func (s *Stretch) join(b *Stretch) Stretch {
	j := *s
	j.Last, j.To, j.Epoch = b.Last, b.To, b.Epoch
	j.Commits += b.Commits
	j.Records += b.Records
	j.Writers += b.Writers
	j.Largest = max(j.Largest, b.Largest)
	if b.Begin.Before(j.Begin) {
		j.Begin = b.Begin
	}
	if b.End.After(j.End) {
		j.End = b.End
	}
	return j
}

// place keeps a place. When there are too many of a kind, every other one is
// dropped, and from then on every other one is kept.
func (t *tallier) place(kind string, p *passed) {
	if t.every == nil {
		t.every, t.seen = map[string]uint64{}, map[string]uint64{}
	}
	every := max(t.every[kind], 1)
	t.seen[kind]++
	if (t.seen[kind]-1)%every != 0 {
		t.Skipped++
		return
	}
	t.Places = append(t.Places, PlacePart{kind, p.start, p.Revision})
	if kept := (t.seen[kind]-1)/every + 1; kept >= tallyMarks {
		t.every[kind] = 2 * every
		odd := false
		t.Places = slices.DeleteFunc(t.Places, func(q PlacePart) bool {
			if q.Kind != kind {
				return false
			}
			drop := odd
			odd = !odd
			if drop {
				t.Skipped++
			}
			return drop
		})
	}
}

func (t *tallier) finish() Tally {
	n := len(t.Kinds)
	if n > 0 && t.Kinds[n-1].Other {
		n--
	}
	slices.SortFunc(t.Kinds[:n], func(a, b KindTally) int { return cmp.Compare(a.Kind, b.Kind) })
	return t.Tally
}
