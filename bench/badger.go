package bench

import (
	"encoding/binary"
	"sync/atomic"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"
)

func badgerPeer() Peer {
	return Peer{
		Name: "badger", Kind: Rival, Module: "github.com/dgraph-io/badger/v4", Open: openBadger,
		Traits: Traits{
			Sums: SumsWritten, Atomic: true, Index: true, Reads: ReadsMap, Reopens: true,
			Note: "a database: sorts by key and rewrites in the background; does not check the sums of tables it reads",
		},
	}
}

// badgerDB keeps record n under key n.
type badgerDB struct {
	db    *badger.DB
	count atomic.Uint64
}

func openBadger(o Options) (Store, error) {
	db, err := badger.Open(badger.DefaultOptions(o.Dir).
		WithSyncWrites(o.Mode == Durable).
		WithLogger(nil).
		WithCompression(options.None).
		WithDetectConflicts(false).
		WithMetricsEnabled(false))
	if err != nil {
		return nil, err
	}
	p := &badgerDB{db: db}
	err = db.View(func(tx *badger.Txn) error {
		it := tx.NewIterator(badger.IteratorOptions{Reverse: true})
		defer it.Close()
		if it.Rewind(); it.Valid() {
			p.count.Store(binary.BigEndian.Uint64(it.Item().Key()) + 1)
		}
		return nil
	})
	if err != nil {
		return nil, closeWith(err, db)
	}
	return p, nil
}

func (p *badgerDB) Commit(group [][]byte) error {
	end := p.count.Add(uint64(len(group)))
	first := end - uint64(len(group))
	return p.db.Update(func(tx *badger.Txn) error {
		for i, record := range group {
			if err := tx.Set(key(first+uint64(i)), record); err != nil {
				return err
			}
		}
		return nil
	})
}

func (p *badgerDB) Sync() error { return p.db.Sync() }

func (p *badgerDB) Replay(visit func(record []byte)) error {
	return p.db.View(func(tx *badger.Txn) error {
		it := tx.NewIterator(badger.DefaultIteratorOptions)
		defer it.Close()
		for it.Rewind(); it.Valid(); it.Next() {
			err := it.Item().Value(func(record []byte) error {
				visit(record)
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func (p *badgerDB) ReadAt(n uint64, buf []byte) ([]byte, error) {
	err := p.db.View(func(tx *badger.Txn) error {
		item, err := tx.Get(key(n))
		if err != nil {
			return err
		}
		buf, err = item.ValueCopy(buf[:0])
		return err
	})
	return buf, err
}

func (p *badgerDB) Len() uint64 { return p.count.Load() }

func (p *badgerDB) Close() error { return p.db.Close() }
