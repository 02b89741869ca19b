package bench

import (
	"errors"
	"log/slog"
	"sync"

	"github.com/prometheus/prometheus/tsdb/wlog"
	"github.com/prometheus/prometheus/util/compression"
)

func wlogPeer() Peer {
	return Peer{
		Name: "prometheus wlog", Kind: Rival, Module: "github.com/prometheus/prometheus", Light: true, Open: openWlog,
		Traits: Traits{
			Sums: SumsVerified, Reads: ReadsNone, Reopens: true,
			Note: "no groups, no numbers; must be read to its end before it is written again; " +
				"does not wait for the sync of a segment it has left",
		},
	}
}

// wlogLog is a write log in segments.
type wlogLog struct {
	wal  *wlog.WL
	dir  string
	mode Mode

	mu    sync.Mutex
	count uint64
}

func openWlog(o Options) (Store, error) {
	wal, err := wlog.New(slog.New(slog.DiscardHandler), nil, o.Dir, compression.None)
	if err != nil {
		return nil, err
	}
	p := &wlogLog{wal: wal, dir: o.Dir, mode: o.Mode}
	if err := p.findEnd(); err != nil {
		return nil, closeWith(err, p)
	}
	return p, nil
}

// findEnd reads the log, as its writer demands. A record that a kill cut short
// is for its user to repair, once.
func (p *wlogLog) findEnd() error {
	err := p.readToEnd()
	var corrupt *wlog.CorruptionErr
	if errors.As(err, &corrupt) {
		if err := p.wal.Repair(err); err != nil {
			return err
		}
		err = p.readToEnd()
	}
	return err
}

func (p *wlogLog) readToEnd() error {
	p.count = 0
	return p.Replay(func([]byte) { p.count++ })
}

func (p *wlogLog) Commit(group [][]byte) error {
	p.mu.Lock()
	p.count += uint64(len(group))
	p.mu.Unlock()
	if err := p.wal.Log(group...); err != nil || p.mode == Deferred {
		return err
	}
	return p.wal.Sync()
}

func (p *wlogLog) Sync() error { return errors.Join(p.wal.Sync(), syncTree(p.dir)) }

func (p *wlogLog) Replay(visit func(record []byte)) error {
	segments, err := wlog.NewSegmentsReader(p.dir)
	if err != nil {
		return err
	}
	reader := wlog.NewReader(segments)
	for reader.Next() {
		visit(reader.Record())
	}
	return closeWith(reader.Err(), segments)
}

func (p *wlogLog) ReadAt(uint64, []byte) ([]byte, error) { return nil, errors.ErrUnsupported }

func (p *wlogLog) Len() uint64 { return p.count }

func (p *wlogLog) Close() error { return p.wal.Close() }
