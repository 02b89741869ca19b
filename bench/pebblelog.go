package bench

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"

	"github.com/cockroachdb/pebble/v2/record"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/prometheus/client_golang/prometheus"
)

func pebbleLogPeer() Peer {
	return Peer{
		Name: "pebble log", Kind: Rival, Module: "github.com/cockroachdb/pebble/v2", Open: openPebbleLog,
		Traits: Traits{
			Sums: SumsVerified, Reads: ReadsNone,
			Note: "record.LogWriter alone: no groups, no numbers, cannot be opened again for writing",
		},
	}
}

// pebbleLog is one file of pebble's write-ahead log.
type pebbleLog struct {
	writer   *record.LogWriter
	path     string
	deferred bool
	slots    chan struct{} // bounds the syncs that wait, as pebble's commit pipeline does

	mu    sync.Mutex // the writer takes one record at a time
	count uint64
}

const (
	pebbleLogNumber      = 1
	pebbleLogPreallocate = 64 << 20
)

func openPebbleLog(o Options) (Store, error) {
	p := &pebbleLog{
		path:     filepath.Join(o.Dir, "000001.log"),
		deferred: o.Mode == Deferred,
		slots:    make(chan struct{}, record.SyncConcurrency),
	}
	f, err := vfs.Default.Create(p.path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, err
	}
	syncing := vfs.NewSyncingFile(f, vfs.SyncingFileOptions{PreallocateSize: pebbleLogPreallocate})
	p.writer = record.NewLogWriter(syncing, pebbleLogNumber, record.LogWriterConfig{
		QueueSemChan:        p.slots,
		WALFsyncLatency:     prometheus.NewHistogram(prometheus.HistogramOpts{Name: "unused"}),
		WriteWALSyncOffsets: func() bool { return false },
	})
	return p, nil
}

func (p *pebbleLog) Commit(group [][]byte) error {
	if !p.deferred {
		return p.commitSynced(group)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.write(group)
}

// write queues records without a sync. The caller holds mu.
func (p *pebbleLog) write(group [][]byte) error {
	for _, r := range group {
		if _, err := p.writer.WriteRecord(r); err != nil {
			return err
		}
		p.count++
	}
	return nil
}

// commitSynced queues a group and waits for the sync its last record asks for.
func (p *pebbleLog) commitSynced(group [][]byte) error {
	last := len(group) - 1
	p.slots <- struct{}{}
	p.mu.Lock()
	err := p.write(group[:last])
	if err == nil {
		p.count++
	}
	done, syncErr := p.syncRecord(group[last], err)
	p.mu.Unlock()
	done.Wait()
	return errors.Join(err, *syncErr)
}

// syncRecord queues a record whose sync the returned group waits for, unless
// an error came before. The caller holds mu and a slot, which the writer frees.
func (p *pebbleLog) syncRecord(r []byte, before error) (*sync.WaitGroup, *error) {
	done, syncErr := new(sync.WaitGroup), new(error)
	if before != nil {
		return done, syncErr
	}
	done.Add(1)
	if _, err := p.writer.SyncRecord(r, done, syncErr); err != nil {
		done.Done()
		return done, &err
	}
	return done, syncErr
}

// Sync asks for one sync with an empty record, which Replay leaves out.
func (p *pebbleLog) Sync() error {
	p.slots <- struct{}{}
	p.mu.Lock()
	done, err := p.syncRecord(nil, nil)
	p.mu.Unlock()
	done.Wait()
	return *err
}

func (p *pebbleLog) Replay(visit func(record []byte)) error {
	f, err := os.Open(p.path)
	if err != nil {
		return err
	}
	reader := record.NewReader(f, pebbleLogNumber)
	var buf bytes.Buffer
	for {
		r, err := reader.Next()
		if err == nil {
			buf.Reset()
			_, err = buf.ReadFrom(r)
		}
		if errors.Is(err, io.EOF) || record.IsInvalidRecord(err) {
			return f.Close() // the end: preallocated zeros are no record
		}
		if err != nil {
			return closeWith(err, f)
		}
		if buf.Len() > 0 {
			visit(buf.Bytes())
		}
	}
}

func (p *pebbleLog) ReadAt(uint64, []byte) ([]byte, error) { return nil, errors.ErrUnsupported }

func (p *pebbleLog) Len() uint64 { return p.count }

func (p *pebbleLog) Close() error { return p.writer.Close() }
