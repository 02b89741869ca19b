package bench

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sync"

	"github.com/tidemark-log/tidemark/pagelog"
)

// Names of the ways Tidemark takes part.
const (
	TidemarkName     = "Tidemark"
	TidemarkGrowName = "Tidemark grow"
	TidemarkHintName = "Tidemark hint"
)

func tidemarkPeers() []Peer {
	peer := func(name, note string, policy pagelog.ZeroAhead) Peer {
		return Peer{
			Name: name, Kind: Subject, Module: "github.com/tidemark-log/tidemark", Light: true,
			Traits: Traits{Sums: SumsVerified, Atomic: true, Reads: ReadsFile, Reopens: true, Note: note},
			Open:   func(o Options) (Store, error) { return openTidemark(o, policy) },
			Verify: verifyTidemark,
			Follow: followTidemark,
		}
	}
	auto := peer(TidemarkName, "as it comes", pagelog.ZeroAheadAuto)
	grow := peer(TidemarkGrowName, "without writing zeros ahead, as on copy-on-write file systems", pagelog.ZeroAheadOff)
	grow.Workloads = []string{"W1", "W2", "W4", "W5"}
	hint := peer(TidemarkHintName, "reads from where the host kept that a commit lies", pagelog.ZeroAheadAuto)
	hint.Workloads = []string{"W7"}
	hint.Open = func(o Options) (Store, error) {
		s, err := openTidemark(o, pagelog.ZeroAheadAuto)
		if err != nil {
			return nil, err
		}
		return &tidemarkHinted{tidemarkLog: s.(*tidemarkLog)}, nil
	}
	return []Peer{auto, grow, hint}
}

// tidemarkDepth is how many deferred commits are handed over before the oldest
// is waited for.
const tidemarkDepth = 64

// tidemarkLog numbers commits from 1; records have no numbers of their own.
type tidemarkLog struct {
	log      *pagelog.Log
	group    int // records of every commit, 0 if they differ
	deferred bool
	batches  sync.Pool // of *pagelog.Batch, for durable commits
	read     pagelog.Group

	mu    sync.Mutex
	count uint64
	ring  []submitted // deferred commits, oldest at next; none if durable
	next  int
}

// submitted is a deferred commit on its way.
type submitted struct {
	batch  pagelog.Batch
	ticket *pagelog.Ticket // nil: none
}

func tidemarkPath(o Options) string { return filepath.Join(o.Dir, "tidemark.log") }

func openTidemark(o Options, policy pagelog.ZeroAhead) (Store, error) {
	p := &tidemarkLog{group: o.Group, deferred: o.Mode == Deferred}
	p.batches.New = func() any { return new(pagelog.Batch) }
	if p.deferred {
		p.ring = make([]submitted, tidemarkDepth)
	}
	options := pagelog.Options{ZeroAhead: policy}
	var err error
	p.log, err = pagelog.Open(tidemarkPath(o), options)
	if errors.Is(err, fs.ErrNotExist) {
		p.log, err = pagelog.Create(tidemarkPath(o), pagelog.CreateOptions{}, options)
	}
	if err != nil {
		return nil, err
	}
	if p.count, err = p.records(); err != nil {
		return nil, closeWith(err, p)
	}
	return p, nil
}

// records counts the records of the log just opened.
func (p *tidemarkLog) records() (uint64, error) {
	if p.group > 0 {
		return p.log.Head().Revision * uint64(p.group), nil
	}
	var n uint64
	for g, err := range p.log.Commits(0) {
		if err != nil {
			return 0, err
		}
		n += uint64(g.Count)
	}
	return n, nil
}

func (p *tidemarkLog) Commit(group [][]byte) error {
	if p.deferred {
		return p.submit(group)
	}
	b := p.batches.Get().(*pagelog.Batch)
	fillBatch(b, group)
	_, err := p.log.Commit(context.Background(), b)
	p.batches.Put(b)
	if err == nil {
		p.mu.Lock()
		p.count += uint64(len(group))
		p.mu.Unlock()
	}
	return err
}

func fillBatch(b *pagelog.Batch, group [][]byte) {
	b.Reset()
	for _, record := range group {
		b.Append(record)
	}
}

// submit hands a group over and waits only for the one that many before it.
func (p *tidemarkLog) submit(group [][]byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := &p.ring[p.next]
	if err := s.wait(); err != nil {
		return err
	}
	s.batch.CompleteOnly = true
	fillBatch(&s.batch, group)
	s.ticket = p.log.Submit(&s.batch)
	p.next = (p.next + 1) % len(p.ring)
	p.count += uint64(len(group))
	return nil
}

func (s *submitted) wait() error {
	if s.ticket == nil {
		return nil
	}
	_, err := s.ticket.Wait(context.Background())
	s.ticket = nil
	return err
}

func (p *tidemarkLog) Sync() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.ring {
		if err := p.ring[(p.next+i)%len(p.ring)].wait(); err != nil {
			return err
		}
	}
	return p.log.Sync(context.Background())
}

func (p *tidemarkLog) Replay(visit func(record []byte)) error {
	for g, err := range p.log.Commits(0) {
		if err != nil {
			return err
		}
		for record, err := range g.Records() {
			if err != nil {
				return err
			}
			visit(record.Data)
		}
	}
	return nil
}

// ReadAt reads a commit by revision. Where commits differ in size, it has to
// count records to find the revision, which no workload does.
func (p *tidemarkLog) ReadAt(n uint64, _ []byte) ([]byte, error) { return p.readAt(n, 0) }

// tidemarkHinted is read by a host that keeps where commits lie, as an index
// does.
type tidemarkHinted struct {
	*tidemarkLog
	offsets map[uint64]int64 // by revision
}

// Replay notes where commits lie.
func (p *tidemarkHinted) Replay(visit func(record []byte)) error {
	p.offsets = map[uint64]int64{}
	for g, err := range p.log.Commits(0) {
		if err != nil {
			return err
		}
		p.offsets[g.Revision] = g.Offset()
	}
	return p.tidemarkLog.Replay(visit)
}

func (p *tidemarkHinted) ReadAt(n uint64, _ []byte) ([]byte, error) {
	if p.group == 0 {
		return p.readAt(n, 0)
	}
	return p.readAt(n, p.offsets[n/uint64(p.group)+1])
}

func (p *tidemarkLog) readAt(n uint64, hint int64) ([]byte, error) {
	revision, skip := uint64(0), n
	if p.group > 0 {
		revision, skip = n/uint64(p.group)+1, n%uint64(p.group)
	} else {
		var err error
		if revision, skip, err = p.find(n); err != nil {
			return nil, err
		}
	}
	if err := p.log.AtHint(revision, hint, &p.read); err != nil {
		return nil, err
	}
	for record, err := range p.read.Records() {
		if err != nil || skip == 0 {
			return record.Data, err
		}
		skip--
	}
	return nil, pagelog.ErrNotFound
}

// find counts up to record n and returns its revision and its place there.
func (p *tidemarkLog) find(n uint64) (revision, skip uint64, err error) {
	for g, err := range p.log.Commits(0) {
		if err != nil {
			return 0, 0, err
		}
		if revision = g.Revision; n < uint64(g.Count) {
			break
		}
		n -= uint64(g.Count)
	}
	return revision, n, nil
}

func (p *tidemarkLog) Len() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.count
}

func (p *tidemarkLog) Close() error { return p.log.Close() }

// verifyTidemark checks every byte, structure and sum of a closed log.
func verifyTidemark(o Options, workers int) error {
	found, err := pagelog.Verify(context.Background(), tidemarkPath(o), pagelog.VerifyOptions{Workers: workers})
	if err == nil && !found.Sound() {
		err = fmt.Errorf("%w: %v", pagelog.ErrCorrupt, found.Findings)
	}
	return err
}

// followTidemark waits for commits as any other process would.
func followTidemark(o Options, visit func(record []byte) bool) error {
	r, err := pagelog.OpenReader(tidemarkPath(o), pagelog.ReaderOptions{Durable: o.Mode == Durable})
	if err != nil {
		return err
	}
	for g, err := range r.Follow(context.Background(), 0) {
		if err != nil {
			return closeWith(err, r)
		}
		for record, err := range g.Records() {
			if err != nil {
				return closeWith(err, r)
			}
			if !visit(record.Data) {
				return r.Close()
			}
		}
	}
	return r.Close()
}
