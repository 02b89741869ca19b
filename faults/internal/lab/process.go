package lab

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Patience is how long a program may take before it counts as hanging.
const Patience = time.Minute

// Outcome is what a program that ended left.
type Outcome struct {
	Stdout, Stderr string
	Exit           int // -1: killed by a signal
}

// Execute runs a program to its end.
func Execute(t testing.TB, stdin string, argv ...string) Outcome {
	t.Helper()
	return ExecuteAs(t, nil, stdin, argv...)
}

// ExecuteAs is Execute as another user; nil is this one.
func ExecuteAs(t testing.TB, user *syscall.Credential, stdin string, argv ...string) Outcome {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &stdout, &stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: user, Pdeathsig: syscall.SIGKILL}
	hung := time.AfterFunc(Patience, func() { _ = cmd.Process.Kill() })
	err := cmd.Run()
	var exit *exec.ExitError
	if !hung.Stop() || err != nil && !errors.As(err, &exit) {
		t.Fatalf("%q: %v, or it hangs\n%s", argv, err, stderr.String())
	}
	out := Outcome{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
	if strings.Contains(out.Stderr, "panic") || strings.Contains(out.Stderr, "internal error") {
		t.Fatalf("%q: %s", argv, out.Stderr)
	}
	return out
}

// Want fails unless the program ended with a code.
func (o Outcome) Want(t testing.TB, exit int) Outcome {
	t.Helper()
	if o.Exit != exit {
		t.Fatalf("exit code %d, want %d\n%s", o.Exit, exit, o.Stderr)
	}
	return o
}

// Process is a program that runs beside the test and talks over pipes.
type Process struct {
	t      testing.TB
	Cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	errs   bytes.Buffer
	hung   *time.Timer
	waited bool
}

// Start starts a program. It is killed at the end of the test, if it lives.
func Start(t testing.TB, argv ...string) *Process {
	t.Helper()
	return StartAs(t, nil, argv...)
}

// StartAs is Start as another user; nil is this one.
func StartAs(t testing.TB, user *syscall.Credential, argv ...string) *Process {
	t.Helper()
	p := &Process{t: t, Cmd: exec.Command(argv[0], argv[1:]...)}
	var err error
	if p.in, err = p.Cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := p.Cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.out, p.Cmd.Stderr = bufio.NewReader(out), &p.errs
	p.Cmd.SysProcAttr = &syscall.SysProcAttr{Credential: user, Pdeathsig: syscall.SIGKILL}
	if err := p.Cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Kill() })
	return p
}

// Say writes a line to the program. It may have died.
func (p *Process) Say(format string, args ...any) error {
	_, err := fmt.Fprintf(p.in, format+"\n", args...)
	return err
}

// Hear returns the next whole line, or io.EOF when no more come. A line whose
// end is missing is none.
func (p *Process) Hear() (string, error) {
	p.Watch()
	line, err := p.out.ReadString('\n')
	if err != nil {
		return "", io.EOF
	}
	return strings.TrimSuffix(line, "\n"), nil
}

// Watch ends a program that is silent for too long from now on, in a way that
// makes a Go program say where it was.
func (p *Process) Watch() {
	if p.hung == nil {
		p.hung = time.AfterFunc(Patience, func() { _ = p.Cmd.Process.Signal(syscall.SIGQUIT) })
	}
	p.hung.Reset(Patience)
}

// Ask says a line and returns the answer, of one line.
func (p *Process) Ask(format string, args ...any) string {
	p.t.Helper()
	if err := p.Say(format, args...); err != nil {
		p.t.Fatalf("say %q: %v\n%s", format, err, p.errs.String())
	}
	line, err := p.Hear()
	if err != nil {
		p.t.Fatalf("no answer to %q\n%s", fmt.Sprintf(format, args...), p.errs.String())
	}
	return line
}

// Out is everything the program says, for whoever does not call Hear.
func (p *Process) Out() io.Reader { return p.out }

// HearAll returns what is still said up to the end.
func (p *Process) HearAll() string {
	p.Watch()
	rest, _ := io.ReadAll(p.out) // the pipe of a dead program ends somehow
	return string(rest)
}

// CloseIn ends the program's input.
func (p *Process) CloseIn() { _ = p.in.Close() }

// Kill sends SIGKILL and waits.
func (p *Process) Kill() {
	if !p.waited {
		_ = p.Cmd.Process.Kill() // it may have ended
		p.Wait()
	}
}

// Wait waits for the end and returns the exit code, -1 after a signal.
func (p *Process) Wait() int {
	if !p.waited {
		p.waited = true
		_ = p.Cmd.Wait() // the code says it
		if p.hung != nil {
			p.hung.Stop()
		}
	}
	return p.Cmd.ProcessState.ExitCode()
}

// DiedOf reports whether a signal ended the program, which has ended.
func (p *Process) DiedOf(s syscall.Signal) bool {
	status, ok := p.Cmd.ProcessState.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == s
}

// Stderr returns what the program complained of, once it has ended.
func (p *Process) Stderr() string { return p.errs.String() }
