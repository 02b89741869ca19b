package lab

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
)

// envInside marks the process that runs the tests, and names its folder: it
// lives in a mount namespace of its own, so that no mount of a test is seen by,
// or outlives in, the rest of the machine, however the tests end.
const envInside = "FAULTS_INSIDE"

// Main runs the tests of a package and prints the summary. It is called once,
// by TestMain.
func Main(m *testing.M) int {
	if dir := os.Getenv(envInside); dir != "" {
		return runIn(dir, m)
	}
	dir, err := os.MkdirTemp("", "faults-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() {
		if err := os.RemoveAll(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}()
	if os.Geteuid() == 0 {
		return moveInside(dir)
	}
	return runIn(dir, m)
}

// runIn prepares the folder and runs the tests.
func runIn(dir string, m *testing.M) int {
	if err := prepare(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	summarize(os.Stdout)
	err := unmountScratch()
	if name := os.Getenv(envSummary); name != "" {
		err = errors.Join(err, appendSummary(name))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

func appendSummary(name string) error {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	summarize(f)
	return f.Close()
}

// scratch is the folder for everything that needs no disk of its own.
var scratch struct {
	base    string // on disk
	dir     string // in memory, as root
	mounted bool
}

func prepare(dir string) error {
	scratch.base, scratch.dir = dir, filepath.Join(dir, "scratch")
	bin := filepath.Join(dir, "bin")
	if err := errors.Join(os.Mkdir(scratch.dir, 0o755), os.Mkdir(bin, 0o755), os.Chmod(dir, 0o755)); err != nil {
		return err
	}
	if os.Geteuid() == 0 {
		if err := syscall.Mount("faults", scratch.dir, "tmpfs", 0, "mode=0755"); err != nil {
			return fmt.Errorf("mount a tmpfs: %w", err)
		}
		scratch.mounted = true
	}
	return build(bin)
}

func unmountScratch() error {
	if !scratch.mounted {
		return nil
	}
	return syscall.Unmount(scratch.dir, syscall.MNT_DETACH)
}

// moveInside runs this program again in a mount namespace of its own. The
// program inside dies with this one.
func moveInside(dir string) int {
	runtime.LockOSThread() // the death signal is tied to the thread
	self, err := os.Executable()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	cmd := exec.Command(self, os.Args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), envInside+"="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, "run in a mount namespace:", err)
		return 1
	}
	go func() {
		for s := range signals {
			_ = cmd.Process.Signal(s) // it may have ended
		}
	}()
	err = cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		fmt.Fprintln(os.Stderr, err)
	}
	if code := cmd.ProcessState.ExitCode(); code >= 0 {
		return code
	}
	return 1
}

// Scratch returns a new folder in memory (on disk without root), gone with the
// test.
func Scratch(t testing.TB) string {
	t.Helper()
	return newDir(t, scratch.dir)
}

// OnDisk is Scratch for what is too large for memory.
func OnDisk(t testing.TB) string {
	t.Helper()
	return newDir(t, scratch.base)
}

func newDir(t testing.TB, in string) string {
	t.Helper()
	dir, err := os.MkdirTemp(in, "t")
	if err == nil {
		err = os.Chmod(dir, 0o755) // other users come, too
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// Keep returns a new folder in memory that stays until all tests are done.
func Keep(t testing.TB, name string) string {
	t.Helper()
	dir, err := os.MkdirTemp(scratch.dir, name)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}
