package disk

// allocate writes zeros: F_PREALLOCATE reserves blocks, but does not change the
// size, and the first write into them still allocates metadata.
func allocate(fd handle, off, n int64) error { return extendWithZeros(fd, off+n) }

// punch is refused: F_PUNCHHOLE wants whole blocks of a size it does not tell,
// and fails on everything but APFS.
func punch(handle, int64, int64) error { return ErrNoPunch }
