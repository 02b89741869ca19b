package workload

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"time"

	"github.com/tidemark-log/tidemark/bench"
	"github.com/tidemark-log/tidemark/bench/internal/report"
)

const (
	replayBytes = 256 << 20 // payload of the stores of W6 and W7
	readCheck   = 64        // random reads between looks at the clock
)

func runW6(ctx context.Context, s *Setting) error {
	return errors.Join(
		s.replays(ctx, s.readable("256 B", 256, 16)),
		s.replays(ctx, s.readable("4 KiB", 4<<10, 16)))
}

// readable is a store large enough to read from.
func (s *Setting) readable(variant string, recordSize, group int) sized {
	return sized{variant, recordSize, group, int(replayBytes/s.Shrink) / recordSize}
}

// replays measures reading everything from the start.
func (s *Setting) replays(ctx context.Context, w sized) error {
	c := report.Case{Workload: "W6", Variant: w.variant, FileSystem: s.FileSystem}
	field, err := s.enter(c, nil)
	if err != nil {
		return err
	}
	if err = s.load(ctx, c, field, w); err == nil {
		err = s.rounds(ctx, c, field, func(x *contestant) error { return s.replayRound(x, w) })
	}
	return errors.Join(err, s.finish(c, field))
}

func (s *Setting) replayRound(x *contestant, w sized) error {
	runtime.GC()
	before, err := s.usage()
	if err != nil {
		return err
	}
	count, touched := 0, byte(0)
	err = x.store.Replay(func(record []byte) {
		touched ^= record[0] ^ record[len(record)-1] // at least the ends are looked at
		count++
	})
	runtime.KeepAlive(touched)
	after, usageErr := s.usage()
	if err := errors.Join(err, usageErr); err != nil {
		return err
	}
	if count != w.records {
		return fmt.Errorf("replayed %d records of %d", count, w.records)
	}
	x.add(report.Throughput, float64(w.bytes())/1e6/after.at.Sub(before.at).Seconds())
	x.add(report.Allocs, float64(after.mallocs-before.mallocs)/float64(w.records))
	return nil
}

// runW7 measures reads of random records. Every record is a commit of its own,
// so that a record's number is a revision.
func runW7(ctx context.Context, s *Setting) error {
	c := report.Case{Workload: "W7", Variant: "4 KiB", FileSystem: s.FileSystem}
	w := s.readable("4 KiB", 4<<10, 1)
	field, err := s.enter(c, func(p bench.Peer) bool { return p.Traits.Reads != bench.ReadsNone })
	if err != nil {
		return err
	}
	if err = s.load(ctx, c, field, w); err == nil {
		warm(field)
		err = s.rounds(ctx, c, field, func(x *contestant) error { return s.readRound(x, uint64(w.records)) })
	}
	return errors.Join(err, s.finish(c, field))
}

// warm brings every store's bytes into the page cache.
func warm(field []*contestant) {
	for _, x := range field {
		if x.store != nil {
			_ = x.store.Replay(func([]byte) {}) // a failure shows again when it is measured
		}
	}
}

func (s *Setting) readRound(x *contestant, n uint64) error {
	rng := rand.New(rand.NewPCG(7, 7))
	var buf []byte
	runtime.GC()
	before, err := s.usage()
	if err != nil {
		return err
	}
	reads := 0
	for time.Since(before.at) < s.Slice {
		for range readCheck {
			record, err := x.store.ReadAt(rng.Uint64N(n), buf)
			if err != nil {
				return err
			}
			if cap(record) > cap(buf) {
				buf = record[:0]
			}
		}
		reads += readCheck
	}
	after, err := s.usage()
	if err != nil {
		return err
	}
	x.add(report.ReadTime, float64(after.at.Sub(before.at).Nanoseconds())/float64(reads))
	x.add(report.Allocs, float64(after.mallocs-before.mallocs)/float64(reads))
	return nil
}
