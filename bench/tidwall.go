package bench

import (
	"sync"

	"github.com/tidwall/wal"
)

func tidwallPeer() Peer {
	return Peer{
		Name: "tidwall/wal", Kind: Rival, Module: "github.com/tidwall/wal", Light: true, Open: openTidwall,
		Traits: Traits{
			Sums: SumsNone, Reads: ReadsCache, Reopens: true,
			Note: "a record cut by a crash makes the log refuse to open; whole segments are kept in memory; growing files",
		},
	}
}

// tidwallLog numbers records from 1.
type tidwallLog struct {
	log *wal.Log

	mu    sync.Mutex
	last  uint64 // index of the last record
	batch wal.Batch
}

func openTidwall(o Options) (Store, error) {
	options := *wal.DefaultOptions
	options.NoSync = o.Mode == Deferred
	log, err := wal.Open(o.Dir, &options)
	if err != nil {
		return nil, err
	}
	p := &tidwallLog{log: log}
	p.last, err = log.LastIndex()
	if err != nil {
		return nil, closeWith(err, p)
	}
	return p, nil
}

func (p *tidwallLog) Commit(group [][]byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.batch.Clear()
	for i, record := range group {
		p.batch.Write(p.last+1+uint64(i), record)
	}
	err := p.log.WriteBatch(&p.batch)
	if err == nil {
		p.last += uint64(len(group))
	}
	return err
}

func (p *tidwallLog) Sync() error { return p.log.Sync() }

func (p *tidwallLog) Replay(visit func(record []byte)) error {
	for i := uint64(1); i <= p.last; i++ {
		record, err := p.log.Read(i)
		if err != nil {
			return err
		}
		visit(record)
	}
	return nil
}

func (p *tidwallLog) ReadAt(n uint64, _ []byte) ([]byte, error) { return p.log.Read(n + 1) }

func (p *tidwallLog) Len() uint64 { return p.last }

func (p *tidwallLog) Close() error { return p.log.Close() }
