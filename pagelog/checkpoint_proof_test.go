package pagelog

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/zeebo/xxh3"

	"github.com/tidemark-log/tidemark/checkpoint"
	"github.com/tidemark-log/tidemark/frame"
	"github.com/tidemark-log/tidemark/internal/simdisk"
)

// stateOf is the state of a host that replayed the commits up to a revision,
// from another state on: it depends on every byte and their order.
func stateOf(t testing.TB, r *Reader, from uint64, state []byte, to uint64) []byte {
	t.Helper()
	sum := binary.LittleEndian.Uint64(append(slices.Clone(state), make([]byte, 8)...))
	for g, err := range r.Commits(from) {
		if err != nil {
			t.Fatal(err)
		}
		if g.Revision > to {
			break
		}
		for rec, err := range g.Records() {
			if err != nil {
				t.Fatal(err)
			}
			sum = xxh3.HashSeed(rec.Data, sum)
		}
	}
	return binary.LittleEndian.AppendUint64(nil, sum)
}

// hosted makes a closed log of n commits whose host kept its state after every
// so many; states holds the right state at each revision.
func hosted(t *testing.T, n, every int, o Options) (s *sim, states [][]byte) {
	t.Helper()
	s = newSim(t)
	l := s.create(small, o)
	states = [][]byte{make([]byte, 8)}
	for i := 1; i <= n; i++ {
		c := commit(t, l, payload(i, i*41%700), payload(-i, 3))
		states = append(states, stateOf(t, l.Reader, uint64(i-1), states[i-1], c.Revision))
		if every > 0 && i%every == 0 {
			if err := l.Checkpoint(context.Background(), c.Revision, states[i]); err != nil {
				t.Fatal(err)
			}
		}
	}
	closeLog(t, l)
	return s, states
}

// TestL38_StateFromAnyRevision: for every R the state of the host kept at R and
// the commits after it give what all commits give from the first on, at the
// head and at every revision between; also when the log was opened again, and
// with both slots lost.
func TestL38_StateFromAnyRevision(t *testing.T) {
	const n = 40
	s, states := hosted(t, n, 0, Options{CheckpointEvery: 900})
	for rev := uint64(0); rev <= n; rev++ {
		l := s.open(Options{CheckpointEvery: 900})
		if err := l.Checkpoint(context.Background(), rev, states[rev]); err != nil {
			t.Fatal(err)
		}
		check := func(r *Reader) {
			t.Helper()
			at, data, err := r.LastCheckpoint()
			if err != nil || at != rev || string(data) != string(states[rev]) {
				t.Fatalf("kept at %d, found at %d: %x, %v", rev, at, data, err)
			}
			for to := at; to <= n; to++ {
				if got := stateOf(t, r, at, data, to); string(got) != string(states[to]) {
					t.Fatalf("from the state at %d the one at %d is %x, want %x", at, to, got, states[to])
				}
			}
		}
		check(l.Reader)
		closeLog(t, l)
		check(s.reader(ReaderOptions{}))
		b := s.bytes()
		for _, off := range frame.SlotOffsets {
			b[off+300] ^= 1
		}
		lost := newSim(t)
		lost.put(b)
		// Nothing proves the last checkpoint durable until it is opened.
		if at, data, err := lost.reader(ReaderOptions{}).LastCheckpoint(); !errors.Is(err, ErrNotFound) && (err != nil || string(data) != string(states[at])) {
			t.Fatalf("slots lost: state at %d: %x, %v", at, data, err)
		}
		for range 2 {
			l = lost.open(Options{})
			check(l.Reader)
			closeLog(t, l)
			check(lost.reader(ReaderOptions{}))
		}
	}
}

// TestL35_SlotsThatNameOtherPlaces: whatever the slots name as checkpoints,
// content is the same, and a state of the host is one that the host kept at
// that revision, or none.
func TestL35_SlotsThatNameOtherPlaces(t *testing.T) {
	const n = 40
	s, states := hosted(t, n, 7, Options{CheckpointEvery: 700})
	whole := s.bytes()
	h, err := readHeader(&memFile{b: whole})
	if err != nil {
		t.Fatal(err)
	}
	var commits, checks []frame.Place // by their starts
	for _, g := range s.groups() {
		p := frame.Place{Offset: g.start, Revision: g.Revision, Digest: g.Digest}
		if g.Derived() {
			checks = append(checks, p)
		} else {
			commits = append(commits, p)
		}
	}
	newest := h.newest()
	none, check, before := frame.Place{}, newest.Check, newest.Before
	if len(checks) < 8 || check == none || before == none {
		t.Fatalf("%d checkpoints; %v %v", len(checks), check, before)
	}
	digest, rev, off := check, check, check
	digest.Digest++
	rev.Revision--
	off.Offset += 8
	pairs := map[string][2]frame.Place{
		"as they are": {check, before}, "deleted": {none, none}, "newest deleted": {none, before}, "one before deleted": {check, none},
		"swapped": {before, check}, "aged": {checks[1], checks[0]}, "oldest": {checks[0], none}, "commits": {commits[9], commits[3]},
		"another digest": {digest, before}, "another revision": {rev, before}, "another place": {off, before},
		"another digest, twice": {digest, digest}, "none that is": {off, rev}, "one for both": {before, before},
	}
	for name, p := range pairs {
		b := slices.Clone(whole)
		for i, off := range frame.SlotOffsets {
			slot := h.slots[i].Slot
			slot.Check, slot.Before = p[0], p[1]
			h.geo.PutSlot(b[off:], off, &slot)
		}
		x := newSim(t)
		x.put(b)
		l := x.open(Options{CheckpointEvery: 700})
		for _, r := range []*Reader{l.Reader, x.reader(ReaderOptions{}), x.reader(ReaderOptions{Durable: true})} {
			if got := stateOf(t, r, 0, nil, n); string(got) != string(states[n]) || l.Head().Revision != n {
				t.Errorf("%s: other contents", name)
			}
			at, data, err := r.LastCheckpoint()
			switch {
			case (name == "deleted" || name == "aged" || name == "oldest") && errors.Is(err, ErrNotFound): // none was kept by then
			case err != nil || at%7 != 0 || string(data) != string(states[at]):
				t.Errorf("%s: state at %d: %x, %v", name, at, data, err)
			case at != n/7*7:
				t.Errorf("%s: the last state is of revision %d", name, at)
			}
		}
		for i := range 30 {
			commit(t, l, payload(i, 300))
		}
		closeLog(t, l)
		if r, err := verifyFile(context.Background(), &memFile{b: x.bytes()}, VerifyOptions{}, plan{workers: 1, stretch: 4096}); err != nil || len(r.Findings) != 0 || r.Groups != n+30 {
			t.Errorf("%s: later %s %v", name, r.describe(), err)
		}
	}
}

// TestL35_LostBlobs: a state of the host that is damaged is passed over for the
// one before; with all of them damaged there is none, and all is replayed.
func TestL35_LostBlobs(t *testing.T) {
	const n = 40
	s, states := hosted(t, n, 7, Options{CheckpointEvery: -1})
	b := s.bytes()
	list := s.groups()
	slices.Reverse(list)
	want := uint64(n / 7 * 7)
	for _, g := range list {
		if !g.Derived() {
			continue
		}
		x := newSim(t)
		x.put(b)
		at, data, err := x.reader(ReaderOptions{}).LastCheckpoint()
		if err != nil || at != want || string(data) != string(states[at]) {
			t.Fatalf("state at %d: %x, %v; want that at %d", at, data, err, want)
		}
		b[g.end-8] ^= 1 // in the blob
		want -= 7
	}
	x := newSim(t)
	x.put(b)
	r := x.reader(ReaderOptions{})
	if at, _, err := r.LastCheckpoint(); want != 0 || !errors.Is(err, ErrNotFound) {
		t.Errorf("state at %d, %v", at, err)
	}
	if got := stateOf(t, r, 0, nil, n); string(got) != string(states[n]) {
		t.Error("other contents")
	}
}

// TestL36_ByteIdenticalCommits: with checkpoints never, seldom, often and with
// states of the host between, every commit has the same revision, digest and
// bytes.
func TestL36_ByteIdenticalCommits(t *testing.T) {
	bodies := func(every int64, host int) (list []string) {
		s, _ := hosted(t, 60, host, Options{CheckpointEvery: every})
		derived := 0
		for _, g := range s.groups() {
			if g.Derived() {
				derived++
			}
		}
		for g, err := range s.reader(ReaderOptions{}).Commits(0) {
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, fmt.Sprintf("%d %v %d %x", g.Revision, g.Digest, g.Count, g.body))
		}
		return append([]string{fmt.Sprint(derived)}, list...)
	}
	never := bodies(-1, 0)
	if never[0] != "0" {
		t.Fatalf("never is %s checkpoints", never[0])
	}
	seen := []string{never[0]}
	for _, how := range []struct {
		every int64
		host  int
	}{{0, 0}, {5000, 0}, {500, 0}, {1, 0}, {-1, 5}, {500, 1}} {
		got := bodies(how.every, how.host)
		seen = append(seen, got[0])
		if !slices.Equal(got[1:], never[1:]) {
			t.Errorf("a checkpoint every %d bytes and a state every %d commits change commits", how.every, how.host)
		}
	}
	if slices.Max(seen) == seen[0] {
		t.Errorf("no checkpoints were written: %v", seen)
	}
}

// TestL37_NoFlushOfTheirOwn counts what is asked of the disk with and without
// automatic checkpoints: the same syncs and the same writes of groups, and
// beside them nothing but slots.
func TestL37_NoFlushOfTheirOwn(t *testing.T) {
	ops := func(every int64) (syncs, writes, slots, checks int) {
		s := newSim(t)
		l := s.create(small, Options{CheckpointEvery: every, ZeroAhead: ZeroAheadOff})
		s.fs.Before(func(op simdisk.Op) {
			switch {
			case op.Inside:
			case op.Kind == simdisk.OpSync:
				syncs++
			case op.Kind == simdisk.OpWrite && op.Off < 16384:
				slots++
			case op.Kind == simdisk.OpWrite:
				writes++
			}
		})
		for i := range 100 {
			commit(t, l, payload(i, i*13%400))
		}
		s.fs.Before(nil)
		closeLog(t, l)
		for _, g := range s.groups() {
			if g.Derived() {
				checks++
			}
		}
		return syncs, writes, slots, checks
	}
	syncs, writes, _, none := ops(-1)
	if syncs != 100 || writes != 200 || none != 0 { // one of zeros for each of the group
		t.Fatalf("100 commits are %d syncs and %d writes, %d checkpoints", syncs, writes, none)
	}
	for _, every := range []int64{1, 1000, 5000} {
		s, w, slots, checks := ops(every)
		if s != syncs || w != writes || checks == 0 || slots != checks {
			t.Errorf("every %d bytes: %d syncs, %d writes, %d slots, %d checkpoints", every, s, w, slots, checks)
		}
	}
}

// TestL37_StateOverItsLimit: a state that is too large is refused when it is
// handed over, one of exactly the limit is kept, and nothing else changes.
func TestL37_StateOverItsLimit(t *testing.T) {
	s := newSim(t)
	l := s.create(CreateOptions{}, Options{})
	commit(t, l, []byte("x"))
	if err := l.Checkpoint(context.Background(), 1, []byte("small")); err != nil {
		t.Fatal(err)
	}
	before, ops := s.fs.Hash(), s.fs.Ops()
	data := make([]byte, checkpoint.MaxBlob+1)
	if err := l.Checkpoint(context.Background(), 1, data); !errors.Is(err, ErrTooLarge) || errors.Is(err, ErrUncertain) {
		t.Errorf("a state over the limit: %v", err)
	}
	if err := l.Checkpoint(context.Background(), 2, nil); !errors.Is(err, ErrNotFound) {
		t.Errorf("a state of a revision to come: %v", err)
	}
	if s.fs.Hash() != before || s.fs.Ops() != ops {
		t.Error("a refused state changed something")
	}
	if _, data, err := l.LastCheckpoint(); err != nil || string(data) != "small" {
		t.Errorf("%q %v", data, err)
	}
	data[7] = 7
	if err := l.Checkpoint(context.Background(), 1, data[:checkpoint.MaxBlob]); err != nil {
		t.Fatal(err)
	}
	if _, got, err := l.LastCheckpoint(); err != nil || string(got) != string(data[:checkpoint.MaxBlob]) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if c := commit(t, l, []byte("y")); c.Revision != 2 {
		t.Error(c)
	}
	closeLog(t, l)
}

// TestCheckpoint_Distance holds automatic checkpoints to their rule: one every
// so many bytes or 1,024 commits, but never nearer than four times the size of
// the last one; also across openings.
func TestCheckpoint_Distance(t *testing.T) {
	gaps := func(s *sim) (bytes []int64, commits []uint64, sizes []int64) {
		at, rev := int64(16384), uint64(0)
		for _, g := range s.groups() {
			if g.Derived() {
				bytes, commits, sizes = append(bytes, g.start-at), append(commits, g.Revision-rev), append(sizes, g.end-g.start)
				at, rev = g.end, g.Revision
			}
		}
		return bytes, commits, sizes
	}
	for _, reopen := range []int{0, 50} {
		s := newSim(t)
		l := s.create(small, Options{CheckpointEvery: 20000})
		for i := range 600 {
			if reopen > 0 && i%reopen == reopen-1 {
				closeLog(t, l)
				l = s.open(Options{CheckpointEvery: 20000})
			}
			complete(t, l, payload(i, 300))
		}
		closeLog(t, l)
		bytes, _, _ := gaps(s)
		if len(bytes) < 9 {
			t.Fatalf("%d checkpoints", len(bytes))
		}
		for i, n := range bytes {
			if n < 20000-100 || n > 20000+700 {
				t.Errorf("opened every %d commits: checkpoint %d comes after %d bytes", reopen, i, n)
			}
		}
	}
	s := newSim(t)
	l := s.create(small, Options{CheckpointEvery: 1 << 20})
	for range 5000 {
		complete(t, l, nil)
	}
	closeLog(t, l)
	if _, commits, _ := gaps(s); !slices.Equal(commits, []uint64{1024, 1024, 1024, 1024}) {
		t.Errorf("small commits: checkpoints after %v", commits)
	}
	s = newSim(t)
	l = s.create(small, Options{CheckpointEvery: 1000})
	for i := range 800 {
		complete(t, l, payload(i, 100))
		if i == 30 {
			if err := l.Checkpoint(context.Background(), 1, payload(1, 9000)); err != nil {
				t.Fatal(err)
			}
		}
	}
	closeLog(t, l)
	bytes, _, sizes := gaps(s)
	large := slices.IndexFunc(sizes, func(n int64) bool { return n > 9000 })
	if large < 0 || bytes[large+1] < 4*sizes[large]-100 || bytes[large+1] > 4*sizes[large]+700 || bytes[large+2] > 4*sizes[large+1]+1000 {
		t.Errorf("behind a checkpoint of %d bytes the next one comes after %d, then %d", sizes[large], bytes[large+1], bytes[large+2])
	}
}

// TestCheckpoint_DurableWhenItReturns: on every disk that a loss of power may
// leave after Checkpoint returned, the slot that names it lost or not, the state
// is the last one as soon as the log is open, and stays it.
func TestCheckpoint_DurableWhenItReturns(t *testing.T) {
	s := newSim(t)
	l := s.create(small, Options{CheckpointEvery: -1})
	for rev := uint64(1); rev <= 4; rev++ {
		commit(t, l, payload(int(rev), 300))
		state := fmt.Appendf(nil, "state at %d", rev)
		if err := l.Checkpoint(context.Background(), rev, state); err != nil {
			t.Fatal(err)
		}
		disks := 0
		s.fs.EachImage(simdisk.ImageOptions{Mode: simdisk.Both, MaxBits: 8, Garbage: true}, func(img *simdisk.FS) bool {
			disks++
			x := &sim{t: t, fs: img}
			for range 3 {
				l := x.open(Options{CheckpointEvery: -1})
				for _, r := range []*Reader{l.Reader, x.reader(ReaderOptions{})} {
					at, data, err := r.LastCheckpoint()
					if r == l.Reader && (err != nil || at != rev || string(data) != string(state)) {
						t.Errorf("disk %d, after a loss of power: state at %d, %q, %v; want that at %d", disks, at, data, err, rev)
					}
					if err == nil && string(data) != fmt.Sprintf("state at %d", at) {
						t.Errorf("disk %d: state at %d is %q", disks, at, data)
					}
				}
				closeLog(t, l)
				if at, _, err := x.reader(ReaderOptions{}).LastCheckpoint(); err != nil || at != rev {
					t.Errorf("disk %d, closed: state at %d, %v; want that at %d", disks, at, err, rev)
				}
			}
			return !t.Failed()
		})
		if disks < 2 {
			t.Errorf("%d disks", disks)
		}
	}
	closeLog(t, l)
}

// TestL35_HonouredOnlyAsNamed: a checkpoint is taken only with the offset,
// revision and digest it is named with, and only if all of it is durable.
func TestL35_HonouredOnlyAsNamed(t *testing.T) {
	s, _ := hosted(t, 20, 0, Options{CheckpointEvery: 700})
	f := &memFile{b: s.bytes()}
	h, err := readHeader(f)
	if err != nil {
		t.Fatal(err)
	}
	right := h.newest().Check
	ask := func(change func(p *frame.Place), proven int64) bool {
		p := right
		change(&p)
		_, _, ok, err := peek(f, h.geo, p, proven)
		if err != nil {
			t.Fatal(err)
		}
		return ok
	}
	_, end, _, err := peek(f, h.geo, right, h.size)
	if err != nil {
		t.Fatal(err)
	}
	as := func(*frame.Place) {}
	if !ask(as, h.size) || !ask(as, end) {
		t.Error("a checkpoint is not found where it is")
	}
	for name, got := range map[string]bool{
		"another digest":     ask(func(p *frame.Place) { p.Digest++ }, h.size),
		"another revision":   ask(func(p *frame.Place) { p.Revision-- }, h.size),
		"the bytes before":   ask(func(p *frame.Place) { p.Offset -= 8 }, h.size),
		"no offset":          ask(func(p *frame.Place) { p.Offset = 0 }, h.size),
		"beyond the file":    ask(func(p *frame.Place) { p.Offset = 1 << 50 }, 1<<60),
		"not all is durable": ask(as, end-8),
	} {
		if got {
			t.Errorf("%s: taken", name)
		}
	}
}
