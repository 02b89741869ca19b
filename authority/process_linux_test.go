package authority

import (
	"bufio"
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tidemark-log/tidemark/snapshot"
)

// Real processes: the test binary runs itself as a helper, named by an
// environment variable. A helper says what it did on a line of its output and
// then waits for its input to end, or to be killed.

const helperVariable = "TIDEMARK_AUTHORITY_HELPER"

func TestMain(m *testing.M) {
	if verb := os.Getenv(helperVariable); verb != "" {
		os.Exit(helper(verb, os.Args[1:]))
	}
	os.Exit(m.Run())
}

func helper(verb string, args []string) int {
	say := func(s string) { fmt.Println(s) }
	var umask int
	if _, err := fmt.Sscanf(os.Getenv("TIDEMARK_UMASK"), "%o", &umask); err == nil {
		syscall.Umask(umask)
	}
	if verb == "attack" {
		return attack(args[0])
	}
	if verb == "descriptors" {
		return descriptors(args[0])
	}
	a, err := Open(ctx, args[0], Options{Create: true})
	if err != nil {
		say("error " + err.Error())
		return 0
	}
	out, err := helperDo(a, verb, args[1:])
	if err != nil {
		say("error " + err.Error())
	} else {
		say("done " + out)
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	return 0
}

func helperDo(a *Authority, verb string, args []string) (string, error) {
	switch verb {
	case "open":
		return hex.EncodeToString(a.keys.scope[:]), nil
	case "open and stop":
		_, err := a.alone(ctx)
		return "", err
	case "start":
		_, err := a.Start(ctx, args[0])
		return "", err
	case "suspend":
		l, err := a.Start(ctx, args[0])
		if err != nil {
			return "", err
		}
		e, err := suspend(ctx, l, snap(&testing.T{}, args[0], 7, snapshot.Suspended))
		return hex.EncodeToString(e.Encoding()), err
	case "child":
		if _, err := a.Start(ctx, args[0]); err != nil {
			return "", err
		}
		child := exec.Command("cat") // outlives its parent, holding what it inherited
		child.Stdin, child.Stdout = os.Stdin, nil
		err := child.Start()
		return fmt.Sprint(child.Process.Pid), err
	}
	b, err := hex.DecodeString(args[0])
	if err != nil {
		return "", err
	}
	e, err := ParseEnvelope(b)
	if err != nil {
		return "", err
	}
	i, err := a.PrepareImport(ctx, e)
	if err == nil && verb != "prepare" {
		err = i.Consume(ctx)
	}
	if err == nil && verb == "activate" {
		_, err = i.Activate(ctx)
	}
	return "", err
}

// child is a helper that is running.
type child struct {
	t     testing.TB
	cmd   *exec.Cmd
	stdin io.Closer
	lines *bufio.Reader
}

// spawn starts a helper; change, which may be nil, alters how.
func spawn(t testing.TB, change func(*exec.Cmd), verb string, args ...string) *child {
	t.Helper()
	exe, err := os.Executable()
	must(t, err)
	cmd := exec.Command(exe, args...)
	cmd.Env = append(os.Environ(), helperVariable+"="+verb)
	if change != nil {
		change(cmd)
	}
	in, err := cmd.StdinPipe()
	must(t, err)
	out, err := cmd.StdoutPipe()
	must(t, err)
	cmd.Stderr = os.Stderr
	must(t, cmd.Start())
	c := &child{t: t, cmd: cmd, stdin: in, lines: bufio.NewReader(out)}
	t.Cleanup(c.kill)
	return c
}

// line is the helper's next line, without its end.
func (c *child) line() string {
	c.t.Helper()
	s, err := c.lines.ReadString('\n')
	if err != nil {
		c.t.Fatalf("helper: %v", err)
	}
	return strings.TrimSuffix(s, "\n")
}

// done is what the helper has done.
func (c *child) done() string {
	c.t.Helper()
	s := c.line()
	out, ok := strings.CutPrefix(s, "done ")
	if !ok {
		c.t.Fatalf("helper: %s", s)
	}
	return out
}

// kill is kill -9, and waits until the process is gone.
func (c *child) kill() {
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait()
}

func TestR4_ProcessesRacingTheFirstOpen(t *testing.T) {
	for range 5 {
		dir := filepath.Join(tempDir(t), "deep", "authority")
		var children []*child
		for range 6 {
			children = append(children, spawn(t, nil, "open", dir))
		}
		scopes := map[string]bool{}
		for _, c := range children {
			scopes[c.done()] = true
		}
		a, err := Open(ctx, dir, Options{})
		must(t, err)
		scopes[hex.EncodeToString(a.keys.scope[:])] = true
		must(t, a.Close())
		if len(scopes) != 1 {
			t.Fatalf("identities: %v", scopes)
		}
		entries, err := os.ReadDir(filepath.Dir(dir))
		must(t, err)
		if len(entries) != 1 {
			t.Errorf("left behind beside it: %v", entries)
		}
		for _, c := range children {
			c.kill()
		}
	}
}

// Helpers killed while suspended, before activation and after activation.
func TestR100_KilledHolders(t *testing.T) {
	a, dir := tempAuthority(t)
	owner := spawn(t, nil, "suspend", dir, "run")
	e := owner.done()
	parsed, err := ParseEnvelope(unhex(t, e))
	must(t, err)
	_, err = a.PrepareImport(ctx, parsed)
	wantErr(t, err, ErrBusy)
	owner.kill() // suspended: importable at once (R30, R74)
	i, err := a.PrepareImport(ctx, parsed)
	must(t, err)
	must(t, i.Abort())

	prepared := spawn(t, nil, "prepare", dir, e)
	prepared.done()
	_, err = a.PrepareImport(ctx, parsed)
	wantErr(t, err, ErrBusy)
	prepared.kill() // prepared: nothing happened
	i, err = a.PrepareImport(ctx, parsed)
	must(t, err)
	must(t, i.Abort())

	consumer := spawn(t, nil, "consume", dir, e)
	consumer.done()
	info, err := a.Inspect(ctx, "run")
	if must(t, err); info.Phase != Importing || !info.Held {
		t.Errorf("%+v", info)
	}
	consumer.kill() // before activation: the claim is used up
	_, err = a.PrepareImport(ctx, parsed)
	wantErr(t, err, ErrVerification)
	must(t, a.Resolve(ctx, "run", snapshot.Failed))

	second := spawn(t, nil, "suspend", dir, "run 2")
	e = second.done()
	second.kill()
	active := spawn(t, nil, "activate", dir, e)
	active.done()
	wantErr(t, a.Resolve(ctx, "run 2", snapshot.Failed), ErrBusy)
	active.kill() // after activation: orphaned, never importable
	parsed, err = ParseEnvelope(unhex(t, e))
	must(t, err)
	_, err = a.PrepareImport(ctx, parsed)
	wantErr(t, err, ErrVerification)
	must(t, a.Resolve(ctx, "run 2", snapshot.Cancelled))
}

// T4: probing, and closing other descriptors of the lock files, drops nothing.
func TestT04_ProbingNeverDropsTheLock(t *testing.T) {
	a, dir := tempAuthority(t)
	l, err := a.Start(ctx, "run")
	must(t, err)
	e, err := suspend(ctx, l, snap(t, "run", 7, snapshot.Suspended))
	must(t, err)
	b, err := Open(ctx, dir, Options{})
	must(t, err)
	for range 20 {
		if info, err := b.Inspect(ctx, "run"); err != nil || !info.Held {
			t.Fatalf("%+v %v", info, err)
		}
		for _, name := range []string{lockName, nameOf("run").lock(), nameOf("run").state()} {
			f, err := os.OpenFile(filepath.Join(dir, name), os.O_RDWR, 0)
			must(t, err)
			must(t, f.Close())
		}
		_, err := b.PrepareImport(ctx, e)
		wantErr(t, err, ErrBusy)
	}
	must(t, b.Close())
	if s := spawn(t, nil, "prepare", dir, hex.EncodeToString(e.Encoding())).line(); !strings.Contains(s, "busy") {
		t.Errorf("another process: %s", s)
	}
	must(t, l.Close())
	spawn(t, nil, "prepare", dir, hex.EncodeToString(e.Encoding())).done()
}

// T5: children started all the time inherit nothing, and an owner killed while
// a child of it lives gives the run up.
func TestT05_ForkExecStorm(t *testing.T) {
	a, dir := tempAuthority(t)
	stop, stopped := make(chan struct{}), make(chan int)
	go func() {
		n := 0
		for {
			select {
			case <-stop:
				stopped <- n
				return
			default:
			}
			c := spawn(t, nil, "descriptors", dir)
			if s := c.line(); s != "none" {
				t.Errorf("a child holds %s", s)
			}
			_ = c.cmd.Wait()
			n++
		}
	}()
	l, err := a.Start(ctx, "storm")
	must(t, err)
	for range 100 {
		cycle(t, l, 7)
		b, err := Open(ctx, dir, Options{})
		must(t, err)
		must(t, b.Close())
	}
	must(t, l.Close())
	close(stop)
	t.Logf("%d children", <-stopped)
	for n := range 5 {
		id := fmt.Sprint("run ", n)
		owner := spawn(t, nil, "child", dir, id)
		pid := owner.done()
		_ = owner.cmd.Process.Kill() // the child holds the pipe: nothing to wait for
		_, _ = owner.cmd.Process.Wait()
		if _, err := os.Stat("/proc/" + pid); err != nil {
			t.Fatalf("the child is gone: %v", err)
		}
		must(t, a.Resolve(ctx, id, snapshot.Failed))
		must(t, owner.stdin.Close())
	}
}

// descriptors lists what this process has open below a directory.
func descriptors(dir string) int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		fmt.Println(err)
		return 0
	}
	found := "none"
	for _, e := range entries {
		if to, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && strings.HasPrefix(to, dir) {
			found = to
		}
	}
	fmt.Println(found)
	return 0
}

// T19: whoever holds the lock of Open may be stopped; others get their
// context's error.
func TestT19_StoppedHolderOfTheOpenLock(t *testing.T) {
	_, dir := tempAuthority(t)
	holder := spawn(t, nil, "open and stop", dir)
	holder.done()
	must(t, holder.cmd.Process.Signal(syscall.SIGSTOP))
	short, cancel := context.WithTimeout(ctx, 30*time.Millisecond)
	defer cancel()
	_, err := Open(short, dir, Options{})
	wantErr(t, err, context.DeadlineExceeded)
	ended, cancel := context.WithCancel(ctx)
	cancel()
	_, err = Open(ended, dir, Options{})
	wantErr(t, err, context.Canceled)
	holder.kill()
	a, err := Open(ctx, dir, Options{})
	must(t, err)
	must(t, a.Close())
}

// T15: every operation under every umask, in a real process.
func TestT15_UmaskMatrix(t *testing.T) {
	for _, umask := range []string{"0", "077", "0277", "0777"} {
		dir := filepath.Join(tempDir(t), "new", "authority")
		under := func(c *exec.Cmd) { c.Env = append(c.Env, "TIDEMARK_UMASK="+umask) }
		first := spawn(t, under, "suspend", dir, "run")
		e := first.done()
		first.kill()
		second := spawn(t, under, "activate", dir, e)
		second.done()
		second.kill()
		a, err := Open(ctx, dir, Options{})
		must(t, err)
		must(t, a.Resolve(ctx, "run", snapshot.Failed))
		must(t, a.Close())
		must(t, filepath.Walk(filepath.Dir(dir), func(path string, info os.FileInfo, err error) error {
			want := os.FileMode(0o600)
			if err == nil && info.IsDir() {
				want = 0o700
			}
			if err != nil || info.Mode().Perm() != want {
				t.Errorf("R103: umask %s: %s is %v (%v)", umask, path, info.Mode(), err)
			}
			return nil
		}))
	}
}
