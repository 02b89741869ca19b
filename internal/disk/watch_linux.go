package disk

import (
	"encoding/binary"
	"fmt"
	"os"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
)

// One inotify instance serves the whole process, because their number per user
// is small. It exists while somebody watches.
var notifier struct {
	mu    sync.Mutex
	file  *os.File // the instance; nil: nobody watches
	fd    int
	watch map[int32][]chan struct{} // by watch descriptor: a file may be watched more than once
}

const watchMask = unix.IN_MODIFY | unix.IN_ATTRIB | unix.IN_MOVE_SELF | unix.IN_DELETE_SELF

func watch(file File) (<-chan struct{}, func(), error) {
	f, ok := file.(*osFile)
	if !ok {
		return nil, nil, ErrNoWatch
	}
	if err := f.begin(); err != nil {
		return nil, nil, f.wrap("watch", err)
	}
	defer f.mu.RUnlock()
	n := &notifier
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := startNotifier(); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrNoWatch, err)
	}
	wd, err := unix.InotifyAddWatch(n.fd, "/proc/self/fd/"+strconv.Itoa(int(f.sys)), watchMask)
	if err != nil {
		stopNotifierIfIdle()
		return nil, nil, fmt.Errorf("%w: %w", ErrNoWatch, err)
	}
	c := make(chan struct{}, 1)
	n.watch[int32(wd)] = append(n.watch[int32(wd)], c)
	var once sync.Once
	return c, func() { once.Do(func() { unwatch(int32(wd), c) }) }, nil
}

// startNotifier makes the instance if there is none. The caller holds
// notifier.mu.
func startNotifier() error {
	n := &notifier
	if n.file != nil {
		return nil
	}
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return os.NewSyscallError("inotify_init1", err)
	}
	n.file, n.fd, n.watch = os.NewFile(uintptr(fd), "inotify"), fd, map[int32][]chan struct{}{}
	go readNotifier(n.file)
	return nil
}

// stopNotifierIfIdle ends the instance when nobody watches. The caller holds
// notifier.mu.
func stopNotifierIfIdle() {
	n := &notifier
	if n.file != nil && len(n.watch) == 0 {
		_ = n.file.Close() // it holds nothing to lose; its reader ends
		n.file = nil
	}
}

func unwatch(wd int32, c chan struct{}) {
	n := &notifier
	n.mu.Lock()
	defer n.mu.Unlock()
	left := n.watch[wd]
	for i := range left {
		if left[i] == c {
			left = append(left[:i], left[i+1:]...)
			break
		}
	}
	n.watch[wd] = left
	if len(left) == 0 {
		delete(n.watch, wd)
		_, _ = unix.InotifyRmWatch(n.fd, uint32(wd)) // gone already if the file is
	}
	stopNotifierIfIdle()
}

// readNotifier passes events on until the instance is closed.
func readNotifier(file *os.File) {
	buf := make([]byte, 4096)
	for {
		n, err := file.Read(buf)
		if err != nil {
			return
		}
		for b := buf[:n]; len(b) >= unix.SizeofInotifyEvent; {
			wd := int32(binary.NativeEndian.Uint32(b))
			mask := binary.NativeEndian.Uint32(b[4:])
			size := unix.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(b[12:]))
			signal(file, wd, mask&unix.IN_Q_OVERFLOW != 0)
			b = b[min(size, len(b)):]
		}
	}
}

// signal wakes the watchers of wd, or all of them after events were lost.
func signal(file *os.File, wd int32, all bool) {
	n := &notifier
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.file != file {
		return
	}
	for w, channels := range n.watch {
		if w != wd && !all {
			continue
		}
		for _, c := range channels {
			select {
			case c <- struct{}{}:
			default:
			}
		}
	}
}
