package disk

import "golang.org/x/sys/windows"

// syncFile flushes the system's cache and the drive's, exactly once.
func syncFile(h handle) error { return windows.FlushFileBuffers(h) }

// syncDirectory flushes through the directory's handle, which needs write
// access. Windows documents this for files and volumes only; NTFS accepts it,
// and journals names in any case. A file system that refuses is reported.
func syncDirectory(h handle) error { return windows.FlushFileBuffers(h) }
