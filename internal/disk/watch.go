package disk

import "errors"

// ErrNoWatch means this system cannot tell when a file changes; look at it now
// and then instead.
var ErrNoWatch = errors.New("disk: changes cannot be watched here")

// Watch returns a channel that gets a signal after f was written, truncated,
// renamed or unlinked by anybody, also in another process. Signals coalesce:
// one that nobody took stands for all since. A signal is a hint; none may come
// at all (a file system that does not say), so look now and then beside it.
// stop ends the watch and must be called. ErrNoWatch where there is no such
// thing.
func Watch(f File) (changed <-chan struct{}, stop func(), err error) { return watch(f) }
