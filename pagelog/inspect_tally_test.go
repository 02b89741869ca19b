package pagelog

import (
	"context"
	"fmt"
	"testing"

	"github.com/tidemark-log/tidemark/frame"
)

// TestInspect_L53_Tally holds what is counted against what was written: every
// commit is in the timeline once, in order, whatever their number, and so is
// every record in its kind.
func TestInspect_L53_Tally(t *testing.T) {
	for _, n := range []int{1, tallyLine - 1, tallyLine, tallyLine + 1, 5*tallyLine + 7} {
		s := newSim(t)
		l := s.create(small, Options{})
		raw := int64(0)
		for i := range n {
			var b Batch
			b.CompleteOnly = i%50 != 0
			data := fmt.Appendf(nil, "%0*d", 10+i%100, i)
			b.Add(Record{Kind: uint32(i % 80), Data: data, Codec: frame.S2})
			b.Key([]byte("n"), fmt.Append(nil, i))
			raw += int64(len(data))
			if _, err := l.Commit(context.Background(), &b); err != nil {
				t.Fatal(err)
			}
			if i%3 == 0 {
				if err := l.Checkpoint(context.Background(), 0, nil); err != nil {
					t.Fatal(err)
				}
			}
		}
		closeLog(t, l)
		p, err := InspectIn(context.Background(), s.env(), logName, InspectOptions{})
		if err != nil {
			t.Fatal(err)
		}
		at := uint64(0)
		for _, x := range p.Tally.Timeline {
			if x.First != at+1 || x.Last < x.First || x.Commits != x.Last-x.First+1 || x.Records != 2*x.Commits || x.Begin.After(x.End) {
				t.Fatalf("%d commits: stretch %+v behind revision %d", n, x, at)
			}
			at = x.Last
		}
		if at != uint64(n) || len(p.Tally.Timeline) > tallyLine {
			t.Fatalf("%d commits: the timeline has %d, in %d stretches", n, at, len(p.Tally.Timeline))
		}
		host, got := uint64(0), int64(0)
		for _, k := range p.Tally.Kinds {
			if k.Kind < frame.FirstReservedKind && !k.Other {
				host, got = host+k.Records, got+k.Raw
			}
		}
		if n < 60 && (host != uint64(n) || got != raw) || len(p.Tally.Kinds) > tallyKinds+1 || p.Tally.Keys != uint64(n) {
			t.Errorf("%d commits: %d records, %d bytes, %d keys", n, host, got, p.Tally.Keys)
		}
		if len(p.Tally.Places) > tallyMarks || uint64(len(p.Tally.Places))+p.Tally.Skipped != p.Checkpoints {
			t.Errorf("%d commits: %d places and %d skipped of %d checkpoints", n, len(p.Tally.Places), p.Tally.Skipped, p.Checkpoints)
		}
		for i, x := range p.Tally.Places {
			if i > 0 && x.Offset <= p.Tally.Places[i-1].Offset {
				t.Fatalf("places out of order: %+v", p.Tally.Places)
			}
		}
	}
}
