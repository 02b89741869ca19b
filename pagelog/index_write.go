package pagelog

import (
	"slices"

	"github.com/tidemark-log/tidemark/checkpoint"
	"github.com/tidemark-log/tidemark/frame"
)

// The writer's side of the keyed index. Everything here belongs to the writing
// role: a write is planned on a copy, and adopted or forgotten as a whole.

// indexer plans what a write does to the index.
type indexer struct {
	merge  merger
	credit int   // entries that may be merged
	broken error // a run cannot be read: nothing is merged any more
	lean   bool  // add nothing that can wait: space is short

	// The plan of the write under way.
	lv     *levels // a copy that may be changed; nil: nothing changes
	keys   []checkpoint.Entry
	from   int  // keys[from:] are in no run yet
	fresh  bool // the table's keys are in a run now
	placed int  // entries merged
	extra  bool // a checkpoint that nobody asked for
}

// begin forgets the plan of the last write.
func (p *indexer) begin() {
	p.lv, p.keys, p.from, p.fresh, p.placed, p.extra = nil, p.keys[:0], 0, false, 0, false
}

// add takes note of the keys of a commit.
func (p *indexer) add(keys []checkpoint.Entry, revision uint64, start int64) {
	for _, e := range keys {
		e.Revision, e.Offset = revision, start
		p.keys = append(p.keys, e)
	}
}

// change returns the levels to change.
func (p *indexer) change(x *index) *levels {
	if p.lv == nil {
		lv := *x.lv
		p.lv = &lv
	}
	return p.lv
}

// due reports whether the keys in memory call for a checkpoint.
func (p *indexer) due(x *index) bool {
	return !p.lean && len(x.table.entries)+len(p.keys)-p.from >= tableKeys && !p.fresh
}

// flush writes the keys that no run holds.
func (p *indexer) flush(x *index, place placer) error {
	var entries []checkpoint.Entry
	if !p.fresh {
		entries = slices.Clone(x.table.entries)
	}
	entries = append(entries, p.keys[p.from:]...)
	if len(entries) == 0 {
		return nil
	}
	if err := p.change(x).flush(entries, place); err != nil {
		return err
	}
	p.fresh, p.from = true, len(p.keys)
	return nil
}

// merges does the merging that is due, a bounded amount.
func (p *indexer) merges(x *index, place placer) {
	lv := x.lv
	if p.lv != nil {
		lv = p.lv
	}
	n, _ := lv.merges()
	if n == 0 || p.broken != nil || p.lean {
		return
	}
	p.credit += len(p.keys) * mergePace * n
	for range 2 + len(p.keys)/512 {
		n, first := lv.merges()
		if n == 0 || p.credit-p.placed <= 0 {
			break
		}
		lv = p.change(x)
		entries, err := p.merge.step(lv, first, place)
		if err != nil {
			p.broken = err
			p.merge.drop()
			return
		}
		p.placed += max(entries, 1)
	}
}

// forget drops the plan of a write that failed.
func (p *indexer) forget() {
	p.begin()
	p.merge.drop()
}

// adopt makes the plan the index. The log's mutex is held.
func (p *indexer) adopt(x *index, through uint64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	p.credit = min(p.credit-p.placed, 64*pieceEntries)
	if p.lv != nil {
		x.lv = p.lv
	}
	if p.fresh {
		x.table.reset()
	}
	x.table.add(p.keys[p.from:])
	if x.teeing {
		x.tee = append(x.tee, p.keys...)
	}
	x.through = through
	p.begin()
	if cap(p.keys) > 4*tableKeys {
		p.keys = nil
	}
}

// reset empties the table, keeping its memory unless it is large.
func (t *table) reset() {
	if len(t.entries) > 4*tableKeys {
		*t = table{}
		return
	}
	t.entries, t.before = t.entries[:0], t.before[:0]
	clear(t.newest)
}

// placeIn returns the placer that lays pieces out behind *head in the write
// under way.
func (l *Log) placeIn(head *point, now int64) placer {
	return func(payload []byte) (int64, error) {
		start := l.geo.Start(head.end)
		body := frame.AppendRecord(nil, frame.KindIndexRun, 0, frame.Plain, payload)
		*head = l.addDerived(*head, body, 1, now)
		return start, nil
	}
}

// addDerived lays out a derived group behind head.
func (l *Log) addDerived(head point, body []byte, count uint32, now int64) point {
	h := derivedHeader(head, body, count, now)
	head.last = last{l.geo.Start(head.end), h.Digest}
	head.end = l.builder.Add(&h, body)
	return head
}

func derivedHeader(head point, body []byte, count uint32, now int64) frame.GroupHeader {
	h := frame.GroupHeader{
		Flags: frame.FlagDerived, Count: count, Revision: head.rev, Body: int64(len(body)),
		Prev: head.digest, Epoch: head.epoch, Time: now,
	}
	h.Digest = h.ChainDigest(body)
	return h
}

// Key makes the record that was added last findable under a key in a
// namespace, with Reader.Lookup: up to 1,024 bytes, in a namespace of up to
// 255. A key that is used again leads to its newest record. The bytes are
// copied. A key is a record of the commit, too, of kind frame.KindIndexKey, and
// counts as one. What is wrong is found when the batch is committed.
func (b *Batch) Key(namespace, key []byte) {
	if b.err != nil {
		return
	}
	if b.err = checkKey(namespace, key); b.err != nil {
		return
	}
	if b.count == 0 {
		b.err = ErrEmpty
		return
	}
	target := b.count - 1
	if len(b.keys) > 0 && b.keys[len(b.keys)-1].index == target {
		target = b.keys[len(b.keys)-1].target
	}
	var stack [512]byte
	payload := checkpoint.AppendKey(stack[:0], checkpoint.Key{Record: uint32(target), Namespace: namespace, Key: key})
	b.detach()
	at := len(b.body)
	b.add(frame.KindIndexKey, 0, frame.Plain, payload)
	b.keys = append(b.keys, batchKey{at, b.count - 1, target})
}

// batchKey is a key record in a batch.
type batchKey struct {
	at     int // where in the body it begins
	index  int // of the record
	target int // record it points to
}

// hashKeys fills in the entries of a batch's keys, as far as they are known
// before the commit has a revision.
func (b *Batch) hashKeys(indexKey [16]byte) []checkpoint.Entry {
	b.entries = b.entries[:0]
	for _, k := range b.keys {
		record, _, _ := frame.NextRecord(b.body[k.at:])
		key, err := checkpoint.DecodeKey(record.Data)
		if err != nil {
			panic("internal error: key record does not decode: " + err.Error())
		}
		b.entries = append(b.entries, checkpoint.Entry{Hash: checkpoint.HashKey(indexKey, key.Namespace, key.Key), Record: key.Record})
	}
	return b.entries
}

// listed returns the index as the checkpoint under way lists it.
func (p *indexer) listed(x *index) checkpoint.Index {
	if p.lv != nil {
		return p.lv.list()
	}
	return x.lv.list()
}

// optional reports whether the plan holds what can wait.
func (p *indexer) optional() bool { return p.placed > 0 || p.fresh || p.extra }

// swap makes lv the index, with the keys that were added since it was begun.
func (p *indexer) swap(x *index, lv *levels) {
	x.mu.RLock()
	p.keys = append(slices.Clone(x.tee), p.keys...)
	x.mu.RUnlock()
	p.lv, p.from, p.fresh, p.broken = lv, 0, true, nil
	p.merge.drop()
}

// adoptKeys makes what a write did to the index the index. mu is held.
func (l *Log) adoptKeys(next point) {
	if len(l.indexer.keys) > 0 {
		l.features.Compat |= frame.FeatureKeys
	}
	l.indexer.adopt(l.index, next.rev)
}
