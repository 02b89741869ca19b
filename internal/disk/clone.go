package disk

import "errors"

// ErrNoClone means the system cannot copy between these files by itself, or
// cannot say where a file has holes; read and write instead.
var ErrNoClone = errors.New("disk: the system cannot copy between these files")

// Share makes [off, off+n) of dst the same blocks as those of src, at once and
// without a copy: what is written to either later is its own. Both must be
// multiples of the file system's block size, save that the stretch may end
// where src ends. ErrNoClone where blocks cannot be shared; then nothing
// changed.
func Share(dst, src File, off, n int64) error { return share(dst, src, off, n) }

// Transfer copies up to n bytes at off from src to the same place of dst inside
// the system, and returns how many; 0 at the end of src. ErrNoClone where the
// system cannot.
func Transfer(dst, src File, off, n int64) (int64, error) { return transfer(dst, src, off, n) }

// NextData returns the first stretch at or behind off that is no hole, up to
// the next hole; from is the size of the file where only holes follow. What is
// no hole may be zeros. ErrNoClone where the system does not say.
func NextData(f File, off int64) (from, to int64, err error) { return nextData(f, off) }
