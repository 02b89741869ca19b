package faults_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tidemark-log/tidemark/faults/internal/lab"
	"github.com/tidemark-log/tidemark/faults/internal/oracle"
	"github.com/tidemark-log/tidemark/pagelog"
)

// stranger is a user that owns nothing.
var stranger = &syscall.Credential{Uid: 65501, Gid: 65501}

// guarded is a log that something keeps from being written.
type guarded struct {
	*testing.T
	log    string
	before []byte
	ledger *oracle.Ledger
}

// newGuarded makes a log of three commits on ext4.
func newGuarded(t *testing.T) *guarded {
	t.Helper()
	dir, _ := lab.Ext4.New(t, 16<<20)
	g := &guarded{T: t, log: filepath.Join(dir, "run.log"), ledger: oracle.New()}
	out := lab.Execute(t, "", lab.Victim(), g.log, "dcd").Want(t, 0)
	if err := g.ledger.Hear(out.Stdout); err != nil {
		t.Fatal(err)
	}
	g.before = g.bytes()
	return g
}

func (g *guarded) bytes() []byte {
	g.Helper()
	b, err := os.ReadFile(g.log)
	if err != nil {
		g.Fatal(err)
	}
	return b
}

// reads demands that every way to read works for a user.
func (g *guarded) reads(user *syscall.Credential) {
	g.Helper()
	out := lab.ExecuteAs(g, user, "", lab.Tidemark(), "cat", "--json", g.log).Want(g, 0)
	groups, err := oracle.FromCat(strings.NewReader(out.Stdout))
	if err == nil {
		err = g.ledger.Check(groups, oracle.Death)
	}
	if err != nil {
		g.Fatal(err)
	}
	lab.ExecuteAs(g, user, "", lab.Tidemark(), "verify", g.log).Want(g, 0)
	lab.ExecuteAs(g, user, "", lab.Tidemark(), "stat", g.log).Want(g, 0)
}

// refuses demands that writing is refused with a reason and changes nothing.
func (g *guarded) refuses(user *syscall.Credential, reason string) {
	g.Helper()
	out := lab.ExecuteAs(g, user, "more\n", lab.Tidemark(), "append", "--ack", g.log)
	if out.Exit != 2 || out.Stdout != "" || !strings.Contains(out.Stderr, reason) {
		g.Errorf("exit code %d, said %q: %s", out.Exit, out.Stdout, out.Stderr)
	}
	if string(g.bytes()) != string(g.before) {
		g.Error("the file was changed")
	}
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(g.log), ".run*")); err != nil || len(left) > 0 {
		g.Errorf("left behind: %q, %v", left, err)
	}
	lab.Count("refusals", 1)
}

// goesOn demands that the owner can write as before.
func (g *guarded) goesOn() {
	g.Helper()
	if out := lab.Execute(g, "more\n", lab.Tidemark(), "append", "--ack", g.log).Want(g, 0); out.Stdout != "4\n" {
		g.Errorf("said %q", out.Stdout)
	}
	if err := oracle.Verify(g.log, false); err != nil {
		g.Error(err)
	}
}

// Inode flags, as chattr(1) sets them.
const (
	immutable  = 0x10
	appendOnly = 0x20
)

// setFlag sets or clears one inode flag of a file.
func setFlag(t *testing.T, path string, flag int, on bool) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	flags, err := unix.IoctlGetInt(int(f.Fd()), unix.FS_IOC_GETFLAGS)
	if err != nil {
		t.Fatal(err)
	}
	flags &^= flag
	if on {
		flags |= flag
	}
	if err := unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, flags); err != nil {
		t.Fatal(err)
	}
}

func TestImmutable(t *testing.T) {
	for name, flag := range map[string]int{"immutable": immutable, "append only": appendOnly} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGuarded(t)
			setFlag(t, g.log, flag, true)
			g.reads(nil)
			g.refuses(nil, "operation not permitted")
			setFlag(t, g.log, flag, false)
			g.goesOn()
		})
	}
}

// TestImmutable_Directory keeps a log from being made.
func TestImmutable_Directory(t *testing.T) {
	t.Parallel()
	g := newGuarded(t)
	dir := filepath.Dir(g.log)
	setFlag(t, dir, immutable, true)
	out := lab.Execute(t, "", lab.Tidemark(), "create", filepath.Join(dir, "other.log"))
	if out.Exit != 2 || !strings.Contains(out.Stderr, "not permitted") {
		t.Errorf("exit code %d: %s", out.Exit, out.Stderr)
	}
	g.goesOn() // a log that is there needs no new name
	setFlag(t, dir, immutable, false)
}

func TestReadOnlyMount(t *testing.T) {
	t.Parallel()
	g := newGuarded(t)
	dir := filepath.Dir(g.log)
	if err := unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	g.reads(nil)
	g.refuses(nil, "read-only file system")
	if out := lab.Execute(t, "", lab.Tidemark(), "create", filepath.Join(dir, "other.log")); out.Exit != 2 {
		t.Errorf("exit code %d: %s", out.Exit, out.Stderr)
	}
	if err := unix.Mount("", dir, "", unix.MS_REMOUNT, ""); err != nil {
		t.Fatal(err)
	}
	g.goesOn()
}

// TestStranger lets another user at a log: one that it may not open, and one
// that it may read, whose writer it must not be able to keep out.
func TestStranger(t *testing.T) {
	t.Parallel()
	g := newGuarded(t)
	for _, verb := range []string{"cat", "verify", "stat", "tail"} {
		out := lab.ExecuteAs(t, stranger, "", lab.Tidemark(), verb, g.log)
		if out.Exit != 2 || out.Stdout != "" || !strings.Contains(out.Stderr, "permission denied") {
			t.Errorf("%s: exit code %d, said %q: %s", verb, out.Exit, out.Stdout, out.Stderr)
		}
	}
	g.refuses(stranger, "permission denied")
	if err := os.Chmod(g.log, 0o644); err != nil {
		t.Fatal(err)
	}
	g.reads(stranger)
	g.refuses(stranger, "permission denied")
	p := lab.StartAs(t, stranger, lab.Victim(), g.log, "w")
	if line, err := p.Hear(); err == nil {
		t.Errorf("a stranger's writer said %q", line)
	}
	f, err := os.Open(g.log) // what a stranger can hold of it
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	g.goesOn()
}

// TestLock_C38 holds the lock where others lose it: through the deaths of
// children, and against a second writer.
func TestLock_C38(t *testing.T) {
	t.Parallel()
	log := filepath.Join(lab.Scratch(t), "run.log")
	w := lab.Start(t, lab.Victim(), log, "dwd")
	for line := ""; line != "waiting"; {
		var err error
		if line, err = w.Hear(); err != nil {
			t.Fatal(w.Stderr())
		}
	}
	for range 3 {
		if f, err := os.Open(log); err != nil { // closing it would drop a lock of the old kind
			t.Fatal(err)
		} else if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		lab.Execute(t, "more\n", lab.Tidemark(), "append", "--ack", log).Want(t, 3)
		lab.Execute(t, "", lab.Tidemark(), "cat", log).Want(t, 0)
	}
	if err := w.Say("go"); err != nil {
		t.Fatal(err)
	}
	w.HearAll()
	if exit := w.Wait(); exit != 0 {
		t.Errorf("exit code %d: %s", exit, w.Stderr())
	}
	if groups, err := oracle.Read(log, pagelog.ReaderOptions{}); err != nil || len(groups) != 2 {
		t.Errorf("%d commits, %v", len(groups), err)
	}
}
