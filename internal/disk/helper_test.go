//go:build linux || darwin || windows

package disk_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/tidemark-log/tidemark/internal/disk"
)

// roleVariable tells the test binary that it is a helper process, and which.
const roleVariable = "TIDEMARK_DISK_TEST_ROLE"

// roles are what a helper process may be told to do in the directory that is
// its first argument. What it prints is its report.
var roles = map[string]func(dir string){
	"nothing": func(string) {},
	"wait":    func(string) { waitForParent() },
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
	role(os.Args[len(os.Args)-1])
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

// skip gives up a test for what this machine lacks, or fails it where
// REQUIRE_FAULTS=1 says that nothing may be lacking.
func skip(t *testing.T, why ...any) {
	t.Helper()
	if os.Getenv("REQUIRE_FAULTS") == "1" {
		t.Fatal(why...)
	}
	t.Skip(why...)
}

// runsItself reports whether the test binary can be started from within. Under
// an emulator that the kernel does not know of it cannot.
var runsItself = sync.OnceValue(func() error {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleVariable+"=nothing")
	return cmd.Run()
})

// helper prepares a helper process, run by the given command if any.
func helper(t *testing.T, role, dir string, command ...string) *exec.Cmd {
	t.Helper()
	if err := runsItself(); err != nil {
		skip(t, "the test binary cannot start itself:", err)
	}
	argv := append(command, os.Args[0], dir)
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

// scratch is t.TempDir, except on Windows, where emptying it is a best effort:
// Wine 8 does not know the call that RemoveAll uses.
func scratch(t *testing.T) string {
	t.Helper()
	if runtime.GOOS != "windows" {
		return t.TempDir()
	}
	path, err := os.MkdirTemp("", "disk")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(path) })
	return path
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
