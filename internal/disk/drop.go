package disk

// DropCache asks the system to forget what it holds of f in memory, so that
// what is written next is new to it. It is a hint, and does nothing where there
// is no such thing.
//
// Recovery needs it: after a failed write, ext4 may leave new blocks marked as
// never written, and writing the same cached pages again does not mend that,
// although the sync then says it did.
func DropCache(f File) error { return dropCache(f) }
