package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// These tests run the program as others do: a built binary, its exit codes and
// what it prints. It is built once.

var (
	update  = flag.Bool("update", false, "write docs/CLI.md anew")
	binary  string
	skipped atomic.Int32
)

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(withBinary(m.Run))
}

func withBinary(tests func() int) int {
	dir, err := os.MkdirTemp("", "tidemark-bin-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil { // other users run it, too
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	binary = filepath.Join(dir, "tidemark")
	if runtime.GOOS == "windows" {
		binary += ".exe"
	}
	build := exec.Command("go", "build", "-o", binary, ".")
	build.Stdout, build.Stderr = os.Stderr, os.Stderr
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "build:", err)
		return 1
	}
	code := tests()
	if n := skipped.Load(); n > 0 {
		fmt.Printf("%d tests were skipped: they need root, a tool or another system\n", n)
	}
	return code
}

// skip leaves a test out and counts that.
func skip(t *testing.T, why string) {
	t.Helper()
	skipped.Add(1)
	t.Skip(why)
}

// result is what a finished command left.
type result struct {
	code     int
	out, err string
}

// hang makes a Go program print all its goroutines and end.
const hang = syscall.SIGQUIT

const patience = time.Minute // over which a command hangs

// tidemark runs the program with a text as standard input.
func tidemark(t *testing.T, in string, args ...string) result {
	t.Helper()
	return execute(t, strings.NewReader(in), append([]string{binary}, args...)...)
}

func execute(t *testing.T, in io.Reader, argv ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		t.Fatalf("%v: hangs\nstderr: %s", argv, errs.String())
	case err != nil && !errors.As(err, &exit):
		// A program that ends before it read all its input is no error.
		if cmd.ProcessState == nil {
			t.Fatalf("%v: %v", argv, err)
		}
	}
	return result{cmd.ProcessState.ExitCode(), out.String(), errs.String()}
}

// want fails unless the command ended with a code and each of some words is in
// what it said on standard error. An error has to say what to do next.
func (r result) want(t *testing.T, code int, words ...string) result {
	t.Helper()
	if r.code != code {
		t.Fatalf("exit code %d, want %d\nstdout: %.2000s\nstderr: %.4000s", r.code, code, r.out, r.err)
	}
	for _, w := range words {
		if !strings.Contains(r.err, w) {
			t.Errorf("standard error does not say %q:\n%s", w, r.err)
		}
	}
	switch {
	case code == 0 && r.err != "" && len(words) == 0:
		t.Errorf("good, and yet standard error says: %s", r.err)
	case code > 0 && code < 128 && !strings.Contains(r.err, "\n  next: "):
		t.Errorf("the error does not say what to do next: %s", r.err)
	case strings.Contains(r.err, "panic") || strings.Contains(r.err, "goroutine "):
		t.Errorf("it panicked: %s", r.err)
	}
	return r
}

// prints fails unless standard output is exactly this.
func (r result) prints(t *testing.T, want string) {
	t.Helper()
	if r.out != want {
		t.Errorf("prints %.2000q\nwant   %.2000q", r.out, want)
	}
}

// newPath names a log that does not exist yet.
func newPath(t *testing.T) string { return filepath.Join(t.TempDir(), "run.log") }

// newLog makes a log of these records, one a commit.
func newLog(t *testing.T, records ...string) string {
	t.Helper()
	path := newPath(t)
	tidemark(t, strings.Join(append(records, ""), "\n"), "append", path).want(t, 0)
	return path
}

// numbered returns n records that tell their place.
func numbered(n int) []string {
	records := make([]string, n)
	for i := range records {
		records[i] = fmt.Sprintf("record %d of the log, which has its own text", i+1)
	}
	return records
}

func joined(records []string) string {
	return strings.Join(append(records[:len(records):len(records)], ""), "\n")
}

// statOf reads what stat says in JSON.
func statOf(t *testing.T, path string) map[string]any {
	t.Helper()
	var s map[string]any
	if err := json.Unmarshal([]byte(tidemark(t, "", "stat", path, "--json").out), &s); err != nil {
		t.Fatal(err)
	}
	return s
}

// process is a command that runs on while the test talks to it.
type process struct {
	*exec.Cmd
	t    *testing.T
	in   io.WriteCloser
	pipe io.ReadCloser
	out  *bufio.Reader
	errs bytes.Buffer
}

// start starts the program with pipes on both sides. It is killed if it hangs.
func start(t *testing.T, args ...string) *process {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	p := &process{Cmd: exec.CommandContext(ctx, binary, args...), t: t}
	p.Cancel = func() error { return p.Process.Signal(hang) } // it says what it was doing
	p.WaitDelay = time.Second
	var err error
	if p.in, err = p.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if p.pipe, err = p.StdoutPipe(); err != nil {
		t.Fatal(err)
	}
	p.out = bufio.NewReader(p.pipe)
	p.Stderr = &p.errs
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	return p
}

// say writes to the program's standard input.
func (p *process) say(text string) {
	p.t.Helper()
	if _, err := io.WriteString(p.in, text); err != nil {
		p.t.Fatal(err)
	}
}

// hear reads the next line of the program's standard output.
func (p *process) hear(want string) {
	p.t.Helper()
	if line, err := p.out.ReadString('\n'); line != want+"\n" {
		p.t.Fatalf("prints %q (%v), want %q\nstderr: %s", line, err, want, p.errs.String())
	}
}

// end closes the program's standard input and waits for it.
func (p *process) end() result {
	p.t.Helper()
	_ = p.in.Close() // it may be gone
	rest, err := io.ReadAll(p.out)
	if err != nil {
		p.t.Fatal(err)
	}
	_ = p.Wait() // the code says it
	return result{p.ProcessState.ExitCode(), string(rest), p.errs.String()}
}

// interrupt sends what Ctrl-C sends.
func (p *process) interrupt() {
	p.t.Helper()
	if runtime.GOOS == "windows" {
		skip(p.t, "no process can send another one Ctrl-C here")
	}
	if err := p.Process.Signal(os.Interrupt); err != nil {
		p.t.Fatal(err)
	}
}
