package main

import (
	encoding "encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/zeebo/xxh3"

	"github.com/tidemark-log/tidemark/frame"
)

// TestBadFiles_L29: whatever is at the path, each verb says what it is, where
// that matters and what to do, and changes nothing. None hangs.
func TestBadFiles_L29(t *testing.T) {
	t.Parallel()
	whole := newLog(t, numbered(100)...)
	write := func(content []byte) func(*testing.T, string) {
		return func(t *testing.T, path string) {
			if err := os.WriteFile(path, content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, tc := range []struct {
		name string
		make func(t *testing.T, path string)
		says string
	}{
		{"empty", write(nil), "the file is empty"},
		{"short", write(read(t, whole)[:100]), "does not begin like one"},
		{"cut in the header", write(read(t, whole)[:9000]), "cut off after 9000 bytes"},
		{"all zero", write(make([]byte, 100_000)), "begins with 16384 zero bytes"},
		{"foreign", write([]byte(strings.Repeat("SQLite format 3\x00", 5000))), "does not begin like one"},
		{"text", write([]byte("hello\n")), "does not begin like one"},
		{"newer version", write(newerVersion(read(t, whole))), "needs a newer version"},
		{"directory", func(t *testing.T, path string) {
			if err := os.Mkdir(path, 0o700); err != nil {
				t.Fatal(err)
			}
		}, "not a regular file"},
		{"symbolic link", func(t *testing.T, path string) {
			if err := os.Symlink(whole, path); err != nil {
				skip(t, err.Error())
			}
		}, "not a regular file"},
		{"dangling link", func(t *testing.T, path string) {
			if err := os.Symlink("nowhere", path); err != nil {
				skip(t, err.Error())
			}
		}, "not a regular file"},
		{"FIFO", func(t *testing.T, path string) {
			if out, err := exec.Command("mkfifo", path).CombinedOutput(); err != nil {
				skip(t, fmt.Sprintf("mkfifo: %v %s", err, out))
			}
		}, "not a regular file"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			path := newPath(t)
			tc.make(t, path)
			before := describe(t, path)
			for _, verb := range readers {
				tidemark(t, "", verb, path).want(t, 2, path, tc.says)
			}
			tidemark(t, "", "get", path, "namespace", "key").want(t, 2, path, tc.says)
			tidemark(t, "", "reindex", path).want(t, 2, path, tc.says)
			tidemark(t, "x\n", "append", path, "--ack").want(t, 2, path, tc.says).prints(t, "")
			tidemark(t, "", "create", path).want(t, 2, "file already exists", "another name")
			if after := describe(t, path); after != before {
				t.Errorf("was %s, is %s", before, after)
			}
		})
	}
}

// readers are the verbs that only read.
var readers = []string{"cat", "tail", "stat", "verify"}

func TestMissing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, path := range []string{filepath.Join(dir, "none.log"), filepath.Join(dir, "none", "none.log")} {
		for _, verb := range readers {
			tidemark(t, "", verb, path).want(t, 2, "no such file", "tidemark create")
		}
	}
	tidemark(t, "x\n", "append", filepath.Join(dir, "none", "none.log")).want(t, 2, "no such file", "a directory that exists")
	for _, path := range []string{dir, ".", "/", ""} {
		for _, verb := range append(readers, "append", "create") {
			tidemark(t, "", verb, path).want(t, 2)
		}
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) > 0 {
		t.Errorf("something was made: %v %v", names, err)
	}
}

// TestForbidden: a file of another user, and one that may only be read.
func TestForbidden(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		skip(t, "permissions are of another kind here")
	}
	dir, err := os.MkdirTemp("", "tidemark-forbidden-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	path := filepath.Join(dir, "run.log")
	tidemark(t, "a\n", "append", path).want(t, 0)
	var as []string // another user than root, whom nothing is forbidden
	if os.Geteuid() == 0 {
		if _, err := exec.LookPath("setpriv"); err != nil {
			skip(t, "no setpriv to become another user")
		}
		as = []string{"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"}
	}
	run := func(args ...string) result {
		return execute(t, strings.NewReader("x\n"), append(append(as[:len(as):len(as)], binary), args...)...)
	}
	mode := func(file, dirMode os.FileMode) {
		if err := os.Chmod(path, file); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(dir, dirMode); err != nil {
			t.Fatal(err)
		}
	}
	mode(0o000, 0o755)
	for _, verb := range append(readers, "append") {
		run(verb, path).want(t, 2, "permission denied", "owner")
	}
	mode(0o444, 0o755)
	run("cat", path).want(t, 0).prints(t, "a\n")
	run("stat", path).want(t, 0)
	run("append", path).want(t, 2, "permission denied")
	mode(0o444, 0o555)
	run("append", filepath.Join(dir, "new.log")).want(t, 2, "permission denied")
	run("create", filepath.Join(dir, "new.log")).want(t, 2, "permission denied")
	mode(0o600, 0o755)
	tidemark(t, "", "cat", path).want(t, 0).prints(t, "a\n")
}

// TestBadOutput: output that cannot be written is an error.
func TestBadOutput(t *testing.T) {
	t.Parallel()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		skip(t, "no /dev/full here")
	}
	defer full.Close()
	path := newLog(t, "a")
	for _, args := range [][]string{
		{"cat", path},
		{"tail", path},
		{"stat", path},
		{"version"},
		{"append", path, "--ack"},
		{"help"},
		{"help", "cat"},
		{"cat", "--help"},
		{"manual"},
		{"completion", "bash"},
	} {
		cmd := exec.Command(binary, args...)
		var says strings.Builder
		cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader("x\n"), full, &says
		err := cmd.Run()
		if cmd.ProcessState.ExitCode() != 2 || !strings.HasPrefix(says.String(), "tidemark") {
			t.Errorf("%v > /dev/full: %v, want exit code 2: %s", args, err, &says)
		}
		if n := strings.Count(says.String(), "no space left"); n != 1 {
			t.Errorf("%v > /dev/full says %d times that the disk is full:\n%s", args, n, &says)
		}
	}
}

// TestHelp_NoReader: help into a pipe that was closed is no error.
func TestHelp_NoReader(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"help"}, {"cat", "--help"}, {"authority"}} {
		var says strings.Builder
		if code := run(args, strings.NewReader(""), output{closedPipe{}}, &says); code != 0 || says.Len() > 0 {
			t.Errorf("%v: exit code %d, %q", args, code, &says)
		}
	}
}

// closedPipe is a pipe that nobody reads any more.
type closedPipe struct{}

func (closedPipe) Write([]byte) (int, error) {
	if runtime.GOOS == "windows" {
		return 0, syscall.Errno(109)
	}
	return 0, syscall.EPIPE
}

// TestMissing_Advice: what is missing is not always a log, and the advice says
// how to make one only if it is.
func TestMissing_Advice(t *testing.T) {
	t.Parallel()
	path, dir := newLog(t, "a"), t.TempDir()
	gone := filepath.Join(dir, "gone")
	const makes, there = "makes a log", "must be there"
	for _, tc := range []struct {
		args []string
		says string
	}{
		{[]string{"cat", gone}, makes},
		{[]string{"get", gone, "orders", "7"}, makes},
		{[]string{"copy", gone, newPath(t)}, makes},
		{[]string{"create", filepath.Join(gone, "a.log")}, makes},
		{[]string{"copy", path, filepath.Join(gone, "a.log")}, there},
		{[]string{"checkpoint", path, "--blob", gone}, there},
		{[]string{"inspect", path, "--html", filepath.Join(gone, "a.html")}, there},
		{[]string{"bench", gone}, there},
		{[]string{"torture", gone}, there},
		{[]string{"demo", "--dir", gone}, there},
		{[]string{"authority", "verify", gone}, there},
	} {
		r := tidemark(t, "", tc.args...).want(t, 2, tc.says)
		if strings.Contains(r.err, "append from that line") || strings.Contains(r.err, makes) != (tc.says == makes) {
			t.Errorf("%v: %s", tc.args, r.err)
		}
	}
}

// TestAdvice_NamesLog: advice names the log at hand, also for verbs with more
// operands, and no other file in its place.
func TestAdvice_NamesLog(t *testing.T) {
	t.Parallel()
	path, dir := newLog(t, "a"), t.TempDir()
	tidemark(t, "", "fork", path, newPath(t), "--at", "9").want(t, 5, "'tidemark stat "+path+"'")
	tidemark(t, "", "copy", dir, newPath(t)).want(t, 2, "not a regular file", "'tidemark create NEW'")
	tidemark(t, "", "cat", dir).want(t, 2, "not a regular file", "'tidemark create NEW'")
}

// TestError_NamesOnce: an error says once which log it is about.
func TestError_NamesOnce(t *testing.T) {
	t.Parallel()
	gone := newPath(t)
	for _, args := range [][]string{{"checkpoint", gone}, {"retain", gone, "--from", "1"}} {
		if says := tidemark(t, "", args...).want(t, 2, gone).err; strings.Contains(says, gone+": "+gone) {
			t.Errorf("%v: %s", args, says)
		}
	}
}

// TestBadInput: input that cannot be read is an error.
func TestBadInput(t *testing.T) {
	t.Parallel()
	dir, err := os.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	execute(t, dir, binary, "append", newPath(t)).want(t, 2, "line 1", "directory")
}

// describe tells one file from another.
func describe(t *testing.T, path string) string {
	t.Helper()
	info, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("%v of %d bytes", info.Mode(), info.Size())
	if info.Mode().IsRegular() {
		text += fmt.Sprintf(", %x", xxh3.Hash(read(t, path)))
	}
	return text
}

// newerVersion makes both copies of the identity those of the next format.
func newerVersion(b []byte) []byte {
	for _, off := range []int{frame.IdentityOffset, frame.IdentityCopyOffset} {
		id := b[off : off+frame.IdentitySize]
		le := encoding.LittleEndian
		le.PutUint32(id[8:], frame.Version+1)
		le.PutUint64(id[frame.IdentitySize-8:], xxh3.Hash(id[:frame.IdentitySize-8]))
	}
	return b
}
