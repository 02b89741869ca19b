package bench

import (
	"sync"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	raftwal "github.com/hashicorp/raft-wal"
	"github.com/hashicorp/raft-wal/fs"
	"github.com/hashicorp/raft-wal/metadb"
	"github.com/hashicorp/raft-wal/segment"
	"github.com/hashicorp/raft-wal/types"
)

func raftWALPeer() Peer {
	return Peer{
		Name: "raft-wal", Kind: Rival, Module: "github.com/hashicorp/raft-wal", Open: openRaftWAL,
		Traits: Traits{
			Sums: SumsWritten, Atomic: true, Reads: ReadsFile, Reopens: true,
			Note: "sums a commit and checks it only when it recovers the last segment; dense numbers, no keys",
		},
	}
}

// raftWAL numbers records from 1, as Raft does.
type raftWAL struct {
	wal  *raftwal.WAL
	meta *metadb.BoltMetaDB // the log leaves it open, and locked, when it closes
	dir  string

	mu   sync.Mutex
	last uint64 // index of the last record
	read raft.Log
}

func openRaftWAL(o Options) (Store, error) {
	p := &raftWAL{meta: &metadb.BoltMetaDB{}, dir: o.Dir}
	var files types.VFS = fs.New()
	if o.Mode == Deferred {
		files = unsyncedFS{files}
	}
	var err error
	p.wal, err = raftwal.Open(o.Dir,
		raftwal.WithLogger(hclog.NewNullLogger()),
		raftwal.WithMetaStore(p.meta),
		raftwal.WithSegmentFiler(segment.NewFiler(o.Dir, files)))
	if err != nil {
		return nil, err
	}
	p.last, err = p.wal.LastIndex()
	if err != nil {
		return nil, closeWith(err, p)
	}
	return p, nil
}

func (p *raftWAL) Commit(group [][]byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	logs := make([]*raft.Log, len(group))
	for i, record := range group {
		logs[i] = &raft.Log{Index: p.last + 1 + uint64(i), Term: 1, Data: record}
	}
	err := p.wal.StoreLogs(logs)
	if err == nil {
		p.last += uint64(len(group))
	}
	return err
}

func (p *raftWAL) Sync() error { return syncTree(p.dir) }

func (p *raftWAL) Replay(visit func(record []byte)) error {
	var log raft.Log
	for i := uint64(1); i <= p.last; i++ {
		if err := p.wal.GetLog(i, &log); err != nil {
			return err
		}
		visit(log.Data)
	}
	return nil
}

func (p *raftWAL) ReadAt(n uint64, _ []byte) ([]byte, error) {
	err := p.wal.GetLog(n+1, &p.read)
	return p.read.Data, err
}

func (p *raftWAL) Len() uint64 { return p.last }

func (p *raftWAL) Close() error { return closeWith(nil, p.wal, p.meta) }

// unsyncedFS hands out segment files whose Sync does nothing, since the log
// itself has no way to commit without syncing.
type unsyncedFS struct{ types.VFS }

func (v unsyncedFS) Create(dir, name string, size uint64) (types.WritableFile, error) {
	f, err := v.VFS.Create(dir, name, size)
	return unsyncedFile{f}, err
}

func (v unsyncedFS) OpenWriter(dir, name string) (types.WritableFile, error) {
	f, err := v.VFS.OpenWriter(dir, name)
	return unsyncedFile{f}, err
}

type unsyncedFile struct{ types.WritableFile }

func (unsyncedFile) Sync() error { return nil }
