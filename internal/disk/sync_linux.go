package disk

import "golang.org/x/sys/unix"

// syncFile calls fdatasync exactly once.
//
// An interrupted fdatasync (FUSE and NFS can be interrupted) is a failure like
// any other. The kernel reports a lost write to a descriptor once and marks the
// pages clean; whether the interrupted call swallowed such a report cannot be
// known, so a second call that says nil would prove nothing.
func syncFile(fd handle) error { return unix.Fdatasync(fd) }

// syncDirectory calls fsync exactly once, for the same reason.
func syncDirectory(fd handle) error { return unix.Fsync(fd) }
