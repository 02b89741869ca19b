package bench_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/tidemark-log/tidemark/bench"
)

const recordSize = 512

// group returns n records whose seeds follow from.
func group(from, n int) [][]byte {
	records := make([][]byte, n)
	for i := range records {
		records[i] = bench.Record(make([]byte, recordSize), uint64(from+i))
	}
	return records
}

// eachPeer runs a test for every peer, all at once: they wait for the disk
// most of the time.
func eachPeer(t *testing.T, test func(t *testing.T, p bench.Peer, o bench.Options)) {
	for _, p := range bench.Peers() {
		t.Run(p.Name, func(t *testing.T) {
			t.Parallel()
			test(t, p, bench.Options{Dir: t.TempDir(), RecordSize: recordSize, Capacity: 1 << 20})
		})
	}
}

func open(t *testing.T, p bench.Peer, o bench.Options) bench.Store {
	t.Helper()
	s, err := p.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func commit(t *testing.T, s bench.Store, g [][]byte) {
	t.Helper()
	if err := s.Commit(g); err != nil {
		t.Fatal(err)
	}
}

func closeStore(t *testing.T, s bench.Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// check compares what the store replays, counts and reads with records 0 to n.
func check(t *testing.T, p bench.Peer, s bench.Store, n int) {
	t.Helper()
	if got := s.Len(); got != uint64(n) {
		t.Errorf("Len() = %d, want %d", got, n)
	}
	want := group(0, n)
	i := 0
	err := s.Replay(func(record []byte) {
		if i < n && !bytes.Equal(record, want[i]) {
			t.Errorf("replay: record %d differs", i)
		}
		i++
	})
	if err != nil {
		t.Fatalf("replay: %v", err)
	}
	if i != n {
		t.Errorf("replayed %d records, want %d", i, n)
	}
	checkReads(t, p, s, want)
}

func checkReads(t *testing.T, p bench.Peer, s bench.Store, want [][]byte) {
	t.Helper()
	if p.Traits.Reads == bench.ReadsNone {
		if _, err := s.ReadAt(0, nil); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("ReadAt: got %v, want unsupported", err)
		}
		return
	}
	var buf []byte
	for i, w := range slices.Backward(want) {
		got, err := s.ReadAt(uint64(i), buf)
		if err != nil {
			t.Fatalf("read record %d: %v", i, err)
		}
		if !bytes.Equal(got, w) {
			t.Errorf("read: record %d differs", i)
		}
		buf = got[:0]
	}
}

func TestPeers_Durable(t *testing.T) {
	eachPeer(t, func(t *testing.T, p bench.Peer, o bench.Options) {
		s := open(t, p, o)
		for i := range 5 {
			commit(t, s, group(i, 1))
		}
		commit(t, s, group(5, 16))
		check(t, p, s, 21)
		closeStore(t, s)
		if !p.Traits.Reopens {
			return
		}
		s = open(t, p, o)
		check(t, p, s, 21)
		commit(t, s, group(21, 16))
		check(t, p, s, 37)
		closeStore(t, s)
	})
}

func TestPeers_Deferred(t *testing.T) {
	eachPeer(t, func(t *testing.T, p bench.Peer, o bench.Options) {
		o.Mode = bench.Deferred
		s := open(t, p, o)
		for i := range 40 {
			commit(t, s, group(i*16, 16))
		}
		if err := s.Sync(); err != nil {
			t.Fatal(err)
		}
		check(t, p, s, 640)
		closeStore(t, s)
		if !p.Traits.Reopens {
			return
		}
		s = open(t, p, o)
		check(t, p, s, 640)
		closeStore(t, s)
	})
}

func TestPeers_ConcurrentCallers(t *testing.T) {
	const callers, each = 8, 10
	eachPeer(t, func(t *testing.T, p bench.Peer, o bench.Options) {
		o.Callers = callers
		s := open(t, p, o)
		errs := make([]error, callers)
		var wg sync.WaitGroup
		for c := range callers {
			wg.Go(func() {
				for i := range each {
					errs[c] = errors.Join(errs[c], s.Commit(group(c*each+i, 1)))
				}
			})
		}
		wg.Wait()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		if err := replaySeeds(s, callers, each); err != nil {
			t.Error(err)
		}
		closeStore(t, s)
	})
}

// replaySeeds checks that every record is there once and that the records of
// each caller are in its order.
func replaySeeds(s bench.Store, callers, each int) error {
	next := make([]int, callers)
	var wrong error
	err := s.Replay(func(record []byte) {
		seed := int(binary.LittleEndian.Uint64(record))
		c := seed / each
		if c >= callers || seed%each != next[c] {
			wrong = errors.Join(wrong, fmt.Errorf("record %d out of order", seed))
			return
		}
		next[c]++
	})
	for c, n := range next {
		if n != each {
			wrong = errors.Join(wrong, fmt.Errorf("caller %d: %d records of %d", c, n, each))
		}
	}
	return errors.Join(err, wrong)
}

func TestPeers_NamesAndTraits(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range bench.Peers() {
		if seen[p.Name] {
			t.Errorf("%s: name used twice", p.Name)
		}
		seen[p.Name] = true
		if p.Traits.Sums == "" || p.Traits.Note == "" {
			t.Errorf("%s: sums and note must say what it does less or more", p.Name)
		}
		if (p.Kind == bench.Floor) != (p.Module == "") {
			t.Errorf("%s: only floors come without a module", p.Name)
		}
	}
}
