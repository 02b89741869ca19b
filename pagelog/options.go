package pagelog

import (
	"fmt"
	"log/slog"

	"github.com/tidemark-log/tidemark/cursor"
	"github.com/tidemark-log/tidemark/frame"
)

// CreateOptions fixes what a log is for all its life. The zero value is a good
// choice.
type CreateOptions struct {
	PageSize    int           // bytes, a power of two from 4 KiB to 1 MiB; 0: 16 KiB
	Align       int           // writes begin at multiples of 8 (0: this), 512 or 4096 bytes
	MaxRecord   int64         // bytes of one record, at most 1 GiB; 0: 16 MiB
	MaxGroup    int64         // bytes of one commit with headers, at most 2 GiB; 0: 64 MiB
	MaxRecords  int           // records of one commit, at most 2^20; 0: 2^20
	MaxSize     int64         // bytes of the file; reaching it rejects commits; 0: none
	Application uint64        // the host's own mark, kept and shown, never read
	Base        cursor.Cursor // begin after this point of another log; zero: at revision 1
}

// ZeroAhead says whether zeros are written ahead of the head, so that a
// durable commit costs one data write and one flush.
type ZeroAhead int

// The policies. Auto is off on copy-on-write file systems and for groups over
// 256 KiB.
const (
	ZeroAheadAuto ZeroAhead = iota
	ZeroAheadOn
	ZeroAheadOff
)

// Options is how this process uses a log. The zero value is safe and durable.
type Options struct {
	// Expect refuses to open a log that lost or changed commits the host has
	// seen acknowledged. Nil: anything sound is accepted.
	Expect *Expect
	// Fence is the right to write a run's log: the log takes it on and belongs
	// to the run from then on. Zero: the log must belong to no run.
	Fence Fence
	// ZeroAhead is the preallocation policy.
	ZeroAhead ZeroAhead
	// MaxUnsynced bounds the bytes that may be complete and not durable;
	// 0: 64 MiB.
	MaxUnsynced int64
	// CheckpointEvery is the bytes of commits after which a checkpoint is
	// written, 1,024 commits doing as well; 0: 1 MiB, negative: never.
	CheckpointEvery int64
	// AllowAnyFileSystem accepts network and user-space file systems.
	AllowAnyFileSystem bool
	// Logger gets what is worth a line; nil: nothing is logged.
	Logger *slog.Logger

	keepFence bool // whatever the file records stays, and nothing is committed
}

// Expect names a commit the log must hold.
type Expect struct {
	Revision uint64
	Digest   cursor.Digest
}

// ReaderOptions is how a reader uses a log.
type ReaderOptions struct {
	// Durable yields only what no loss of power can take away. Otherwise a
	// reader yields every complete commit.
	Durable bool
	// AllowAnyFileSystem accepts network and user-space file systems.
	AllowAnyFileSystem bool
}

const (
	defaultPageSize    = 16 << 10
	defaultMaxRecord   = 16 << 20
	defaultMaxGroup    = 64 << 20
	defaultMaxUnsynced = 64 << 20
	defaultCheckpoint  = 1 << 20
	backgroundSync     = 8 << 20 // unsynced bytes that start a sync of their own
)

// identity turns options into an identity with its random parts left out.
func (o CreateOptions) identity() (frame.Identity, error) {
	or := func(n, otherwise int64) int64 {
		if n == 0 {
			return otherwise
		}
		return n
	}
	checks := []struct {
		name      string
		n, lo, hi int64
	}{
		{"PageSize", or(int64(o.PageSize), defaultPageSize), frame.MinPageSize, frame.MaxPageSize},
		{"Align", or(int64(o.Align), 8), 8, 4096},
		{"MaxRecord", or(o.MaxRecord, defaultMaxRecord), 1, frame.MaxRecordBytes},
		{"MaxGroup", or(o.MaxGroup, defaultMaxGroup), 64, frame.MaxGroupBytes},
		{"MaxRecords", or(int64(o.MaxRecords), frame.MaxGroupRecords), 1, frame.MaxGroupRecords},
		{"MaxSize", o.MaxSize, 0, 1 << 62},
	}
	for _, c := range checks {
		if c.n < c.lo || c.n > c.hi {
			return frame.Identity{}, fmt.Errorf("option %s is %d, it must be from %d to %d", c.name, c.n, c.lo, c.hi)
		}
	}
	id := frame.Identity{
		PageSize: uint32(checks[0].n), Align: uint32(checks[1].n), App: o.Application,
		MaxRecord: uint64(checks[2].n), MaxGroup: uint64(checks[3].n),
		MaxRecords: uint32(checks[4].n), MaxSize: uint64(checks[5].n),
		Base: frame.Boundary{LogID: o.Base.Log, Revision: o.Base.Revision, Digest: uint64(o.Base.Digest)},
	}
	switch {
	case id.PageSize&(id.PageSize-1) != 0:
		return id, fmt.Errorf("option PageSize is %d, it must be a power of two", id.PageSize)
	case id.Align != 8 && id.Align != 512 && id.Align != 4096:
		return id, fmt.Errorf("option Align is %d, it must be 8, 512 or 4096", id.Align)
	case id.MaxSize != 0 && int64(id.MaxSize) <= id.Geometry().HeaderArea():
		return id, fmt.Errorf("option MaxSize is %d, and the header area alone has %d bytes", id.MaxSize, id.Geometry().HeaderArea())
	case o.Base.Revision != 0 && o.Base.Log == cursor.LogID{}:
		return id, fmt.Errorf("option Base names revision %d of no log", o.Base.Revision)
	case o.Base.View != 0:
		return id, fmt.Errorf("option Base is a cursor of a view: it does not say that all before it was delivered")
	}
	return id, nil
}

func (o Options) validate() (Options, error) {
	if o.MaxUnsynced == 0 {
		o.MaxUnsynced = defaultMaxUnsynced
	}
	if o.CheckpointEvery == 0 {
		o.CheckpointEvery = defaultCheckpoint
	}
	if o.MaxUnsynced < 0 {
		return o, fmt.Errorf("option MaxUnsynced is %d, it must not be negative", o.MaxUnsynced)
	}
	if o.ZeroAhead < ZeroAheadAuto || o.ZeroAhead > ZeroAheadOff {
		return o, fmt.Errorf("option ZeroAhead is %d, which is no policy", o.ZeroAhead)
	}
	if err := o.Fence.check(); err != nil {
		return o, err
	}
	if o.Expect != nil {
		e := *o.Expect
		o.Expect = &e
	}
	return o, nil
}
