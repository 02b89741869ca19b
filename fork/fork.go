// Package fork makes an independent writable log of any commit boundary of
// another log. The new log has the same history up to the boundary, with the
// same revisions and digests, an ID and a salt of its own, and begins with a
// commit that says where it comes from.
//
// # What may be a boundary
//
// The end of a commit that the source proves durable: by its slots, by later
// headers, or, for CreateFrom, by its own writer in this process. Only that
// writer, if it is healthy, syncs first to raise what is proven. A source of
// somebody else is only read: it may be busy, read-only or poisoned, and not
// one byte of it changes.
//
// # How it is made
//
//  1. Plan: find the boundary, refuse what cannot be. Nothing is written yet.
//  2. A temporary file, locked, takes the whole pages before the boundary's
//     page: as shared blocks where the file system can, copied by the kernel,
//     or read and written; holes stay holes. The last page up to the boundary
//     and the header area are written fresh. Nothing of the source behind the
//     boundary is ever in the file.
//  3. The source's slots are read again: retention may have dropped more
//     meanwhile, and what it freed may have been copied as zeros.
//  4. What was copied is checked byte by byte; of shared blocks, which are the
//     source's own, the last MiB.
//  5. The file is opened as every log is, commits the fork record (Record), is
//     closed, synced, and gets its name in one step that never replaces.
//
// A crash at any step leaves no fork, or a whole one.
//
// # What a fork shares with its source
//
// Nothing that changes. The lineage in the identity names the ancestors with
// their salts, so what was taken over stays valid, and what the source writes
// later, or wrote behind the boundary, means nothing in the fork: it is under
// another salt. The source may be deleted afterwards.
package fork

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/tidemark-log/tidemark/cursor"
	"github.com/tidemark-log/tidemark/frame"
	"github.com/tidemark-log/tidemark/internal/disk"
	"github.com/tidemark-log/tidemark/pagelog"
)

// Errors of forking, beside those of pagelog.
var (
	// ErrForkPoint: the revision is no commit that the source proves durable.
	ErrForkPoint = errors.New("cannot fork here")
	// ErrForkTooLarge: the fork would be over a limit, or have more ancestors
	// than a log can name.
	ErrForkTooLarge = errors.New("fork is too large")
)

// Options is how a log is forked. The zero value forks at the last durable
// commit.
type Options struct {
	// At is the revision of the boundary; 0: the last durable commit.
	At uint64
	// MaxBytes refuses forks that would take over more bytes; 0: none is
	// refused.
	MaxBytes int64
	// NoSharing copies every byte, also where the file system could share
	// blocks.
	NoSharing bool
	// Progress, if set, is told how many bytes were taken over, of how many.
	Progress func(done, total int64)
	// AllowAnyFileSystem accepts network and user-space file systems.
	AllowAnyFileSystem bool
}

// Planned is what a fork would be.
type Planned struct {
	Source    cursor.LogID  `json:"source"`
	Revision  uint64        `json:"revision"` // of the boundary
	Digest    cursor.Digest `json:"digest"`   // of that commit
	Boundary  int64         `json:"boundary"` // byte offset of the boundary
	Oldest    uint64        `json:"oldest"`   // first revision that the fork will have
	Commits   uint64        `json:"commits"`  // that are taken over
	Bytes     int64         `json:"bytes"`    // that are taken over, pages cut at the ends included
	Ancestors int           `json:"ancestors"`
}

// Made is a fork that was made.
type Made struct {
	Planned
	LogID  cursor.LogID  `json:"log_id"`
	Head   uint64        `json:"head"`   // of the fork: the revision of its fork record
	First  cursor.Digest `json:"record"` // digest of that commit
	Shared int64         `json:"shared"` // bytes whose blocks are the source's
	Copied int64         `json:"copied"` // bytes that were copied
	Holes  int64         `json:"holes"`  // bytes that stayed holes
}

// Plan says what a fork of the log at path would be, or why there can be none.
// It writes nothing. Errors: ErrForkPoint, ErrForkTooLarge, ErrCompacted,
// ErrCorrupt, ErrNotALog, and those of opening and reading.
func Plan(ctx context.Context, path string, o Options) (Planned, error) {
	var p Planned
	r, err := pagelog.OpenReader(path, pagelog.ReaderOptions{Durable: true, AllowAnyFileSystem: o.AllowAnyFileSystem})
	if err != nil {
		return p, err
	}
	f, err := plan(ctx, r, o)
	if err == nil {
		p = f.plan
	}
	return p, errors.Join(named(path, err), r.Close())
}

// Create forks the log at path into a new one at newPath. The source may be
// written meanwhile; it is only read. What the source's writer acknowledged a
// moment ago may not be proven yet to other processes: then ErrForkPoint.
//
// Errors are those of Plan; fs.ErrExist if the name is taken; ErrNoSpace; the
// context's; and what the file system says. After any of them there is no fork.
func Create(ctx context.Context, path, newPath string, o Options) (Made, error) {
	r, err := pagelog.OpenReader(path, pagelog.ReaderOptions{Durable: true, AllowAnyFileSystem: o.AllowAnyFileSystem})
	if err != nil {
		return Made{}, err
	}
	made, err := createAt(ctx, r, newPath, o)
	return made, errors.Join(named(path, err), r.Close())
}

// CreateFrom forks a log that this process writes. A boundary that is complete
// and not durable is synced first, if the log is healthy. Errors are those of
// Create and of Log.Sync.
func CreateFrom(ctx context.Context, l *pagelog.Log, newPath string, o Options) (Made, error) {
	if o.At > l.Durable().Revision || o.At == 0 {
		if err := l.Sync(ctx); err != nil && !errors.Is(err, pagelog.ErrPoisoned) {
			return Made{}, err
		}
	}
	return createAt(ctx, l.Reader, newPath, o)
}

func createAt(ctx context.Context, r *pagelog.Reader, newPath string, o Options) (Made, error) {
	dir, err := disk.OpenDir(filepath.Dir(newPath))
	if err != nil {
		return Made{}, err
	}
	made, err := CreateIn(ctx, r, pagelog.Env{Dir: dir}, filepath.Base(newPath), o)
	return made, errors.Join(err, dir.Close())
}

// CreateIn is Create in a given world, of what a reader reads; see pagelog.Env.
func CreateIn(ctx context.Context, r *pagelog.Reader, env pagelog.Env, name string, o Options) (Made, error) {
	f, err := plan(ctx, r, o)
	if err != nil {
		return Made{}, err
	}
	if err := pagelog.AdmitIn(env, name, o.AllowAnyFileSystem); err != nil {
		return Made{}, err
	}
	if err := f.identify(env); err != nil {
		return Made{}, err
	}
	f.made.Planned, f.made.LogID = f.plan, f.id.LogID
	err = pagelog.PublishIn(env, name, func(out disk.File) error { return f.fill(ctx, env, out) })
	if err != nil {
		return Made{}, err
	}
	return f.made, nil
}

func named(path string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("fork of %s: %w", path, err)
}

// forking is the state of one fork. It belongs to one goroutine.
type forking struct {
	opts   Options
	source *pagelog.Branch
	geo    *frame.Geometry // of the source; pages lie alike in the fork
	id     frame.Identity  // of the fork
	plan   Planned
	made   Made
}

// plan finds the boundary and refuses what cannot be.
func plan(ctx context.Context, r *pagelog.Reader, o Options) (*forking, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	source, err := r.Branch(o.At)
	if pagelog.Unproven(err) {
		return nil, fmt.Errorf("%w: %w", ErrForkPoint, err)
	}
	if err != nil {
		return nil, err
	}
	f := &forking{opts: o, source: source, geo: source.Identity.Geometry()}
	floor := source.Slot.Floor
	lineage := lineage(&source.Identity, source.At)
	f.plan = Planned{
		Source: source.Identity.LogID, Revision: source.At.Revision, Digest: cursor.Digest(source.At.Digest),
		Boundary: source.At.Offset, Oldest: floor.Revision + 1, Commits: source.At.Revision - floor.Revision,
		Bytes: source.At.Offset - f.from(), Ancestors: len(lineage),
	}
	if len(lineage) > frame.MaxLineage {
		return nil, fmt.Errorf("%w: it would have %d ancestors, a log names at most %d", ErrForkTooLarge, len(lineage), frame.MaxLineage)
	}
	if o.MaxBytes > 0 && f.plan.Bytes > o.MaxBytes {
		return nil, fmt.Errorf("%w: it would take over %d bytes, at most %d are allowed", ErrForkTooLarge, f.plan.Bytes, o.MaxBytes)
	}
	f.id = source.Identity
	f.id.Lineage = lineage
	return f, nil
}

// lineage returns the ancestors of a log that is forked from id at a boundary.
// Every structure before the boundary keeps the salt it has, and an ancestor of
// which nothing lies before the boundary is dropped: so is the source itself if
// the boundary is the one it was forked at.
func lineage(id *frame.Identity, at frame.Place) []frame.Ancestor {
	var list []frame.Ancestor
	for _, a := range id.Lineage {
		if a.End >= at.Offset {
			a.End, a.Revision, a.Digest = at.Offset, at.Revision, at.Digest
			return append(list, a)
		}
		list = append(list, a)
	}
	return append(list, frame.Ancestor{LogID: id.LogID, Salt: id.Salt, End: at.Offset, Revision: at.Revision, Digest: at.Digest})
}

// identify draws what is the fork's own. The key of the index stays: its runs
// are taken over.
func (f *forking) identify(env pagelog.Env) error {
	key := f.id.IndexKey
	err := pagelog.DrawIdentity(&f.id, env)
	f.id.IndexKey = key
	return err
}

// from returns the first byte that is taken over.
func (f *forking) from() int64 {
	return max(f.geo.PageStart(f.source.Slot.Floor.Offset), f.geo.HeaderArea())
}

// fill makes out the fork.
func (f *forking) fill(ctx context.Context, env pagelog.Env, out disk.File) error {
	if err := f.take(ctx, out); err != nil {
		return err
	}
	// Retention may have dropped more meanwhile, and freed it under our hands.
	again, err := f.source.Again()
	if err != nil {
		return err
	}
	old := f.from()
	f.source = again
	if from := f.from(); from > old {
		if err := out.Punch(old, from-old); err != nil && !errors.Is(err, disk.ErrNoPunch) {
			return fmt.Errorf("drop what retention dropped: %w", err)
		}
	}
	f.made.Oldest, f.made.Commits = again.Slot.Floor.Revision+1, again.At.Revision-again.Slot.Floor.Revision
	slot := again.Slot
	slot.Epoch = max(again.Epoch, 1)
	if err := pagelog.WriteHeaderArea(out, &f.id, slot); err != nil {
		return err
	}
	if err := f.prove(ctx, out); err != nil {
		return err
	}
	record := Record{Source: f.plan.Source, Revision: again.At.Revision, Digest: cursor.Digest(again.At.Digest), End: again.At.Offset}
	c, err := again.Begin(ctx, env, out, record.Encode())
	f.made.Head, f.made.First = c.Revision, c.Digest
	return err
}

// prove checks every byte that was copied. Shared blocks are the source's own:
// opening checks the last MiB of them. A large fork is on its way to the disk
// meanwhile; what that sync covers is synced again at the end, and only its
// failure counts.
func (f *forking) prove(ctx context.Context, out disk.File) error {
	if f.made.Shared > 0 {
		return nil
	}
	synced := make(chan error, 1)
	if f.made.Copied > takePiece {
		go func() { synced <- out.Sync() }()
	} else {
		synced <- nil
	}
	err := pagelog.Prove(ctx, out, f.source.At)
	return errors.Join(err, <-synced)
}
