//go:build linux || darwin || windows

package disk_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/tidemark-log/tidemark/internal/disk"
)

// roleVariable tells the test binary that it is a helper process, and which.
const roleVariable = "TIDEMARK_DISK_TEST_ROLE"

// roles are what a helper process may be told to do in the directory that is
// its first argument. What it prints is its report.
var roles = map[string]func(dir string){
	"wait": func(string) { waitForParent() },
	"lock": func(dir string) {
		f := must(must(disk.OpenDir(dir)).Open("log", disk.ReadWrite))
		check(f.Lock())
		fmt.Println("locked")
		waitForParent()
	},
}

func TestMain(m *testing.M) {
	role, isHelper := roles[os.Getenv(roleVariable)]
	if !isHelper {
		os.Exit(m.Run())
	}
	role(os.Args[1])
}

// waitForParent returns when the parent lets go of standard input.
func waitForParent() { _, _ = io.Copy(io.Discard, os.Stdin) }

func check(err error) {
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

func must[T any](v T, err error) T {
	check(err)
	return v
}

// helper prepares a helper process, run by the given command if any.
func helper(t *testing.T, role, dir string, command ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	argv := append(command, self, dir)
	cmd := exec.Command(argv[0], argv[1:]...)
	// Without atexit_sleep_ms every helper of a -race build would linger a second.
	cmd.Env = append(os.Environ(), roleVariable+"="+role, "GORACE=atexit_sleep_ms=0")
	cmd.Stderr = os.Stderr
	return cmd
}

// start begins a helper process that waits for the end of its input, and
// returns a function that reads one line of what it prints.
func start(t *testing.T, cmd *exec.Cmd) (line func() string, stop func()) {
	t.Helper()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stop = func() {
		_ = in.Close()
		_ = cmd.Wait()
	}
	t.Cleanup(stop)
	lines := bufio.NewReader(out)
	return func() string {
		text, err := lines.ReadString('\n')
		if err != nil {
			t.Fatalf("helper: %q, %v", text, err)
		}
		return strings.TrimSpace(text)
	}, stop
}

// openDir and the others stop the test if anything goes wrong.
func openDir(t *testing.T, path string) disk.Dir {
	t.Helper()
	d, err := disk.OpenDir(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d
}

func create(t *testing.T, d disk.Dir, name string) disk.File {
	t.Helper()
	f, err := d.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func open(t *testing.T, d disk.Dir, name string) disk.File {
	t.Helper()
	f, err := d.Open(name, disk.ReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}
