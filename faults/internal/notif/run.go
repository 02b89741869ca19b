package notif

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Run is one run of a program below the injector.
type Run struct {
	Helper  []string  // the command that calls Exec with the arguments behind it
	Program []string  // absolute path and arguments
	Dir     string    // absolute; only calls on what is in it are counted
	Rule    Rule      // the fault, or none
	Shadow  *Shadow   // learns every write and sync; nil: nobody asks
	Stdin   io.Reader // what the program reads
}

// Result is what came of a run.
type Result struct {
	Stdout string       // what another process than the program has in hand
	Stderr string       // for messages
	Exit   int          // -1: killed
	Counts map[Call]int // calls on files of the directory
	Fired  bool         // the fault happened
	Lies   int          // syncs that said nil and did nothing
}

// Do runs the program to its end.
func (r *Run) Do(ctx context.Context) (Result, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return Result{}, err
	}
	theirs := os.NewFile(uintptr(pair[1]), "listener socket")
	defer unix.Close(pair[0])
	var stdout, stderr bytes.Buffer
	args := append(append([]string{}, r.Helper[1:]...), childArgs(r.Program)...)
	cmd := exec.CommandContext(ctx, r.Helper[0], args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = r.Stdin, &stdout, &stderr
	cmd.ExtraFiles = []*os.File{theirs}
	if err := errors.Join(cmd.Start(), theirs.Close()); err != nil {
		return Result{}, err
	}
	s, err := r.supervise(cmd.Process.Pid, pair[0])
	if err != nil {
		_ = cmd.Process.Kill() // nothing it does counts any more
	}
	waited := cmd.Wait()
	var exit *exec.ExitError
	if waited != nil && !errors.As(waited, &exit) && ctx.Err() == nil {
		err = errors.Join(err, waited)
	}
	if ctx.Err() != nil {
		err = errors.Join(err, fmt.Errorf("the program did not end: %w", ctx.Err()))
	}
	result := Result{Stdout: stdout.String(), Stderr: stderr.String(), Exit: cmd.ProcessState.ExitCode()}
	if s != nil {
		result.Counts, result.Fired, result.Lies = s.counts, s.fired, s.lies
	}
	if err != nil {
		err = fmt.Errorf("%s of %q: %w; %s", r.Rule, r.Program, err, result.Stderr)
	}
	return result, err
}

// supervisor answers the notifications of one program.
type supervisor struct {
	run      *Run
	listener int
	pidfd    int
	counts   map[Call]int
	fired    bool
	lying    bool
	lies     int
	killed   bool
}

// supervise answers until the program has ended.
func (r *Run) supervise(pid, socket int) (*supervisor, error) {
	listener, err := receiveListener(socket)
	if err != nil {
		return nil, err
	}
	defer unix.Close(listener)
	pidfd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(pidfd)
	s := &supervisor{run: r, listener: listener, pidfd: pidfd, counts: map[Call]int{}}
	for {
		n, err := s.receive()
		if n == nil || err != nil {
			return s, err
		}
		if err := s.answer(n); err != nil {
			return s, err
		}
	}
}

// notification and response are the kernel's structures.
type notification struct {
	id    uint64
	tid   uint32
	flags uint32
	nr    int32
	arch  uint32
	ip    uint64
	args  [6]uint64
}

type response struct {
	id    uint64
	value int64
	err   int32
	flags uint32
}

const (
	ioctlReceive = 0xc0502100
	ioctlSend    = 0xc0182101

	responseContinue = 1
)

// receive waits for the next notification; nil means that the program ended.
func (s *supervisor) receive() (*notification, error) {
	for {
		fds := []unix.PollFd{
			{Fd: int32(s.listener), Events: unix.POLLIN},
			{Fd: int32(s.pidfd), Events: unix.POLLIN}, // readable once the program is dead
		}
		if _, err := unix.Poll(fds, -1); err != nil {
			if errors.Is(err, unix.EINTR) {
				continue
			}
			return nil, err
		}
		if fds[0].Revents&unix.POLLIN == 0 {
			return nil, nil
		}
		n := &notification{}
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(s.listener), ioctlReceive, uintptr(unsafe.Pointer(n)))
		switch errno {
		case 0:
			return n, nil
		case unix.EINTR, unix.ENOENT: // the caller died meanwhile
		default:
			return nil, fmt.Errorf("receive a notification: %w", errno)
		}
	}
}

func (s *supervisor) send(r *response) error {
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(s.listener), ioctlSend, uintptr(unsafe.Pointer(r)))
	if errno != 0 && errno != unix.ENOENT { // the caller may be dead
		return fmt.Errorf("answer a notification: %w", errno)
	}
	return nil
}

// answer decides what becomes of one call.
func (s *supervisor) answer(n *notification) error {
	c := &call{notification: n, name: names[n.nr], pidfd: s.pidfd}
	if s.killed || !c.concerns(s.run.Dir) {
		return s.send(&response{id: n.id, flags: responseContinue})
	}
	s.counts[c.name]++
	action := None
	if c.name == s.run.Rule.Call && s.counts[c.name] == s.run.Rule.Index {
		action, s.fired = s.run.Rule.Action, true
		s.lying = action == Lie
	}
	if s.lying && (c.name == Fdatasync || c.name == Fsync) {
		s.lies++
		return s.send(&response{id: n.id})
	}
	switch action {
	case None, Lie:
		return s.send(c.perform(s.run.Shadow, whole))
	case Short:
		return s.send(c.perform(s.run.Shadow, half))
	case TornKill:
		c.perform(s.run.Shadow, half)
		return s.kill()
	case KillAfter:
		return s.killAfter(c)
	case Kill:
		return s.kill()
	}
	s.run.Shadow.failed(c)
	return s.send(&response{id: n.id, err: -int32(errnos[action])})
}

// killAfter carries the call out and kills. What only the program itself can
// do is left to be done by it, and it is killed at its next caught call.
func (s *supervisor) killAfter(c *call) error {
	r := c.perform(s.run.Shadow, whole)
	if r.flags&responseContinue == 0 {
		return s.kill()
	}
	return errors.Join(s.send(r), s.kill())
}

func (s *supervisor) kill() error {
	s.killed = true
	return unix.PidfdSendSignal(s.pidfd, unix.SIGKILL, nil, 0)
}
