package pagelog

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/tidemark-log/tidemark/internal/disk"
)

// helperRole says what this binary does when a test runs it as another process.
const helperRole = "PAGELOG_TEST_ROLE"

func TestMain(m *testing.M) {
	if role := os.Getenv(helperRole); role != "" {
		if err := helper(role, os.Getenv("PAGELOG_TEST_LOG")); err != nil {
			fmt.Println("helper:", err)
			os.Exit(3)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func helper(role, path string) error {
	switch role {
	case "hold": // a writer until its input ends
		l, err := Open(path, Options{})
		if err != nil {
			return err
		}
		fmt.Println("held")
		_, err = io.Copy(io.Discard, os.Stdin)
		return errors.Join(err, l.Close())
	case "idle": // a child that has nothing to do with the log
		fmt.Println("up")
		_, err := io.Copy(io.Discard, os.Stdin)
		return err
	case "append": // commits for ever, saying what was acknowledged
		return appendForEver(path)
	case "follow": // every commit up to the given one, once, in order
		return followTo(path)
	case "steady": // commits in the steady state, between two marks
		return steadyState(path)
	}
	return fmt.Errorf("no such role")
}

// line is what commit number n of the helpers holds.
func line(n uint64) []byte {
	return fmt.Appendf(nil, "%d %s", n, bytes.Repeat([]byte{byte('a' + n%26)}, int(n*37%5000)))
}

func appendForEver(path string) error {
	l, err := Open(path, Options{})
	if errors.Is(err, os.ErrNotExist) {
		l, err = Create(path, small, Options{})
	}
	if err != nil {
		return err
	}
	for n := l.Head().Revision + 1; ; n++ {
		b := batchOf(line(n))
		b.CompleteOnly = n%5 == 0
		c, err := l.Commit(context.Background(), b)
		if err != nil {
			return err
		}
		if c.Durable {
			fmt.Println(c.Revision)
		}
	}
}

func followTo(path string) error {
	want, _ := strconv.ParseUint(os.Getenv("PAGELOG_TEST_UNTIL"), 10, 64)
	r, err := OpenReader(path, ReaderOptions{Durable: os.Getenv("PAGELOG_TEST_DURABLE") != ""})
	if err != nil {
		return err
	}
	next := uint64(1)
	for g, err := range r.Follow(context.Background(), 0) {
		if err != nil {
			return err
		}
		for rec, err := range g.Records() {
			if err != nil || g.Revision != next || !bytes.Equal(rec.Data, line(next)) {
				return fmt.Errorf("revision %d after %d: %.20q, %w", g.Revision, next-1, rec.Data, err)
			}
		}
		if next++; next > want {
			fmt.Println("all", want)
			return r.Close()
		}
	}
	return errors.New("the reader ended early")
}

func steadyState(path string) error {
	dir, err := disk.OpenDir(filepath.Dir(path))
	if err != nil {
		return err
	}
	l, err := CreateIn(Env{Dir: dir, Idle: -1}, filepath.Base(path), CreateOptions{}, Options{})
	if err != nil {
		return err
	}
	mark, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	b := batchOf(make([]byte, 256))
	for i := range 60 {
		if i == 10 {
			fmt.Fprint(mark, "STEADY-BEGIN")
		}
		if _, err := l.Commit(context.Background(), b); err != nil {
			return err
		}
	}
	fmt.Fprint(mark, "STEADY-END")
	return errors.Join(l.Close(), mark.Close())
}

// spawn runs this binary as another process in a role.
func spawn(t *testing.T, role, path string, env ...string) (*exec.Cmd, *bufio.Reader) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), helperRole+"="+role, "PAGELOG_TEST_LOG="+path), env...)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd, bufio.NewReader(out)
}

func expectLine(t *testing.T, r *bufio.Reader, want string) {
	t.Helper()
	got, err := r.ReadString('\n')
	if strings.TrimSpace(got) != want {
		t.Fatalf("the other process says %q, %v; want %q", got, err, want)
	}
}

// end ends a process and waits until it is gone.
func end(cmd *exec.Cmd) {
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
}

func TestL19_OneWriter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.log")
	l, err := Create(path, small, Options{})
	if err != nil {
		t.Fatal(err)
	}
	locked := func(when string) {
		t.Helper()
		if _, err := Open(path, Options{}); !errors.Is(err, ErrLocked) {
			t.Fatalf("%s: a second writer in this process: %v", when, err)
		}
		_, out := spawn(t, "hold", path)
		if got, _ := out.ReadString('\n'); !strings.Contains(got, ErrLocked.Error()) {
			t.Fatalf("%s: a second writer in another process: %q", when, got)
		}
	}
	locked("open")
	// Closing other descriptors of the file drops no lock.
	r, err := OpenReader(path, ReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(r.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
	locked("after other descriptors were closed")
	// A child that was started meanwhile keeps nothing.
	_, out := spawn(t, "idle", path)
	expectLine(t, out, "up")
	closeLog(t, l)
	if l, err = Open(path, Options{}); err != nil {
		t.Fatalf("beside a child of the last writer: %v", err)
	}
	closeLog(t, l)
	// A killed writer keeps nothing.
	cmd, out := spawn(t, "hold", path)
	expectLine(t, out, "held")
	if _, err := Open(path, Options{}); !errors.Is(err, ErrLocked) {
		t.Fatalf("beside another process: %v", err)
	}
	end(cmd)
	if l, err = Open(path, Options{}); err != nil {
		t.Fatalf("after the writer was killed: %v", err)
	}
	closeLog(t, l)
}

// C47, C49, C7: a program that appends lines, killed in the middle of it, again
// and again: everything it acknowledged is there, in order, and nothing else.
func TestC47_KilledAgainAndAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.log")
	rounds := 12
	if testing.Short() {
		rounds = 3
	}
	acked := uint64(0)
	for round := range rounds {
		cmd, out := spawn(t, "append", path)
		for range 1 + round*7%40 {
			text, err := out.ReadString('\n')
			if err != nil {
				t.Fatal(text, err)
			}
			n, err := strconv.ParseUint(strings.TrimSpace(text), 10, 64)
			if err != nil || n <= acked {
				t.Fatalf("acknowledged %q after %d", text, acked)
			}
			acked = n
		}
		_ = cmd.Process.Kill()
		rest, _ := io.ReadAll(out) // what it acknowledged before it died
		_ = cmd.Wait()
		for text := range strings.Lines(string(rest)) {
			if n, err := strconv.ParseUint(strings.TrimSpace(text), 10, 64); err == nil && strings.HasSuffix(text, "\n") {
				acked = n
			}
		}
		l, err := Open(path, Options{})
		if err != nil {
			t.Fatal(err)
		}
		got, err := contents(l.Reader, 0)
		if err != nil || uint64(len(got)) < acked {
			t.Fatalf("round %d: %d commits of %d acknowledged, %v", round, len(got), acked, err)
		}
		for i, text := range got {
			if text != string(line(uint64(i+1)))+"|" {
				t.Fatalf("round %d: commit %d is %.30q", round, i+1, text)
			}
		}
		closeLog(t, l)
	}
}

// L41: readers in other processes beside a writer in yet another.
func TestL41_ReaderProcessesSeeEveryCommitOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.log")
	writer, acks := spawn(t, "append", path)
	expectLine(t, acks, "1")
	readers, until := 8, 400
	if testing.Short() {
		readers, until = 2, 60
	}
	var outs []*bufio.Reader
	for i := range readers {
		env := []string{fmt.Sprint("PAGELOG_TEST_UNTIL=", until)}
		if i%2 == 1 {
			env = append(env, "PAGELOG_TEST_DURABLE=1")
		}
		_, out := spawn(t, "follow", path, env...)
		outs = append(outs, out)
	}
	go func() { _, _ = io.Copy(io.Discard, acks) }() // a full pipe would stop the writer
	for _, out := range outs {
		expectLine(t, out, fmt.Sprint("all ", until))
	}
	end(writer)
}

// L12, C23: the system calls of durable commits, counted from outside.
func TestL12_SystemCallsOfACommit(t *testing.T) {
	strace, err := exec.LookPath("strace")
	if err != nil || runtime.GOOS != "linux" {
		if os.Getenv("REQUIRE_FAULTS") != "" {
			t.Fatal("no strace here")
		}
		t.Skip("no strace here")
	}
	dir := t.TempDir()
	trace := filepath.Join(dir, "trace")
	cmd := exec.Command(strace, "-f", "-o", trace, "-e", "trace=%desc,%file,fdatasync,fsync,sync_file_range", os.Args[0])
	cmd.Env = append(os.Environ(), helperRole+"=steady", "PAGELOG_TEST_LOG="+filepath.Join(dir, "a.log"))
	if out, err := cmd.CombinedOutput(); err != nil {
		if os.Getenv("REQUIRE_FAULTS") == "" && !bytes.Contains(out, []byte("helper:")) {
			t.Skipf("strace does not work here: %v\n%s", err, out)
		}
		t.Fatalf("%v\n%s", err, out)
	}
	text, err := os.ReadFile(trace)
	if err != nil {
		t.Fatal(err)
	}
	_, steady, found := strings.Cut(string(text), "STEADY-BEGIN")
	steady, _, found2 := strings.Cut(steady, "STEADY-END")
	if !found || !found2 {
		t.Fatal("no marks in the trace")
	}
	counts := map[string]int{}
	var order strings.Builder
	for _, m := range regexp.MustCompile(`(?m)^\d+ +(?:<\.\.\. )?(\w+)(\(| resumed)`).FindAllStringSubmatch(steady, -1) {
		if m[2] != "(" {
			continue
		}
		counts[m[1]]++
		switch m[1] {
		case "pwrite64":
			order.WriteString("w")
		case "fdatasync":
			order.WriteString("s")
		}
	}
	if order.String() != strings.Repeat("ws", 50) {
		t.Fatalf("50 commits made %q: %v", order.String(), counts)
	}
	for call, n := range counts {
		switch call {
		case "pwrite64", "fdatasync":
		case "fstat", "newfstatat", "statx", "fstatat64":
			if n > 50 {
				t.Errorf("%d calls of %s for 50 commits", n, call)
			}
		case "pread64": // two group headers are looked at again, from memory (L20)
			if n > 50 {
				t.Errorf("%d reads for 50 commits", n)
			}
		case "write", "epoll_pwait", "read", "epoll_ctl", "mmap": // the mark's own end, the runtime
		default:
			t.Errorf("%d calls of %s in the steady state", n, call)
		}
	}
	t.Log(counts)
}
