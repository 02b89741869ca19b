package workload

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/tidemark-log/tidemark/bench"
	"github.com/tidemark-log/tidemark/bench/internal/report"
)

const (
	appendBytes = 128 << 20 // payload of one round of W5
	// appendPatience ends the round of a slow peer, which is then judged by the
	// part it has done.
	appendPatience = 1500 * time.Millisecond
)

// sized is a workload variant by record size and group.
type sized struct {
	variant    string
	recordSize int // bytes
	group      int // records per commit
	records    int // in the store
}

func runW5(ctx context.Context, s *Setting) error {
	var errs []error
	for _, w := range []sized{
		{variant: "256 B", recordSize: 256, group: 16},
		{variant: "4 KiB", recordSize: 4 << 10, group: 1},
		{variant: "64 KiB", recordSize: 64 << 10, group: 1},
	} {
		w.records = int(appendBytes/s.Shrink) / w.recordSize
		errs = append(errs, s.appends(ctx, w))
	}
	return errors.Join(errs...)
}

// appends measures commits without a sync each and one sync at the end. Every
// round starts with an empty store.
func (s *Setting) appends(ctx context.Context, w sized) error {
	c := report.Case{Workload: "W5", Variant: w.variant, FileSystem: s.FileSystem}
	field, err := s.enter(c, nil)
	if err != nil {
		return err
	}
	prepared := groups(preparedGroups, w.group, w.recordSize)
	err = s.rounds(ctx, c, field, func(x *contestant) error { return s.appendRound(x, w, prepared) })
	return errors.Join(err, s.finish(c, field))
}

func (s *Setting) appendRound(x *contestant, w sized, prepared [][][]byte) error {
	if err := remake(x.dir); err != nil {
		return err
	}
	store, err := x.peer.Open(bench.Options{
		Dir: x.dir, Mode: bench.Deferred, RecordSize: w.recordSize, Capacity: w.bytes(),
	})
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	settle(s.Dir)
	before, err := s.usage()
	if err != nil {
		return errors.Join(err, store.Close())
	}
	n, err := appendAll(store, prepared, w.records/w.group, before.at)
	after, usageErr := s.usage()
	err = errors.Join(err, usageErr, store.Close(), os.RemoveAll(x.dir))
	if err != nil {
		return err
	}
	records := float64(n * w.group)
	x.add(report.Throughput, records*float64(w.recordSize)/1e6/after.at.Sub(before.at).Seconds())
	x.add(report.Allocs, float64(after.mallocs-before.mallocs)/records)
	x.add(report.CPU, micros(after.cpu-before.cpu)/records)
	return nil
}

// appendAll commits up to n groups and syncs once. It returns how many it did.
func appendAll(store bench.Store, prepared [][][]byte, n int, start time.Time) (int, error) {
	done := 0
	for done < n {
		if err := store.Commit(prepared[done%len(prepared)]); err != nil {
			return done, err
		}
		done++
		if done%64 == 0 && time.Since(start) > appendPatience {
			break
		}
	}
	return done, store.Sync()
}

// bytes is the payload of the store.
func (w sized) bytes() int64 { return int64(w.records) * int64(w.recordSize) }

// fill commits the records of a store in groups, one sync at the end.
func fill(store bench.Store, w sized) error {
	prepared := groups(preparedGroups, w.group, w.recordSize)
	for i := range w.records / w.group {
		if err := store.Commit(prepared[i%len(prepared)]); err != nil {
			return err
		}
	}
	return store.Sync()
}

// load fills every contestant's store and opens it again, so that nothing is
// served from what writing left in memory. Peers that cannot be opened again
// go on as they are.
func (s *Setting) load(ctx context.Context, c report.Case, field []*contestant, w sized) error {
	for _, x := range field {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := s.loadOne(x, w); err != nil {
			s.drop(c, x, err)
		}
	}
	settle(s.Dir)
	runtime.GC()
	return nil
}

func (s *Setting) loadOne(x *contestant, w sized) error {
	o := bench.Options{
		Dir: x.dir, Mode: bench.Deferred, RecordSize: w.recordSize, Capacity: w.bytes(), Group: w.group,
	}
	store, err := x.peer.Open(o)
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	if err := fill(store, w); err != nil {
		return errors.Join(fmt.Errorf("fill: %w", err), store.Close())
	}
	if x.peer.Traits.Reopens {
		if err := store.Close(); err != nil {
			return fmt.Errorf("close: %w", err)
		}
		if store, err = x.peer.Open(o); err != nil {
			return fmt.Errorf("reopen: %w", err)
		}
	}
	x.store = store
	if got := store.Len(); got < uint64(w.records) {
		return fmt.Errorf("%d records of %d after reopening", got, w.records)
	}
	return nil
}
