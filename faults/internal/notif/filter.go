package notif

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The wire between parent and child: the socket is the child's descriptor 3.
const socketFD = 3

// BPF operations of a filter that looks at nothing but the call's number.
const (
	loadAbsolute  = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
	jumpIfEqual   = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
	returnVerdict = unix.BPF_RET | unix.BPF_K

	verdictAllow  = 0x7fff0000
	verdictNotify = 0x7fc00000
)

// Flags of seccomp(2) that older headers lack.
const (
	setModeFilter    = 1
	newListener      = 1 << 3
	waitKillableRecv = 1 << 5 // else Go's preemption signals restart calls, which are then counted twice
)

// Exec is the child's side of Run: it puts the filter on, sends the listener to
// the parent and becomes the program. args are the numbers of the calls, "--",
// and the program with its arguments. It returns only if something failed.
func Exec(args []string) error {
	runtime.LockOSThread()
	var filter []unix.SockFilter
	for len(args) > 0 && args[0] != "--" {
		nr, err := strconv.ParseUint(args[0], 10, 32)
		if err != nil {
			return err
		}
		filter = append(filter,
			unix.SockFilter{Code: jumpIfEqual, Jf: 1, K: uint32(nr)},
			unix.SockFilter{Code: returnVerdict, K: verdictNotify})
		args = args[1:]
	}
	if len(args) < 2 {
		return errors.New("no program to run")
	}
	fd, err := listen(filter)
	if err != nil {
		return err
	}
	if err := unix.Sendmsg(socketFD, []byte{0}, unix.UnixRights(fd), nil, 0); err != nil {
		return fmt.Errorf("send the listener: %w", err)
	}
	if err := errors.Join(unix.Close(fd), unix.Close(socketFD)); err != nil {
		return err
	}
	return fmt.Errorf("exec %s: %w", args[1], syscall.Exec(args[1], args[1:], os.Environ()))
}

// listen puts the filter on this thread and returns its listener.
func listen(calls []unix.SockFilter) (int, error) {
	filter := append([]unix.SockFilter{{Code: loadAbsolute, K: 0}}, calls...)
	filter = append(filter, unix.SockFilter{Code: returnVerdict, K: verdictAllow})
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return -1, fmt.Errorf("no new privileges: %w", err)
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, setModeFilter, newListener|waitKillableRecv, uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		return -1, fmt.Errorf("seccomp: %w", errno)
	}
	return int(fd), nil
}

// childArgs is what Exec takes.
func childArgs(program []string) []string {
	var args []string
	for _, c := range Calls() {
		args = append(args, strconv.Itoa(int(numbers[c])))
	}
	return append(append(args, "--"), program...)
}

// receiveListener takes the listener that the child sends, or says why none
// came.
func receiveListener(socket int) (int, error) {
	oob := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := unix.Recvmsg(socket, make([]byte, 1), oob, unix.MSG_CMSG_CLOEXEC)
	if err != nil {
		return -1, fmt.Errorf("receive the listener: %w", err)
	}
	messages, err := unix.ParseSocketControlMessage(oob[:n])
	if err != nil || len(messages) == 0 {
		return -1, errors.New("the child could not put a filter on")
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return -1, fmt.Errorf("the child sent %d descriptors: %w", len(fds), err)
	}
	return fds[0], nil
}

// within reports whether path is dir or lies in it.
func within(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, dir+"/")
}
