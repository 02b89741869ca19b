package pagelog

import (
	"cmp"
	"errors"
	"slices"
	"sync"

	"github.com/tidemark-log/tidemark/checkpoint"
)

// The keyed index leads from {namespace, key} to the last record that was added
// under that key. docs/INDEX.md is its design; in short:
//
//   - A key is a record of its commit. The index is derived from those records
//     and is never the only copy of anything.
//   - Keys since the last checkpoint are in a table in memory. A checkpoint
//     writes them as a run of level 0, which stays in memory, too.
//   - When level 0 holds tableKeys, its runs go down to level 1, to be merged
//     with the run there; a level that is full goes down to the next, which
//     holds eight times as much. A merge is done in steps of one piece, as
//     commits bring keys, so none of them waits for it.
//   - Of one key the newest entry is found first: the table, level 0, then each
//     level's incoming runs before its main run.
//
// Invariants:
//
//   - Every key of the commits after since, up to the head, is in the table or
//     in a run. What a run holds is older than what is looked at before it.
//   - levels and the runs in it do not change once they are shared. The writer
//     changes a copy, which it adopts with the write that it was part of.
//   - A checkpoint lists only runs whose bytes lie before it in the file, so
//     whoever sees the checkpoint sees the runs.

const (
	tableKeys  = 4096    // keys in memory that call for a merge
	youngRuns  = 8       // runs that level 0 has at most
	levelRatio = 8       // each level holds this many times as much as the one above
	mergePace  = 16      // entries merged for each key added, for each merge under way
	mostInRAM  = 2 << 20 // keys that are taken into memory at most when an index is loaded
)

// What Lookup may say, besides the errors of reading.
var (
	// ErrNoKey: no record was ever added under this key.
	ErrNoKey = errors.New("no such key")
	// ErrIndexDamaged: a part of the keyed index cannot be read, so what it
	// says of this key is not known. Log.Reindex builds it anew.
	ErrIndexDamaged = errors.New("keyed index is damaged")
)

// run is a run of the index and what is known of it in memory.
type run struct {
	checkpoint.Run
	starts []uint32           // number of the first block of each extent
	keys   []checkpoint.Entry // all of it, if it is kept in memory
	err    error              // why it cannot be read
}

func newRun(r checkpoint.Run) *run {
	x := &run{Run: r}
	n := uint32(0)
	for _, e := range r.Extents {
		x.starts = append(x.starts, n)
		n += e.Blocks
	}
	return x
}

// onDisk returns the run without its copy in memory.
func (r *run) onDisk() *run { return &run{Run: r.Run, starts: r.starts, err: r.err} }

// indexLevel is what one level holds.
type indexLevel struct {
	incoming []*run // newest first; newer than main; on level 0 all there is
	main     *run   // nil: none
	building *run   // what is written of incoming and main merged; nil: nothing
	last     checkpoint.Entry
}

func (v *indexLevel) merging() bool { return len(v.incoming) > 0 }

// levels is the index without its table. A copy of it may be changed, the runs
// may not.
type levels struct {
	all     [checkpoint.MaxLevel + 1]indexLevel
	nextRun uint64
	since   uint64 // keys of commits up to here may be missing
}

// index is what one reader or writer knows of the index.
type index struct {
	mu      sync.RWMutex
	table   table
	lv      *levels
	through uint64             // last revision whose keys are in it
	tee     []checkpoint.Entry // keys added while the index is built anew
	teeing  bool
}

// table is the keys since the last checkpoint.
type table struct {
	entries []checkpoint.Entry
	before  []int32 // by entry: the one before it with the same hash, or -1
	newest  map[checkpoint.Hash]int32
}

func (t *table) add(entries []checkpoint.Entry) {
	if t.newest == nil && len(entries) > 0 {
		t.newest = map[checkpoint.Hash]int32{}
	}
	for i := range entries {
		at, ok := t.newest[entries[i].Hash]
		if !ok {
			at = -1
		}
		t.newest[entries[i].Hash] = int32(len(t.entries))
		t.entries, t.before = append(t.entries, entries[i]), append(t.before, at)
	}
}

// find appends the entries with this hash to dst, newest first.
func (t *table) find(dst []checkpoint.Entry, h checkpoint.Hash) []checkpoint.Entry {
	at, ok := t.newest[h]
	for ok && at >= 0 {
		dst = append(dst, t.entries[at])
		at = t.before[at]
	}
	return dst
}

// capacity returns how many entries the main run of a level may have.
func capacity(i int) uint64 {
	n := uint64(tableKeys)
	for range i {
		n *= levelRatio
	}
	return n
}

func entriesOf(runs []*run) (n uint64) {
	for _, r := range runs {
		n += r.Entries
	}
	return n
}

// placer writes the payload of a piece in a derived group and returns where the
// group starts.
type placer func(payload []byte) (start int64, err error)

// flush makes a run of level 0 of entries, which are newer than all there is
// and get sorted, and sends level 0 down if it is full.
func (v *levels) flush(entries []checkpoint.Entry, place placer) error {
	young := v.all[0].incoming
	if len(young) >= youngRuns-1 && allInRAM(young) {
		for _, r := range young {
			entries = append(entries, r.keys...)
		}
		young = nil
	}
	if len(entries) == 0 {
		return nil
	}
	slices.SortFunc(entries, func(a, b checkpoint.Entry) int { return a.Compare(&b) })
	entries = slices.CompactFunc(entries, func(a, b checkpoint.Entry) bool { return a.Compare(&b) == 0 })
	r := v.newRun()
	for rest := entries; len(rest) > 0; {
		var after checkpoint.Entry
		if n := len(entries) - len(rest); n > 0 {
			after = entries[n-1]
		}
		payload, used := r.Piece(nil, &after, rest, true)
		start, err := place(payload)
		if err != nil {
			return err
		}
		r.Place(start)
		rest = rest[used:]
	}
	made := newRun(r)
	made.keys = entries
	v.all[0].incoming = append([]*run{made}, young...)
	v.sink()
	return nil
}

func allInRAM(runs []*run) bool {
	return !slices.ContainsFunc(runs, func(r *run) bool { return r.keys == nil })
}

func (v *levels) newRun() checkpoint.Run {
	r := checkpoint.Run{Number: v.nextRun}
	v.nextRun++
	return r
}

// sink sends level 0 down to level 1 if it is full and level 1 has room.
func (v *levels) sink() {
	young := v.all[0].incoming
	if n := entriesOf(young); n >= tableKeys && v.room(1, n) {
		v.all[1].incoming, v.all[0].incoming = young, nil
		v.settle(1)
	}
}

// room reports whether n entries may come in on level i, after sending down
// what is in their way.
func (v *levels) room(i int, n uint64) bool {
	l := &v.all[i]
	if l.merging() {
		return false
	}
	if l.main == nil || l.main.Entries+n <= capacity(i) || i == checkpoint.MaxLevel {
		return true
	}
	if !v.room(i+1, l.main.Entries) {
		return false
	}
	v.all[i+1].incoming, l.main = []*run{l.main}, nil
	v.settle(i + 1)
	return true
}

// settle takes a lone incoming run as a level's main run: there is nothing to
// merge it with.
func (v *levels) settle(i int) {
	l := &v.all[i]
	if len(l.incoming) == 1 && l.main == nil && l.building == nil {
		l.main, l.incoming = l.incoming[0].onDisk(), nil
	}
}

// merges returns how many merges are under way, and the level of the first.
func (v *levels) merges() (n, first int) {
	for i := len(v.all) - 1; i > 0; i-- {
		if v.all[i].merging() {
			n, first = n+1, i
		}
	}
	return n, first
}

// list returns the runs as a checkpoint lists them.
func (v *levels) list() checkpoint.Index {
	x := checkpoint.Index{Since: v.since, NextRun: v.nextRun}
	add := func(r *run, i int, role checkpoint.Role) {
		if r != nil {
			listed := r.Run
			listed.Level, listed.Role = uint8(i), role
			x.Runs = append(x.Runs, listed)
		}
	}
	for i := range v.all {
		l := &v.all[i]
		for _, r := range l.incoming {
			add(r, i, checkpoint.Incoming)
		}
		add(l.main, i, checkpoint.Main)
		add(l.building, i, checkpoint.Building)
	}
	return x
}

// newLevels is the inverse of list. Nothing is read yet.
func newLevels(x *checkpoint.Index) *levels {
	v := &levels{nextRun: x.NextRun, since: x.Since}
	for i := range x.Runs {
		l := &v.all[x.Runs[i].Level]
		switch r := newRun(x.Runs[i]); r.Role {
		case checkpoint.Incoming:
			l.incoming = append(l.incoming, r)
		case checkpoint.Main:
			l.main = r
		case checkpoint.Building:
			l.building = r
		}
	}
	return v
}

// each visits the runs that lookups look at, newest entries first.
func (v *levels) each(visit func(r *run) bool) {
	for i := range v.all {
		l := &v.all[i]
		for _, r := range l.incoming {
			if !visit(r) {
				return
			}
		}
		if l.main != nil && !visit(l.main) {
			return
		}
	}
}

// IndexStats counts what the keyed index of this Log or Reader holds and did.
type IndexStats struct {
	Keys     uint64 // entries, one for each key added; once it was looked at
	InMemory int    // of those, entries kept in memory
	Runs     int    // runs that a lookup may have to look at in the file
	Lookups  uint64
	Blocks   uint64 // blocks read by lookups, of 4 KiB each
	Most     uint64 // blocks that one lookup read, at most
}

func (x *index) stats(s *IndexStats) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	s.InMemory, s.Keys = len(x.table.entries), uint64(len(x.table.entries))
	if x.lv == nil {
		return
	}
	x.lv.each(func(r *run) bool {
		s.InMemory += len(r.keys)
		s.Keys += r.Entries
		if r.keys == nil {
			s.Runs++
		}
		return true
	})
}

// sortedFind returns where in sorted entries those with this hash begin.
func sortedFind(entries []checkpoint.Entry, h checkpoint.Hash) int {
	i, _ := slices.BinarySearchFunc(entries, h, func(e checkpoint.Entry, h checkpoint.Hash) int {
		return cmp.Or(cmp.Compare(e.Hash.Prefix(), h.Prefix()), slices.Compare(e.Hash[8:], h[8:]))
	})
	return i
}
