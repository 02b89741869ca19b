package pagelog

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"

	"github.com/tidemark-log/tidemark/checkpoint"
	"github.com/tidemark-log/tidemark/frame"
)

// lookups is what a Reader keeps for Lookup.
type lookups struct {
	mu    sync.Mutex  // one goroutine brings the index up to date
	index *index      // nil: not looked at yet; not used for a live log
	check frame.Place // the checkpoint it was loaded from

	count, blocks, most atomic.Uint64
}

// Lookup returns where the last record lies that was added under a key: its
// revision and its index in the commit. It sees every commit that Head does.
//
// The error is ErrNoKey if there is none; ErrCompacted if there is one, or may
// have been one, in a commit that retention dropped; ErrIndexDamaged if the
// index cannot tell. It reads a few blocks of 4 KiB and the commit it leads to,
// however many keys there are.
func (r *Reader) Lookup(namespace, key []byte) (revision uint64, record uint32, err error) {
	return r.LookupAt(math.MaxUint64, namespace, key)
}

// LookupAt is Lookup as it was when the commit at a revision was the head:
// later commits are passed over. Beyond the head it is Lookup. It reads more
// blocks the more often the key was used since.
func (r *Reader) LookupAt(at uint64, namespace, key []byte) (revision uint64, record uint32, err error) {
	if err := checkKey(namespace, key); err != nil {
		return 0, 0, err
	}
	r = r.now()
	q := query{at: at, namespace: namespace, key: key}
	revision, record, err = r.lookup(q, checkpointCommits/4)
	if r.moveOn(err) {
		return r.LookupAt(at, namespace, key)
	}
	if errors.Is(err, ErrIndexDamaged) || errors.Is(err, ErrCorrupt) { // by now it may have been rebuilt, written elsewhere, or dropped
		revision, record, err = r.lookup(q, 0)
	}
	return revision, record, err
}

// lookup is LookupAt. A reader of another process looks for a newer checkpoint
// if its index is more than behind commits old.
func (r *Reader) lookup(q query, behind uint64) (revision uint64, record uint32, err error) {
	x, b, err := r.indexNow(behind)
	if err != nil {
		return 0, 0, err
	}
	q.r, q.b, q.hash = r, &b, checkpoint.HashKey(r.id.IndexKey, q.namespace, q.key)
	q.reader = runReader{file: r.file, geo: r.geo}
	found, err := q.run(x)
	r.lookups.counted(q.reader.blocks)
	if err == nil && found == nil {
		err = x.absent(r.id.Base.Revision, &b)
	}
	if err != nil {
		return 0, 0, err
	}
	return found.Revision, found.Record, nil
}

func checkKey(namespace, key []byte) error {
	switch {
	case len(namespace) > checkpoint.MaxNamespace:
		return fmt.Errorf("%w: a namespace of %d bytes, none may have over %d", ErrTooLarge, len(namespace), checkpoint.MaxNamespace)
	case len(key) > checkpoint.MaxKey:
		return fmt.Errorf("%w: a key of %d bytes, none may have over %d", ErrTooLarge, len(key), checkpoint.MaxKey)
	case len(key) == 0:
		return fmt.Errorf("%w: a key has at least one byte", ErrEmpty)
	}
	return nil
}

// IndexStats returns what the keyed index holds and did for this Reader.
func (r *Reader) IndexStats() IndexStats {
	r = r.now()
	s := IndexStats{Lookups: r.lookups.count.Load(), Blocks: r.lookups.blocks.Load(), Most: r.lookups.most.Load()}
	var x *index
	if r.live != nil {
		x = r.live.index
	} else {
		r.lookups.mu.Lock()
		x = r.lookups.index
		r.lookups.mu.Unlock()
	}
	if x != nil {
		x.stats(&s)
	}
	return s
}

func (s *lookups) counted(blocks uint64) {
	s.count.Add(1)
	s.blocks.Add(blocks)
	for most := s.most.Load(); blocks > most && !s.most.CompareAndSwap(most, blocks); most = s.most.Load() {
	}
}

// absent says what it means that a key was not found.
func (x *index) absent(base uint64, b *bounds) error {
	x.mu.RLock()
	defer x.mu.RUnlock()
	switch since := x.lv.since; {
	case b.damage != nil:
		return b.damage
	case since > max(base, b.begin.rev):
		return fmt.Errorf("%w: keys of commits up to revision %d may be missing; rebuild it", ErrIndexDamaged, since)
	case since > base:
		return fmt.Errorf("keys of dropped commits are not known: %w", compacted(b))
	}
	return ErrNoKey
}

// query is one lookup.
type query struct {
	r              *Reader
	b              *bounds
	at             uint64 // later commits are passed over
	namespace, key []byte
	hash           checkpoint.Hash
	reader         runReader
	g              Group
	found          *checkpoint.Entry
	err            error
}

// run looks everywhere, newest first, until an entry is confirmed.
func (q *query) run(x *index) (*checkpoint.Entry, error) {
	x.mu.RLock()
	fresh, lv := x.table.find(nil, q.hash), x.lv
	x.mu.RUnlock()
	for _, e := range fresh {
		if !q.visit(e) {
			return q.found, q.err
		}
	}
	var err error
	lv.each(func(r *run) bool {
		var goOn bool
		goOn, err = q.reader.find(r, q.hash, q.visit)
		return goOn && err == nil
	})
	if q.err != nil {
		err = q.err
	}
	return q.found, err
}

// visit confirms an entry against its record. It returns false if the search is
// over.
func (q *query) visit(e checkpoint.Entry) bool {
	if e.Revision > min(q.at, q.b.stop.rev) {
		return true // not to be seen yet
	}
	ok, err := q.confirm(&e)
	if err != nil {
		q.err = err
		return false
	}
	if ok {
		q.found = &e
	}
	return !ok
}

// confirm reports whether the commit that an entry leads to has this key for
// this record.
func (q *query) confirm(e *checkpoint.Entry) (bool, error) {
	if e.Revision <= q.b.begin.rev {
		return false, fmt.Errorf("the key leads to revision %d: %w", e.Revision, compacted(q.b))
	}
	if err := q.load(e); err != nil {
		return false, err
	}
	for record := range frame.Records(q.g.body) {
		if record.Kind != frame.KindIndexKey {
			continue
		}
		k, err := checkpoint.DecodeKey(record.Data)
		if err == nil && k.Record == e.Record && bytes.Equal(k.Key, q.key) && bytes.Equal(k.Namespace, q.namespace) {
			return true, nil
		}
	}
	return false, nil
}

// load reads the commit of an entry: where it was when the entry was written,
// or else where it is.
func (q *query) load(e *checkpoint.Entry) error {
	if q.r.geo.MayStart(e.Offset) && e.Offset > q.b.begin.end && e.Offset < q.b.stop.end {
		q.r.prepare(&q.g, q.b, frame.MinPageSize)
		if q.r.load(&q.g, e.Offset, e.Revision, q.b) == nil {
			return nil
		}
	}
	return q.r.at(e.Revision, &q.g, q.b)
}

// indexNow returns the index and bounds that it reaches up to.
func (r *Reader) indexNow(behind uint64) (*index, bounds, error) {
	if r.live != nil { // the index may be ahead of the bounds by the time it is looked at
		b, err := r.bounds()
		return r.live.index, b, err
	}
	b, err := r.bounds()
	if err != nil {
		return nil, b, err
	}
	s := &r.lookups
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.index == nil || behind == 0 || b.stop.rev-min(s.index.through, b.stop.rev) > behind {
		if err := r.loadIndex(&b); err != nil {
			return nil, b, err
		}
	}
	return s.index, b, r.catchUp(s.index, &b)
}

// loadIndex takes up the index from the newest checkpoint, unless that is the
// one it was taken up from.
func (r *Reader) loadIndex(b *bounds) error {
	h, err := r.readSlots()
	if err != nil {
		return err
	}
	s := &r.lookups
	if newest := h.newest(); s.index != nil && newest != nil && newest.Check == s.check {
		return nil
	}
	checks, err := lastCheckpoint(r, h, b)
	if err != nil {
		return err
	}
	var old *levels
	if s.index != nil {
		old = s.index.lv
	}
	s.check = checks.last.group
	s.index = newIndex(r, h, &checks, old)
	return nil
}

// newIndex takes up the index from a checkpoint, or, where there is none, from
// the beginning, or from where a slot says that there are no keys before it.
func newIndex(r *Reader, h *header, c *checkpoints, old *levels) *index {
	x := &index{lv: newLevels(&c.index), through: c.last.group.Revision}
	reader := runReader{file: r.file, geo: r.geo}
	if c.last.end != 0 {
		x.lv.reuse(old)
		x.lv.load(&reader)
		return x
	}
	begin := r.oldest()
	x.through = begin.rev
	if begin.rev > r.id.Base.Revision {
		x.lv.since = begin.rev
	}
	if s := h.newest(); s != nil && s.Features.Compat&frame.FeatureKeys == 0 {
		x.through, x.lv.since = max(x.through, s.Durable.Revision), 0
	}
	return x
}

// reuse takes runs that are in memory from an older view of the same index.
func (v *levels) reuse(old *levels) {
	if old == nil {
		return
	}
	known := map[uint64]*run{}
	old.each(func(r *run) bool {
		if r.keys != nil {
			known[r.Number] = r
		}
		return true
	})
	for i := range 2 {
		for j, r := range v.all[i].incoming {
			if k := known[r.Number]; k != nil {
				v.all[i].incoming[j] = k
			}
		}
	}
}

// catchUp adds the keys of the commits behind what the index holds.
func (r *Reader) catchUp(x *index, b *bounds) error {
	if x.through >= b.stop.rev {
		return nil
	}
	from := max(x.through, b.begin.rev)
	g, err := r.startAfter(from, b)
	if err != nil {
		return err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	var entries []checkpoint.Entry
	err = r.each(g, b, func(g *Group) bool {
		entries = appendKeys(entries[:0], g, r.id)
		x.table.add(entries)
		x.through = g.Revision
		if len(x.table.entries) > mostInRAM {
			x.table = table{}
			x.lv.since = b.stop.rev // it is too much: only Reindex can do this
		}
		return true
	})
	if err == nil || errors.Is(err, errStopped) || b.damage != nil && errors.Is(err, ErrCorrupt) {
		x.through = b.stop.rev
		return nil
	}
	return err
}

// appendKeys appends the entries of a commit's keys.
func appendKeys(dst []checkpoint.Entry, g *Group, id *frame.Identity) []checkpoint.Entry {
	for record := range frame.Records(g.body) {
		if record.Kind != frame.KindIndexKey {
			continue
		}
		if k, err := checkpoint.DecodeKey(record.Data); err == nil {
			dst = append(dst, checkpoint.Entry{
				Hash: checkpoint.HashKey(id.IndexKey, k.Namespace, k.Key), Record: k.Record, Revision: g.Revision, Offset: g.start,
			})
		}
	}
	return dst
}
