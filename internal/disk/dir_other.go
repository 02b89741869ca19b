//go:build !linux && !darwin && !windows

package disk

import (
	"errors"
	"fmt"
	"runtime"
)

// OpenDir fails: the meaning of locks and syncs on this system has not been
// worked out, and a log that only seems durable is worse than none.
func OpenDir(path string) (Dir, error) {
	return nil, wrap("open", path, fmt.Errorf("no file-system seam for %s: %w", runtime.GOOS, errors.ErrUnsupported))
}

func isNoSpace(error) bool { return false }
