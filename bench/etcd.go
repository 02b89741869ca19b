package bench

import (
	"errors"
	"io"
	"path/filepath"
	"sync"

	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"
)

func etcdPeer() Peer {
	return Peer{
		Name: "etcd wal", Kind: Rival, Module: "go.etcd.io/etcd/server/v3", Open: openEtcd, Verify: verifyEtcd,
		Traits: Traits{
			Sums: SumsVerified, Reads: ReadsNone, Reopens: true,
			Note: "a group cut by a crash keeps its first records; opening reads the whole log into memory",
		},
	}
}

// etcdWAL numbers records from 1, as Raft does.
type etcdWAL struct {
	wal *wal.WAL
	dir string

	mu   sync.Mutex
	last uint64 // index of the last record
}

func openEtcd(o Options) (Store, error) {
	p := &etcdWAL{dir: filepath.Join(o.Dir, "wal")}
	var err error
	if wal.Exist(p.dir) {
		err = p.reopen()
	} else {
		p.wal, err = wal.Create(zap.NewNop(), p.dir, nil)
	}
	if err != nil {
		return nil, err
	}
	if o.Mode == Deferred {
		p.wal.SetUnsafeNoFsync()
	}
	return p, nil
}

// reopen reads the log to its end, which its writer demands before it writes.
// A record that a kill cut short is for its user to repair, once.
func (p *etcdWAL) reopen() error {
	err := p.readToEnd()
	if errors.Is(err, io.ErrUnexpectedEOF) && wal.Repair(zap.NewNop(), p.dir) {
		err = p.readToEnd()
	}
	return err
}

func (p *etcdWAL) readToEnd() error {
	w, err := wal.Open(zap.NewNop(), p.dir, &walpb.Snapshot{})
	if err != nil {
		return err
	}
	_, _, entries, err := w.ReadAll()
	if err != nil {
		return closeWith(err, w)
	}
	p.wal, p.last = w, uint64(len(entries))
	return nil
}

func (p *etcdWAL) Commit(group [][]byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	term := uint64(1)
	entries := make([]*raftpb.Entry, len(group))
	for i, record := range group {
		index := p.last + 1 + uint64(i)
		entries[i] = &raftpb.Entry{Term: &term, Index: &index, Type: raftpb.EntryType_EntryNormal.Enum(), Data: record}
	}
	err := p.wal.Save(nil, entries)
	if err == nil {
		p.last += uint64(len(group))
	}
	return err
}

func (p *etcdWAL) Sync() error {
	return errors.Join(p.wal.Sync(), syncTree(p.dir))
}

func (p *etcdWAL) Replay(visit func(record []byte)) error {
	w, err := wal.OpenForRead(zap.NewNop(), p.dir, &walpb.Snapshot{})
	if err != nil {
		return err
	}
	_, _, entries, err := w.ReadAll() // closes the files when it succeeds
	if err != nil {
		_ = w.Close() // reports the directory a reader never opened
		return err
	}
	for _, e := range entries {
		visit(e.Data)
	}
	return nil
}

func (p *etcdWAL) ReadAt(uint64, []byte) ([]byte, error) { return nil, errors.ErrUnsupported }

func (p *etcdWAL) Len() uint64 { return p.last }

func (p *etcdWAL) Close() error { return p.wal.Close() }

// verifyEtcd reads the log with one worker, all it has.
func verifyEtcd(o Options, _ int) error {
	_, err := wal.Verify(zap.NewNop(), filepath.Join(o.Dir, "wal"), &walpb.Snapshot{})
	return err
}
