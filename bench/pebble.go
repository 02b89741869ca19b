package bench

import (
	"encoding/binary"
	"fmt"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
)

func pebblePeer() Peer {
	return Peer{
		Name: "pebble", Kind: Rival, Module: "github.com/cockroachdb/pebble/v2", Open: openPebble,
		Traits: Traits{
			Sums: SumsVerified, Atomic: true, Index: true, Reads: ReadsCache, Reopens: true,
			Note: "a database: sorts by key and rewrites in the background; commits share a sync of its log",
		},
	}
}

// pebbleDB keeps record n under key n.
type pebbleDB struct {
	db    *pebble.DB
	write *pebble.WriteOptions
	count atomic.Uint64
}

// pebbleMemTable is large enough that commits seldom wait for a flush.
const pebbleMemTable = 64 << 20

func openPebble(o Options) (Store, error) {
	db, err := pebble.Open(o.Dir, &pebble.Options{Logger: silentPebble{}, MemTableSize: pebbleMemTable})
	if err != nil {
		return nil, err
	}
	p := &pebbleDB{db: db, write: pebble.Sync}
	if o.Mode == Deferred {
		p.write = pebble.NoSync
	}
	if err := p.findEnd(); err != nil {
		return nil, closeWith(err, p)
	}
	return p, nil
}

func (p *pebbleDB) findEnd() error {
	it, err := p.db.NewIter(nil)
	if err != nil {
		return err
	}
	if it.Last() {
		p.count.Store(binary.BigEndian.Uint64(it.Key()) + 1)
	}
	return it.Close()
}

func (p *pebbleDB) Commit(group [][]byte) error {
	end := p.count.Add(uint64(len(group)))
	first := end - uint64(len(group))
	if len(group) == 1 {
		return p.db.Set(key(first), group[0], p.write)
	}
	batch := p.db.NewBatch()
	for i, record := range group {
		if err := batch.Set(key(first+uint64(i)), record, nil); err != nil {
			return closeWith(err, batch)
		}
	}
	return closeWith(batch.Commit(p.write), batch)
}

func (p *pebbleDB) Sync() error { return p.db.LogData(nil, pebble.Sync) }

func (p *pebbleDB) Replay(visit func(record []byte)) error {
	it, err := p.db.NewIter(nil)
	if err != nil {
		return err
	}
	for ok := it.First(); ok; ok = it.Next() {
		record, err := it.ValueAndErr()
		if err != nil {
			return closeWith(err, it)
		}
		visit(record)
	}
	return closeWith(it.Error(), it)
}

func (p *pebbleDB) ReadAt(n uint64, buf []byte) ([]byte, error) {
	record, done, err := p.db.Get(key(n))
	if err != nil {
		return nil, err
	}
	return append(buf[:0], record...), done.Close()
}

func (p *pebbleDB) Len() uint64 { return p.count.Load() }

func (p *pebbleDB) Close() error { return p.db.Close() }

// silentPebble drops what pebble would print.
type silentPebble struct{}

func (silentPebble) Infof(string, ...any)  {}
func (silentPebble) Errorf(string, ...any) {}

func (silentPebble) Fatalf(format string, args ...any) {
	panic(fmt.Sprintf("pebble: "+format, args...))
}
