package disk_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tidemark-log/tidemark/internal/disk"
)

func init() {
	roles["descriptors"] = listDescriptors
	roles["limit"] = writeBeyondLimit
	roles["full"] = fillTmpfs
	roles["interrupted"] = beInterrupted
}

func TestOpen_Device(t *testing.T) {
	path := t.TempDir()
	null := int(unix.Mkdev(1, 3))
	if err := unix.Mknod(filepath.Join(path, "log"), unix.S_IFCHR|0o600, null); err != nil {
		skip(t, "cannot make a device node:", err)
	}
	refused(t, openDir(t, path), "device")
}

// report runs a helper process to its end and returns what it printed.
func report(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("helper: %v\n%s", err, out)
	}
	return strings.TrimSpace(string(out))
}

// listDescriptors prints what the process inherited from its directory.
func listDescriptors(dir string) {
	for _, e := range must(os.ReadDir("/proc/self/fd")) {
		target, _ := os.Readlink("/proc/self/fd/" + e.Name()) // the listing's own is closed by now
		if strings.HasPrefix(target, dir) {
			fmt.Println(target)
		}
	}
}

func TestFile_NoDescriptorReachesAChild(t *testing.T) {
	path := t.TempDir()
	d := openDir(t, path)
	create(t, d, "log")
	open(t, d, "log")
	if got := report(t, helper(t, "descriptors", path)); got != "" {
		t.Errorf("the child inherited:\n%s", got)
	}
}

// writeBeyondLimit makes the file system stop a write half-way.
func writeBeyondLimit(dir string) {
	f := must(must(disk.OpenDir(dir)).Create("log"))
	check(unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 10240, Max: 10240}))
	n, err := f.WriteAt(bytes.Repeat([]byte("x"), 12288), 0)
	fmt.Println(n, errors.Is(err, disk.ErrNoSpace), errors.Is(err, unix.EFBIG))
	err = f.Allocate(0, 20480)
	fmt.Println(errors.Is(err, disk.ErrNoSpace), must(f.Stat()).Size)
	err = f.Truncate(20480)
	fmt.Println(errors.Is(err, disk.ErrNoSpace), must(f.Stat()).Size)
}

func TestWriteAt_FileSizeLimit(t *testing.T) {
	got := report(t, helper(t, "limit", t.TempDir()))
	if want := "10240 true true\ntrue 10240\ntrue 10240"; got != want {
		t.Errorf("short write, Allocate, Truncate reported\n%s\nwant\n%s", got, want)
	}
}

// fillTmpfs uses up a tiny file system that only this process can see.
func fillTmpfs(dir string) {
	check(unix.Mount("tmpfs", dir, "tmpfs", 0, "size=256k,nr_inodes=4"))
	d := must(disk.OpenDir(dir))
	fmt.Println(must(d.FileSystem()).Name)
	f := must(d.Create("log"))
	page := bytes.Repeat([]byte("x"), 4096)
	var written int64
	var err error
	for err == nil {
		var n int
		n, err = f.WriteAt(page, written)
		written += int64(n)
	}
	fmt.Println(written, errors.Is(err, disk.ErrNoSpace))
	check(f.Truncate(8192))
	err = f.Allocate(0, 1<<20)
	got := make([]byte, 8192)
	must(f.ReadAt(got, 0))
	fmt.Println(errors.Is(err, disk.ErrNoSpace), bytes.Equal(got, bytes.Repeat(page, 2)))
	for i := 0; err == nil || i == 0; i++ {
		_, err = d.Create(fmt.Sprint("another", i))
	}
	fmt.Println(errors.Is(err, disk.ErrNoSpace))
}

func TestNoSpace_FullFileSystem(t *testing.T) {
	if os.Geteuid() != 0 {
		skip(t, "mounting a tmpfs needs root")
	}
	cmd := helper(t, "full", t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	got, err := cmd.Output()
	if errors.Is(err, unix.EPERM) {
		skip(t, "this root may not make a mount namespace:", err)
	}
	if want := "tmpfs\n262144 true\ntrue true\ntrue\n"; string(got) != want || err != nil {
		t.Errorf("WriteAt, Allocate, Create reported\n%s%v, want\n%s", got, err, want)
	}
}

// beInterrupted does one of each call on one thread, so that a tracer that
// counts per thread can interrupt the first.
func beInterrupted(dir string) {
	runtime.LockOSThread()
	d := must(disk.OpenDir(dir))
	f := must(d.Create("log"))
	_, err := f.WriteAt([]byte("tidemark"), 0)
	fmt.Println("write", err)
	got := make([]byte, 8)
	_, err = f.ReadAt(got, 0)
	fmt.Println("read", string(got), err)
	fmt.Println("allocate", f.Allocate(0, 100))
	fmt.Println("sync", errors.Is(f.Sync(), unix.EINTR))
	fmt.Println("syncdir", errors.Is(d.Sync(), unix.EINTR))
}

// Reads, writes and allocations that a signal interrupts are done again; a sync
// is not, because the interrupted one may have swallowed the report of a lost
// write.
func TestFile_Interrupted(t *testing.T) {
	if _, err := exec.LookPath("strace"); err != nil {
		skip(t, "no strace here")
	}
	trace, dir := filepath.Join(t.TempDir(), "trace"), t.TempDir()
	const calls = "fdatasync,fsync,pwrite64,pread64,fallocate"
	cmd := helper(t, "interrupted", dir, "strace", "-f", "-qq", "-o", trace,
		"-P", dir, "-P", filepath.Join(dir, "log"),
		"-e", "trace="+calls, "-e", "inject="+calls+":error=EINTR:when=1")
	got := report(t, cmd)
	want := "write <nil>\nread tidemark <nil>\nallocate <nil>\nsync true\nsyncdir true"
	if got != want {
		t.Errorf("calls reported\n%s\nwant\n%s", got, want)
	}
	text, err := os.ReadFile(trace)
	if err != nil {
		t.Fatal(err)
	}
	for call, times := range map[string]int{"fdatasync(": 1, "fsync(": 1, "pwrite64(": 2, "pread64(": 2, "fallocate(": 2} {
		if n := strings.Count(string(text), " "+call); n != times {
			t.Errorf("%d calls of %s), want %d\n%s", n, call, times, text)
		}
	}
}

func TestWrap_OutOfSpace(t *testing.T) {
	for _, err := range []error{unix.ENOSPC, unix.EDQUOT, unix.EFBIG} {
		got := disk.Wrap("write", "log", err)
		var shape *fs.PathError
		if !errors.Is(got, disk.ErrNoSpace) || !errors.Is(got, err) || !errors.As(got, &shape) {
			t.Errorf("%v comes back as %v", err, got)
		}
	}
	if got := disk.Wrap("write", "log", unix.EIO); errors.Is(got, disk.ErrNoSpace) || !errors.Is(got, unix.EIO) {
		t.Errorf("EIO comes back as %v", got)
	}
	if got := disk.Wrap("open", "log", unix.EACCES); !errors.Is(got, fs.ErrPermission) {
		t.Errorf("EACCES comes back as %v", got)
	}
}
