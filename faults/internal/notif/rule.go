// Package notif injects faults into the system calls of an unmodified program,
// by seccomp user notification.
//
// The program runs below a filter that hands every caught call to this process
// before it happens. Calls on files of one directory are counted over all
// threads of the program; the one that a Rule names meets its fault, all others
// are carried out here, on a copy of the program's descriptor, so that the
// order of writes and syncs is known exactly and a Shadow can say what a disk
// would hold if the power failed.
package notif

import (
	"fmt"
	"strings"

	"golang.org/x/sys/unix"
)

// Call is a system call that can be caught.
type Call string

// The calls the engine makes on its files and their directory.
const (
	Openat     Call = "openat"
	Pread64    Call = "pread64"
	Pwrite64   Call = "pwrite64"
	Fdatasync  Call = "fdatasync"
	Fsync      Call = "fsync"
	Ftruncate  Call = "ftruncate"
	Fallocate  Call = "fallocate"
	Renameat2  Call = "renameat2"
	Unlinkat   Call = "unlinkat"
	Fstat      Call = "fstat"
	Newfstatat Call = "newfstatat"
	Fcntl      Call = "fcntl"
)

// numbers maps calls to what the kernel calls them on this architecture.
var numbers = map[Call]int32{
	Openat: unix.SYS_OPENAT, Pread64: unix.SYS_PREAD64, Pwrite64: unix.SYS_PWRITE64,
	Fdatasync: unix.SYS_FDATASYNC, Fsync: unix.SYS_FSYNC, Ftruncate: unix.SYS_FTRUNCATE,
	Fallocate: unix.SYS_FALLOCATE, Renameat2: unix.SYS_RENAMEAT2, Unlinkat: unix.SYS_UNLINKAT,
	Fstat: unix.SYS_FSTAT, Newfstatat: unix.SYS_NEWFSTATAT, Fcntl: unix.SYS_FCNTL,
}

// names is numbers the other way round.
var names = func() map[int32]Call {
	m := map[int32]Call{}
	for c, n := range numbers {
		m[n] = c
	}
	return m
}()

// Calls lists every call that is caught.
func Calls() []Call {
	return []Call{
		Openat, Pread64, Pwrite64, Fdatasync, Fsync, Ftruncate,
		Fallocate, Renameat2, Unlinkat, Fstat, Newfstatat, Fcntl,
	}
}

// Action is what happens to a call instead of, or beside, what was asked for.
type Action string

// The faults. An errno is returned without doing anything.
const (
	None      Action = ""
	EIO       Action = "EIO"
	ENOSPC    Action = "ENOSPC"
	EINTR     Action = "EINTR"
	Short     Action = "short"      // half is really done, and half is reported
	TornKill  Action = "torn-kill"  // half is really written, then the program is killed
	Kill      Action = "kill"       // killed instead of the call
	KillAfter Action = "kill-after" // the call is carried out, its result never seen
	Lie       Action = "lie"        // from this sync on, every sync says nil and does nothing
)

var errnos = map[Action]unix.Errno{EIO: unix.EIO, ENOSPC: unix.ENOSPC, EINTR: unix.EINTR}

// Actions lists the faults that make sense for a call. EINTR is only there
// where the kernel may return it.
func Actions(c Call) []Action {
	switch c {
	case Pwrite64:
		return []Action{EIO, ENOSPC, EINTR, Short, TornKill, Kill, KillAfter}
	case Fdatasync, Fsync:
		return []Action{EIO, ENOSPC, EINTR, Kill, KillAfter, Lie}
	case Ftruncate, Fallocate:
		return []Action{EIO, ENOSPC, EINTR, Kill, KillAfter}
	case Openat:
		return []Action{EIO, ENOSPC, EINTR, Kill}
	case Renameat2, Unlinkat:
		return []Action{EIO, ENOSPC, Kill, KillAfter}
	case Pread64:
		return []Action{EIO, EINTR, Short, Kill}
	case Fstat, Newfstatat, Fcntl:
		return []Action{EIO, Kill}
	}
	return nil
}

// Rule names one call of a run, counted from 1 over all threads, and its fault.
type Rule struct {
	Call   Call
	Index  int
	Action Action
}

// String is what ParseRule reads: "fdatasync:EIO:3".
func (r Rule) String() string {
	if r.Action == None {
		return "none"
	}
	return fmt.Sprintf("%s:%s:%d", r.Call, r.Action, r.Index)
}

// ParseRule reads what String prints, so that a failed run can be repeated.
func ParseRule(s string) (Rule, error) {
	var r Rule
	parts := strings.Split(s, ":")
	if len(parts) != 3 {
		return r, fmt.Errorf("rule %q is not CALL:FAULT:INDEX", s)
	}
	if _, err := fmt.Sscan(parts[2], &r.Index); err != nil || r.Index < 1 {
		return r, fmt.Errorf("rule %q: %q is no index", s, parts[2])
	}
	r.Call, r.Action = Call(parts[0]), Action(parts[1])
	for _, a := range Actions(r.Call) {
		if a == r.Action {
			return r, nil
		}
	}
	return r, fmt.Errorf("rule %q: no fault %q for the call %q", s, parts[1], parts[0])
}
