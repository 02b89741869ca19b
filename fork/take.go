package fork

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/tidemark-log/tidemark/frame"
	"github.com/tidemark-log/tidemark/internal/disk"
	"github.com/tidemark-log/tidemark/pagelog"
)

const (
	takeBlock = 64 << 10 // sharing keeps to multiples: file-system blocks are at most this
	takePiece = 8 << 20  // taken over between two looks at the context
	takeBuf   = 256 << 10
)

// take makes out as long as the boundary and takes over what lies before it.
// What does not reach a whole page is read and written: the boundary's page
// must not bring along what the source has behind the boundary.
func (f *forking) take(ctx context.Context, out disk.File) error {
	end := f.source.At.Offset
	if err := out.Truncate(end); err != nil {
		return noSpace(err)
	}
	from, whole := f.from(), f.geo.PageStart(end)
	at, err := f.takeShared(ctx, out, from, whole)
	if err != nil {
		return err
	}
	if at, err = f.takeInKernel(ctx, out, at, whole); err != nil {
		return err
	}
	return f.takeBytes(ctx, out, at, end)
}

// piece tells how far it is and says whether to go on.
func (f *forking) piece(ctx context.Context, at int64) error {
	if f.opts.Progress != nil {
		f.opts.Progress(min(at-f.from(), f.plan.Bytes), f.plan.Bytes)
	}
	return ctx.Err()
}

// takeShared shares the blocks in [from, to), as far as the file system does,
// and returns where it stopped.
func (f *forking) takeShared(ctx context.Context, out disk.File, from, to int64) (int64, error) {
	first := (from + takeBlock - 1) / takeBlock * takeBlock
	to -= to % takeBlock
	if f.opts.NoSharing || first >= to {
		return from, nil
	}
	err := disk.Share(out, f.source.File, first, to-first)
	if errors.Is(err, disk.ErrNoClone) {
		return from, nil
	}
	if err != nil {
		return from, noSpace(err)
	}
	f.made.Shared = to - first
	if err := f.takeBytes(ctx, out, from, first); err != nil {
		return from, err
	}
	return to, nil
}

// takeInKernel lets the system copy [at, to), hole by hole, as far as it does.
func (f *forking) takeInKernel(ctx context.Context, out disk.File, at, to int64) (int64, error) {
	for at < to {
		data, hole, err := disk.NextData(f.source.File, at)
		if errors.Is(err, disk.ErrNoClone) {
			return at, nil
		}
		if err != nil {
			return at, err
		}
		data = min(data, to)
		f.made.Holes += data - at
		at = data
		for hole = min(hole, to); at < hole; {
			n, err := disk.Transfer(out, f.source.File, at, min(hole-at, takePiece))
			if errors.Is(err, disk.ErrNoClone) {
				return at, nil
			}
			if err != nil {
				return at, noSpace(err)
			}
			if n == 0 {
				return at, fmt.Errorf("%w while it was forked", pagelog.ErrReplaced)
			}
			at, f.made.Copied = at+n, f.made.Copied+n
			if err := f.piece(ctx, at); err != nil {
				return at, err
			}
		}
	}
	return at, nil
}

// takeBytes reads and writes [at, to). Zeros that fill a piece stay holes.
func (f *forking) takeBytes(ctx context.Context, out disk.File, at, to int64) error {
	buf := make([]byte, takeBuf)
	for at < to {
		b := buf[:min(int64(len(buf))-at%int64(len(buf)), to-at)]
		n, err := f.source.File.ReadAt(b, at)
		if n < len(b) {
			if err == nil || errors.Is(err, io.EOF) {
				err = fmt.Errorf("%w while it was forked", pagelog.ErrReplaced)
			}
			return fmt.Errorf("read at offset %d: %w", at+int64(n), err)
		}
		if frame.IsZero(b) {
			f.made.Holes += int64(n)
		} else {
			if _, err := out.WriteAt(b, at); err != nil {
				return noSpace(err)
			}
			f.made.Copied += int64(n)
		}
		at += int64(n)
		if err := f.piece(ctx, at); err != nil {
			return err
		}
	}
	return nil
}

// noSpace says that space ran out in the engine's words.
func noSpace(err error) error {
	if errors.Is(err, disk.ErrNoSpace) {
		return fmt.Errorf("write the fork: %w: %w", pagelog.ErrNoSpace, err)
	}
	return fmt.Errorf("write the fork: %w", err)
}
