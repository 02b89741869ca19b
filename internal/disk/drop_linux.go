package disk

import "golang.org/x/sys/unix"

func dropCache(file File) error {
	f, ok := file.(*osFile)
	if !ok {
		return nil
	}
	if err := f.begin(); err != nil {
		return f.wrap("drop cache", err)
	}
	defer f.mu.RUnlock()
	return f.wrap("drop cache", unix.Fadvise(f.sys, 0, 0, unix.FADV_DONTNEED))
}
