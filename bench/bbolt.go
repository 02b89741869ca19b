package bench

import (
	"encoding/binary"
	"path/filepath"
	"sync/atomic"
	"time"

	"go.etcd.io/bbolt"
)

func bboltPeer() Peer {
	return Peer{
		Name: "bbolt", Kind: Rival, Module: "go.etcd.io/bbolt", Light: true, Open: openBbolt,
		Traits: Traits{
			Sums: SumsNone, Atomic: true, Index: true, Reads: ReadsMap, Reopens: true,
			Note: "a B+ tree that rewrites pages: two syncs a commit; sums only its two meta pages",
		},
	}
}

// bboltDB keeps record n under key n in one bucket.
type bboltDB struct {
	db     *bbolt.DB
	shared bool // callers share transactions
	count  atomic.Uint64
}

var bboltBucket = []byte("log")

// bboltDelay is how long a shared transaction waits for more callers.
const bboltDelay = 500 * time.Microsecond

func openBbolt(o Options) (Store, error) {
	db, err := bbolt.Open(filepath.Join(o.Dir, "bolt.db"), 0o600, &bbolt.Options{
		FreelistType: bbolt.FreelistMapType, NoFreelistSync: true, NoSync: o.Mode == Deferred,
	})
	if err != nil {
		return nil, err
	}
	p := &bboltDB{db: db, shared: o.Callers > 1}
	db.MaxBatchDelay, db.MaxBatchSize = bboltDelay, max(1, o.Callers)
	err = db.Update(func(tx *bbolt.Tx) error {
		bucket, err := tx.CreateBucketIfNotExists(bboltBucket)
		if err != nil {
			return err
		}
		if last, _ := bucket.Cursor().Last(); last != nil {
			p.count.Store(binary.BigEndian.Uint64(last) + 1)
		}
		return nil
	})
	if err != nil {
		return nil, closeWith(err, db)
	}
	return p, nil
}

func (p *bboltDB) Commit(group [][]byte) error {
	end := p.count.Add(uint64(len(group)))
	first := end - uint64(len(group))
	put := func(tx *bbolt.Tx) error {
		bucket := tx.Bucket(bboltBucket)
		bucket.FillPercent = 1 // keys only ever grow
		for i, record := range group {
			if err := bucket.Put(key(first+uint64(i)), record); err != nil {
				return err
			}
		}
		return nil
	}
	if p.shared {
		return p.db.Batch(put)
	}
	return p.db.Update(put)
}

func (p *bboltDB) Sync() error { return p.db.Sync() }

func (p *bboltDB) Replay(visit func(record []byte)) error {
	return p.db.View(func(tx *bbolt.Tx) error {
		return tx.Bucket(bboltBucket).ForEach(func(_, record []byte) error {
			visit(record)
			return nil
		})
	})
}

func (p *bboltDB) ReadAt(n uint64, buf []byte) ([]byte, error) {
	buf = buf[:0]
	err := p.db.View(func(tx *bbolt.Tx) error {
		buf = append(buf, tx.Bucket(bboltBucket).Get(key(n))...)
		return nil
	})
	return buf, err
}

func (p *bboltDB) Len() uint64 { return p.count.Load() }

func (p *bboltDB) Close() error { return p.db.Close() }
