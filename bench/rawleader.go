package bench

import (
	"sync"

	"golang.org/x/sys/unix"
)

// rawLeader is the floor under concurrent commits: callers put their records
// into one buffer, and whoever finds no leader writes and syncs all of it
// while the next buffer fills.
type rawLeader struct {
	*rawFile

	mu      sync.Mutex
	wake    *sync.Cond
	filling []byte // records of the next write
	spare   []byte // the other buffer, empty while no leader writes
	queued  uint64 // records in filling or before
	durable uint64 // records synced; durable <= queued
	leading bool   // one caller writes and syncs
	err     error  // the first failure ends every commit
}

func openRawLeader(mode rawMode) func(Options) (Store, error) {
	return func(o Options) (Store, error) {
		o.Mode = Durable
		r, err := newRawFile(mode, o)
		if err != nil {
			return nil, err
		}
		l := &rawLeader{rawFile: r}
		l.wake = sync.NewCond(&l.mu)
		return l, nil
	}
}

// Commit returns once a leader, perhaps this caller, has synced the group.
func (l *rawLeader) Commit(group [][]byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, record := range group {
		l.filling = append(l.filling, record...)
	}
	l.queued += uint64(len(group))
	mine := l.queued
	for l.durable < mine && l.err == nil {
		if l.leading {
			l.wake.Wait()
			continue
		}
		l.lead()
	}
	return l.err
}

// lead writes and syncs everything queued. The caller holds mu, which is
// released during the write.
func (l *rawLeader) lead() {
	batch, upTo := l.filling, l.queued
	l.filling, l.spare, l.leading = l.spare[:0], nil, true
	l.mu.Unlock()
	err := l.writeSync(batch)
	l.mu.Lock()
	l.spare, l.durable, l.leading, l.err = batch, upTo, false, err
	l.count = upTo
	l.wake.Broadcast()
}

// Sync has nothing to do beyond the sync itself: every commit was durable.
func (l *rawLeader) Sync() error { return unix.Fdatasync(int(l.file.Fd())) }
