package pagelog

import (
	"context"
	"testing"

	"github.com/tidemark-log/tidemark/frame"
)

// TestCopy_L39_BehindTheLastSlot: keys, and a state of the host, that the slots
// of the source do not know of yet are in a copy of it, and in what a fork
// begins with.
func TestCopy_L39_BehindTheLastSlot(t *testing.T) {
	s := newSim(t)
	l := s.create(small, Options{})
	closeLog(t, l)
	l = s.open(Options{})
	named := l.named
	var b Batch
	b.Append([]byte("one"))
	b.Key([]byte("n"), []byte("key"))
	if _, err := l.Commit(context.Background(), &b); err != nil {
		t.Fatal(err)
	}
	withoutState := s.fs.Clone()
	if err := l.Checkpoint(context.Background(), 1, []byte("state")); err != nil {
		t.Fatal(err)
	}
	withState := s.fs.Clone()
	for i, img := range []interface {
		ReadFile(string) ([]byte, error)
	}{withoutState, withState} {
		old, err := img.ReadFile(logName)
		if err != nil {
			t.Fatal(err)
		}
		// As when the slot written behind the sync was lost; one more commit
		// proves the checkpoint durable.
		v := newSim(t)
		v.put(old)
		v.now.Store(1000)
		f := mustOpenWrite(&kept{sim: v})
		h, err := readHeader(f)
		if err != nil {
			t.Fatal(err)
		}
		for j, off := range frame.SlotOffsets {
			sl := h.slots[j].Slot
			sl.Durable, sl.Check, sl.Features = frame.Place{Offset: named}, frame.Place{}, frame.Features{}
			h.geo.PutSlot(old[off:], off, &sl)
		}
		v.put(old)
		r := v.reader(ReaderOptions{})
		head, err := r.bounds()
		if err != nil || head.stop.rev != 1 {
			t.Fatal(head.stop, err)
		}
		var c checkpoints
		got, err := r.beyondSlots(r.view.header, head.stop, &c)
		if err != nil || got.Compat&frame.FeatureKeys == 0 || (c.blob.Revision == 1) != (i == 1) {
			t.Errorf("%d: features %+v, state of %d, %v", i, got, c.blob.Revision, err)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
	closeLog(t, l)
}
