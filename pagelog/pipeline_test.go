package pagelog

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidemark-log/tidemark/internal/simdisk"
)

// atOp calls do once, at the next operation of a kind on the disk.
func (s *sim) atOp(kind simdisk.Kind, do func()) {
	s.fs.Before(func(op simdisk.Op) {
		if op.Kind == kind {
			s.fs.Before(nil)
			do()
		}
	})
}

// hold stops the next operation of a kind until release is called; reached is
// closed when it got there.
func (s *sim) hold(kind simdisk.Kind) (reached <-chan struct{}, release func()) {
	at, free := make(chan struct{}), make(chan struct{})
	s.atOp(kind, func() {
		close(at)
		<-free
	})
	return at, sync.OnceFunc(func() { close(free) })
}

var ctx0 = context.Background()

func TestBatch_ResetWhileInFlightLeavesTheCommitAlone(t *testing.T) {
	s := newSim(t)
	l := s.create(small, Options{})
	reached, release := s.hold(simdisk.OpSync)
	first := l.Submit(batchOf([]byte("first"))) // holds the sync
	<-reached
	b := batchOf([]byte("second"), []byte("and more of it"))
	second := l.Submit(b) // waits in the queue
	b.Reset()             // as the error of an early commit advises
	b.Append([]byte("third"))
	third := l.Submit(b)
	b.Reset()
	b.CompleteOnly = true
	b.Append([]byte("XXXXXX"))
	release()
	for i, ticket := range []*Ticket{first, second, third} {
		if c, err := ticket.Wait(ctx0); err != nil || c.Revision != uint64(i+1) || !c.Durable {
			t.Fatalf("ticket %d: %+v, %v", i, c, err)
		}
	}
	got, err := contents(l.Reader, 0)
	if want := []string{"first|", "second|and more of it|", "third|"}; err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("the log holds %q, %v; want %q", got, err, want)
	}
}

func TestBatch_ReuseWhileInFlightIsRejected(t *testing.T) {
	s := newSim(t)
	l := s.create(small, Options{})
	reached, release := s.hold(simdisk.OpSync)
	b := batchOf([]byte("once"))
	first := l.Submit(b)
	<-reached
	if _, err := l.Commit(ctx0, b); err == nil || errors.Is(err, ErrUncertain) {
		t.Fatalf("the same batch again: %v", err)
	}
	if c, err := l.Submit(b).Wait(ctx0); err == nil {
		t.Fatalf("the same batch again: %+v", c)
	}
	release()
	if _, err := first.Wait(ctx0); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Commit(ctx0, b); err != nil {
		t.Fatalf("the same batch after its outcome: %v", err)
	}
}

func TestSubmit_TicketKeepsItsOutcome(t *testing.T) {
	s := newSim(t)
	l := s.create(small, Options{})
	b := batchOf([]byte("one"))
	first := l.Submit(b)
	if _, err := first.Wait(ctx0); err != nil {
		t.Fatal(err)
	}
	second := l.Submit(b)
	if c, err := second.Wait(ctx0); err != nil || c.Revision != 2 {
		t.Fatal(c, err)
	}
	if _, err := l.Commit(ctx0, b); err != nil {
		t.Fatal(err)
	}
	if c, err := first.Wait(ctx0); err != nil || c.Revision != 1 {
		t.Fatalf("the first ticket now says %+v, %v", c, err)
	}
	if c, err := second.Wait(ctx0); err != nil || c.Revision != 2 {
		t.Fatalf("the second ticket now says %+v, %v", c, err)
	}
}

// A commit that does not fit must not take others down with it that only
// happened to share its write.
func TestL58_OnlyTheCommitThatDoesNotFitIsRejected(t *testing.T) {
	s := newSim(t)
	l := s.create(CreateOptions{PageSize: 4096, MaxSize: 20000}, Options{})
	errs := commitTogether(l, []*Batch{
		batchOf(payload(1, 100)), batchOf(payload(2, 5000)), completeOnly(payload(3, 100)), batchOf(payload(4, 100)),
	})
	for i, err := range errs {
		if want := i == 1; errors.Is(err, ErrNoSpace) != want || err != nil != want {
			t.Errorf("commit %d: %v", i+1, err)
		}
	}
	if got, err := contents(l.Reader, 0); err != nil || len(got) != 3 || got[1] != string(payload(3, 100))+"|" {
		t.Fatalf("%d commits, %v", len(got), err)
	}
	closeLog(t, l)
	closeLog(t, s.open(Options{}))
}

// Sync is not refused because a commit beside it was.
func TestL18_SyncBesideARejectedCommit(t *testing.T) {
	s := newSim(t)
	l := s.create(CreateOptions{PageSize: 4096, MaxSize: 20000}, Options{})
	complete(t, l, payload(1, 10))
	large, sync := l.ticket(batchOf(payload(2, 9000)), nil), &Ticket{log: l}
	if err := errors.Join(l.enqueue(ctx0, large), l.enqueue(ctx0, sync)); err != nil {
		t.Fatal(err)
	}
	if _, err := sync.Wait(ctx0); err != nil {
		t.Errorf("sync: %v", err)
	}
	if _, err := large.Wait(ctx0); !errors.Is(err, ErrNoSpace) {
		t.Errorf("large: %v", err)
	}
	if l.Durable().Revision != 1 {
		t.Errorf("durable: %+v", l.Durable())
	}
}

func TestL58_FileNeverGrowsOverItsMaximum(t *testing.T) {
	const limit = 20000
	for _, zero := range []ZeroAhead{ZeroAheadOn, ZeroAheadOff} {
		s := newSim(t)
		l := s.create(CreateOptions{PageSize: 4096, MaxSize: limit}, Options{ZeroAhead: zero})
		n := 0
		for ; ; n++ {
			_, err := l.Commit(ctx0, batchOf(payload(n, 100)))
			if size := len(s.bytes()); size > limit {
				t.Fatalf("the file has %d bytes, its maximum is %d", size, limit)
			}
			if errors.Is(err, ErrNoSpace) && !errors.Is(err, ErrUncertain) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if n < 12 {
			t.Fatalf("only %d commits fit", n)
		}
		if err := l.Sync(ctx0); err != nil { // a clean rejection: the log is well
			t.Fatal(err)
		}
		closeLog(t, l)
		l = s.open(Options{})
		if got, err := contents(l.Reader, 0); err != nil || len(got) != n {
			t.Fatal(len(got), err)
		}
	}
}

// What is not durable stays bounded, also for commits that nobody waits for.
func TestL18_UnsyncedStretchIsBounded(t *testing.T) {
	const bound = 2 << 20
	for _, mode := range []string{"complete-only", "durable", "mixed"} {
		t.Run(mode, func(t *testing.T) {
			s := newSim(t)
			l := s.create(small, Options{MaxUnsynced: bound})
			var worst int64
			s.fs.Before(func(op simdisk.Op) {
				head, durable, _ := l.points()
				worst = max(worst, head.end-durable.end)
			})
			var batches []*Batch
			for i := range 100 {
				b := batchOf(payload(i, 80<<10))
				b.CompleteOnly = mode == "complete-only" || mode == "mixed" && i%2 == 0
				batches = append(batches, b)
			}
			for i, err := range commitTogether(l, batches) {
				if err != nil {
					t.Fatal(i, err)
				}
			}
			if worst > bound+bound/50 || worst < bound/2 { // page headers come on top
				t.Errorf("%d bytes were complete and not durable, at most %d may be", worst, bound)
			}
			s.fs.Before(nil)
			closeLog(t, l)
		})
	}
}

func TestL18_SyncCoversWhatWasWrittenWhenItWasIssued(t *testing.T) {
	s := newSim(t)
	l := s.create(small, Options{})
	complete(t, l, []byte("before"))
	s.atOp(simdisk.OpSync, func() {
		s.fs.Before(func(op simdisk.Op) {
			if op.Inside {
				s.fs.Before(nil)
				complete(t, l, []byte("during"))
			}
		})
	})
	// atOp fires before the sync; the hook set there fires inside it.
	if err := l.Sync(ctx0); err != nil {
		t.Fatal(err)
	}
	if h, d := l.Head().Revision, l.Durable().Revision; h != 2 || d != 1 {
		t.Fatalf("head %d, durable %d; want 2 and 1", h, d)
	}
}

func TestSubmit_NobodyWaits(t *testing.T) {
	s := newSim(t)
	l := s.create(small, Options{})
	var tickets []*Ticket
	for i := range 200 {
		b := batchOf(payload(i, i))
		b.CompleteOnly = i%3 == 0
		tickets = append(tickets, l.Submit(b))
	}
	closeLog(t, l) // finishes what was submitted
	for i, ticket := range tickets {
		if !ticket.Done() {
			t.Fatalf("ticket %d is not settled", i)
		}
		if c, err := ticket.Wait(ctx0); err != nil || c.Revision != uint64(i+1) {
			t.Fatal(i, c, err)
		}
	}
	if err := l.Submit(batchOf([]byte("x"))).err; !errors.Is(err, ErrClosed) {
		t.Fatal(err)
	}
	if _, err := l.Commit(ctx0, batchOf([]byte("x"))); !errors.Is(err, ErrClosed) {
		t.Fatal(err)
	}
	if err := errors.Join(l.Sync(ctx0)); !errors.Is(err, ErrClosed) {
		t.Fatal(err)
	}
	if err := l.Close(); !errors.Is(err, ErrClosed) {
		t.Fatal(err)
	}
}

func TestCommit_ContextEnds(t *testing.T) {
	t.Run("before", func(t *testing.T) {
		s := newSim(t)
		l := s.create(small, Options{})
		ctx, cancel := context.WithCancel(ctx0)
		cancel()
		if _, err := l.Commit(ctx, batchOf([]byte("x"))); !errors.Is(err, context.Canceled) || errors.Is(err, ErrUncertain) {
			t.Fatal(err)
		}
		if l.Head().Revision != 0 {
			t.Fatal("it was written")
		}
	})
	t.Run("in the queue", func(t *testing.T) {
		s := newSim(t)
		l := s.create(small, Options{})
		reached, release := s.hold(simdisk.OpSync)
		first := l.Submit(batchOf([]byte("first")))
		<-reached
		ctx, cancel := context.WithCancel(ctx0)
		second := l.Submit(batchOf([]byte("second")))
		third := l.Submit(batchOf([]byte("third")))
		cancel()
		if _, err := second.Wait(ctx); !errors.Is(err, context.Canceled) || errors.Is(err, ErrUncertain) {
			t.Fatal(err)
		}
		release()
		if c, err := third.Wait(ctx0); err != nil || c.Revision != 2 {
			t.Fatal(c, err)
		}
		if _, err := first.Wait(ctx0); err != nil {
			t.Fatal(err)
		}
		if got, err := contents(l.Reader, 0); err != nil || strings.Join(got, "") != "first|third|" {
			t.Fatal(got, err)
		}
	})
	t.Run("after it was taken", func(t *testing.T) {
		s := newSim(t)
		l := s.create(small, Options{})
		reached, release := s.hold(simdisk.OpSync)
		ticket := l.Submit(batchOf([]byte("x")))
		<-reached
		ctx, cancel := context.WithCancel(ctx0)
		cancel()
		if _, err := ticket.Wait(ctx); !errors.Is(err, context.Canceled) || !errors.Is(err, ErrUncertain) {
			t.Fatal(err)
		}
		release()
		if c, err := ticket.Wait(ctx0); err != nil || c.Revision != 1 { // the ticket still tells
			t.Fatal(c, err)
		}
		if _, err := l.Commit(ctx0, batchOf([]byte("y"))); err != nil { // nothing was poisoned
			t.Fatal(err)
		}
	})
}

// A waiter that is asked to take over at the moment it leaves passes it on, or
// nobody would serve who is behind it.
func TestCommit_WhoLeavesHandsOver(t *testing.T) {
	s := newSim(t)
	l := s.create(small, Options{})
	l.mu.Lock()
	l.syncing = true // as if a sync were running
	l.mu.Unlock()
	ctx, cancel := context.WithCancel(ctx0)
	leaving, staying := l.Submit(batchOf([]byte("leaving"))), l.Submit(batchOf([]byte("staying")))
	left, stayed := make(chan error, 1), make(chan error, 1)
	go func() { _, err := leaving.Wait(ctx); left <- err }()
	go func() { _, err := staying.Wait(ctx0); stayed <- err }()
	for both := false; !both; runtime.Gosched() {
		l.mu.Lock()
		both = leaving.waiting && staying.waiting
		l.mu.Unlock()
	}
	l.mu.Lock()
	cancel() // it will leave, and does not know yet
	l.syncing = false
	l.handOver() // asks the first in line
	l.mu.Unlock()
	if err := <-left; !errors.Is(err, context.Canceled) || errors.Is(err, ErrUncertain) {
		t.Fatal(err)
	}
	select {
	case err := <-stayed:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("nobody serves who is left in the queue")
	}
	closeLog(t, l)
}

// Whatever fails in the middle of many waiters, every one of them learns what
// became of its commit.
func TestL14_PoisonInTheMiddleOfManyWaiters(t *testing.T) {
	for _, fault := range []simdisk.Fault{
		{Kind: simdisk.OpSync, Nth: 3},
		{Kind: simdisk.OpWrite, Nth: 5},
		{Kind: simdisk.OpWrite, Nth: 5, Part: 700},
	} {
		s := newSim(t)
		l := s.create(small, Options{})
		s.fs.Inject(fault)
		var mu sync.Mutex
		acked, uncertain, poisoned := 0, 0, 0
		var wg sync.WaitGroup
		for i := range 16 {
			wg.Go(func() {
				b := batchOf(payload(i, 100))
				b.CompleteOnly = i%4 == 0
				for range 10000 {
					c, err := l.Commit(ctx0, b)
					mu.Lock()
					switch {
					case err == nil && c.Durable:
						acked++
					case errors.Is(err, ErrUncertain):
						uncertain++
					case errors.Is(err, ErrPoisoned):
						poisoned++
					case err != nil:
						t.Errorf("commit: %v", err)
					}
					mu.Unlock()
					if err != nil {
						return
					}
				}
			})
		}
		wg.Wait()
		if uncertain == 0 || uncertain+poisoned != 16 {
			t.Errorf("%+v: %d uncertain, %d poisoned", fault, uncertain, poisoned)
		}
		var p *PoisonedError
		if err := l.Sync(ctx0); !errors.As(err, &p) || !errors.Is(err, simdisk.ErrIO) || p.Durable != l.Durable().Revision {
			t.Errorf("sync: %v", err)
		}
		ops := s.fs.Ops()
		if err := l.Close(); !errors.Is(err, ErrPoisoned) || s.fs.Ops() != ops {
			t.Errorf("close: %v, and %d operations", err, s.fs.Ops()-ops)
		}
		s.fs.Kill()
		if n := s.open(Options{}).Head().Revision; n < uint64(acked) {
			t.Errorf("%d commits left of %d acknowledged", n, acked)
		}
	}
}

// A commit that fails while Submit still hands it over must not read as one
// that worked. (Submit stored the outcome of queueing over the commit's.)
func TestL14_SubmitNeverHidesAFailure(t *testing.T) {
	for range 300 {
		s := newSim(t)
		l := s.create(small, Options{})
		s.fs.Inject(simdisk.Fault{Kind: simdisk.OpSync, Forever: true})
		var wg sync.WaitGroup
		for i := range 2 {
			wg.Go(func() {
				for range 3 {
					if c, err := l.Submit(batchOf(payload(i, 10))).Wait(ctx0); err == nil {
						t.Errorf("acknowledged %+v, but no sync ever worked", c)
					}
				}
			})
		}
		wg.Wait()
	}
}

// Everything at once: committers with and without contexts, Submit, Sync,
// checkpoints, readers, idle slots, and Close in the middle.
func TestClose_RacesWithEverything(t *testing.T) {
	for round := range 30 {
		s := newSim(t)
		env := s.env()
		env.Idle = 1 // a slot as often as possible
		l, err := CreateIn(env, logName, small, Options{MaxUnsynced: 4096, CheckpointEvery: 5000})
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		var acked [4]uint64
		for i := range 4 {
			wg.Go(func() {
				b := batchOf(payload(i, 200))
				for n := range 1000000 {
					ctx, cancel := context.WithCancel(ctx0)
					if n%3 == 0 {
						cancel()
					}
					b.CompleteOnly = i == 3
					c, err := l.Submit(b).Wait(ctx)
					cancel()
					switch {
					case err == nil && c.Durable:
						acked[i] = c.Revision
					case errors.Is(err, ErrClosed):
						return
					case err != nil && !errors.Is(err, context.Canceled):
						t.Errorf("commit: %v", err)
						return
					case errors.Is(err, ErrUncertain):
						b = batchOf(payload(i, 200))
					}
				}
			})
		}
		wg.Go(func() {
			for range 1000000 {
				if err := l.Sync(ctx0); err != nil {
					if !errors.Is(err, ErrClosed) {
						t.Errorf("sync: %v", err)
					}
					return
				}
			}
		})
		wg.Go(func() {
			if err := l.Wait(ctx0, 1<<40); !errors.Is(err, ErrClosed) {
				t.Errorf("wait: %v", err)
			}
		})
		for l.Durable().Revision < uint64(10*round) {
			if err := l.Wait(ctx0, l.Head().Revision); err != nil {
				t.Fatal(err)
			}
		}
		if err := l.Close(); err != nil {
			t.Fatalf("close: %v", err)
		}
		wg.Wait()
		head := l.Head()
		if !head.Durable {
			t.Fatalf("after close: %+v", head)
		}
		s.fs.Kill()
		l = s.open(Options{})
		if got := l.Head(); got != head {
			t.Fatalf("closed at %+v, opened at %+v", head, got)
		}
		if r := l.Report(); r.Rewritten != 0 || r.Torn != 0 {
			t.Fatalf("a closed log: %+v", r)
		}
		closeLog(t, l)
	}
}

// Callers that commit again and again all share each sync, not every other half
// of them: whoever writes next lets those come who were just acknowledged. A busy
// machine may keep them from it, so one good run of several is enough.
func TestCommit_CallersShareEverySync(t *testing.T) {
	const callers, each = 16, 100
	for try := 1; ; try++ {
		syncs := syncsOfCallers(t, callers, each)
		if syncs <= each*5/4 {
			return
		}
		if try == 10 {
			t.Fatalf("%d commits of %d callers took %d syncs", callers*each, callers, syncs)
		}
	}
}

// syncsOfCallers returns how many syncs it takes that many callers to commit so
// often each.
func syncsOfCallers(t *testing.T, callers, each int) uint64 {
	s := newSim(t)
	l := s.create(small, Options{})
	s.fs.Before(func(op simdisk.Op) {
		if op.Kind != simdisk.OpSync || op.Inside {
			return
		}
		for range 1000 { // a sync takes time, and all others come meanwhile
			l.mu.Lock()
			inFlight := l.queue.len() + len(l.unacked)
			l.mu.Unlock()
			if inFlight == callers {
				return
			}
			runtime.Gosched()
		}
	})
	before := l.Stats().Syncs
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			b := batchOf([]byte("x"))
			for range each {
				if _, err := l.Commit(ctx0, b); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	s.fs.Before(nil)
	defer closeLog(t, l)
	return l.Stats().Syncs - before
}

// Where other goroutines compute on all processors, a yield costs their time
// slices: a write does not wait for callers again and again there.
func TestCommit_HurriesWhereOthersCompute(t *testing.T) {
	l := newSim(t).create(small, Options{})
	var stop atomic.Bool
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop.Store(true)
	for range 4 * runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for !stop.Load() {
			}
		})
	}
	ticket := l.ticket(batchOf([]byte("x")), nil)
	if err := l.enqueue(ctx0, ticket); err != nil {
		t.Fatal(err)
	}
	l.mu.Lock()
	for until := time.Now().Add(10 * time.Second); l.hurry == 0 && time.Now().Before(until); {
		l.expected = 100
		l.gather()
	}
	if l.hurry != hurriedWrites {
		t.Errorf("%d writes go out at once after a yield that took long, want %d", l.hurry, hurriedWrites)
	}
	l.expected = 100
	l.gather()
	if l.hurry != hurriedWrites-1 {
		t.Errorf("the next write waited for callers")
	}
	l.mu.Unlock()
	if _, err := ticket.Wait(ctx0); err != nil {
		t.Fatal(err)
	}
	closeLog(t, l)
}
