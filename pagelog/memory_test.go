package pagelog

import (
	"runtime"
	"testing"
	"weak"
)

// A log keeps nothing of what is settled: a host's large batch is its own again.
func TestCommit_KeepsNothingOfSettledTickets(t *testing.T) {
	s := newSim(t)
	l := s.create(small, Options{})
	var kept []weak.Pointer[Ticket]
	for _, laterToo := range []bool{false, true} {
		var tickets []*Ticket
		for range 5 { // in line together, so that one write takes them
			b := batchOf(payload(1, 100))
			b.CompleteOnly = laterToo
			ticket := l.ticket(b, nil)
			if err := l.enqueue(ctx0, ticket); err != nil {
				t.Fatal(err)
			}
			tickets = append(tickets, ticket)
			kept = append(kept, weak.Make(ticket))
		}
		for _, ticket := range tickets {
			if _, err := ticket.Wait(ctx0); err != nil {
				t.Fatal(err)
			}
		}
	}
	runtime.GC()
	for i, p := range kept {
		if p.Value() != nil {
			t.Errorf("ticket %d is settled and its log holds it", i)
		}
	}
	closeLog(t, l)
}

// The buffer of one huge commit is not kept for all that follow.
func TestCommit_GivesLargeBuffersBack(t *testing.T) {
	s := newSim(t)
	l := s.create(small, Options{})
	commit(t, l, payload(1, 3*maxWrite))
	if n := cap(l.builder.Bytes()); n > 2*maxWrite {
		t.Errorf("%d bytes are kept after a commit of %d", n, 3*maxWrite)
	}
	commit(t, l, payload(1, maxWrite))
	before := cap(l.builder.Bytes())
	commit(t, l, payload(1, maxWrite))
	if n := cap(l.builder.Bytes()); n < before || n == 0 {
		t.Errorf("a buffer of %d bytes is not used again, there are %d", before, n)
	}
	closeLog(t, l)
}
