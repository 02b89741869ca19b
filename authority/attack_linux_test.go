package authority

import (
	"errors"
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

// Other users, and directories that other users could touch.

// attack is another user who tries everything it can think of against a
// directory, until its input ends; it says how often something worked.
func attack(dir string) int {
	over := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(over)
	}()
	evil := filepath.Join(filepath.Dir(dir), "evil")
	_ = os.Mkdir(evil, 0o700)
	tries, worked := 0, []string{}
	hit := func(what string, err error) {
		if tries++; err == nil {
			worked = append(worked, what)
		}
	}
	fmt.Println("ready")
	for {
		select {
		case <-over:
			fmt.Println(tries, len(worked), strings.Join(worked[:min(len(worked), 3)], ","))
			return 0
		default:
		}
		hit("rename away", os.Rename(dir, dir+".old"))
		hit("rename over", os.Rename(evil, dir))
		hit("symlink", os.Symlink(evil, dir))
		hit("remove", os.Remove(dir))
		hit("chmod", os.Chmod(dir, 0o777))
		for _, name := range []string{lockName, keysName, nameOf("run").lock(), nameOf("run").state()} {
			path := filepath.Join(dir, name)
			hit("unlink "+name, os.Remove(path))
			hit("symlink "+name, os.Symlink("/etc/passwd", path))
			hit("link "+name, os.Link(path, filepath.Join(evil, name)))
			f, err := os.Open(path)
			if hit("open "+name, err); err == nil {
				_ = syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
			}
		}
	}
}

// asUser makes a helper run as another user; the binary is copied to where that
// user can reach it.
func asUser(t testing.TB, uid uint32) func(*exec.Cmd) {
	t.Helper()
	mustRoot(t)
	exe, err := os.Executable()
	must(t, err)
	b, err := os.ReadFile(exe)
	must(t, err)
	copied := filepath.Join(tempDir(t), "helper")
	must(t, os.WriteFile(copied, b, 0o755))
	return func(c *exec.Cmd) {
		c.Path = copied
		c.Dir = "/"
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	}
}

const (
	otherUser = 65501
	thirdUser = 65502
)

// attackFor is how long an attacker loops.
func attackFor() time.Duration {
	if os.Getenv("TIDEMARK_LONG") != "" {
		return 10 * time.Second
	}
	return time.Second
}

// T2: another user loops on every name it can reach while the owner works. In a
// sticky parent nothing works; where something could, Open refuses.
func TestT02_OtherUsersRaceTheOwner(t *testing.T) {
	other := asUser(t, otherUser)
	parent := tempDir(t)
	must(t, os.Chmod(parent, os.ModeSticky|0o777))
	dir := filepath.Join(parent, "authority")
	a, err := Open(ctx, dir, Options{Create: true})
	must(t, err)
	var attackers []*child
	for range 2 {
		c := spawn(t, other, "attack", dir)
		if s := c.line(); s != "ready" {
			t.Fatal(s)
		}
		attackers = append(attackers, c)
	}
	rounds := 0
	for until := time.Now().Add(attackFor()); time.Now().Before(until); rounds++ {
		b, err := Open(ctx, dir, Options{})
		must(t, err)
		l, err := b.Start(ctx, fmt.Sprint("run ", rounds))
		must(t, err)
		e, err := suspend(ctx, l, snap(t, fmt.Sprint("run ", rounds), 7, snapshot.Suspended))
		must(t, err)
		must(t, l.Close())
		i, err := a.PrepareImport(ctx, e)
		must(t, err)
		must(t, i.Close())
		must(t, b.Close())
	}
	must(t, a.Close())
	for _, c := range attackers {
		must(t, c.stdin.Close())
		var tries, worked int
		s := c.line()
		_, err := fmt.Sscan(s, &tries, &worked)
		must(t, err)
		if worked != 0 || tries < 100 {
			t.Errorf("attacker: %s", s)
		}
		t.Logf("%d rounds against %d attacks", rounds, tries)
	}
	// Where the parent is writable and not sticky, the attacker wins the name,
	// and Open never trusts it.
	must(t, os.Chmod(parent, 0o777))
	c := spawn(t, other, "attack", dir)
	c.line()
	for until := time.Now().Add(attackFor() / 2); time.Now().Before(until); {
		_, err := Open(ctx, dir, Options{Create: true})
		wantErr(t, err, ErrUnavailable)
	}
	must(t, c.stdin.Close())
	var tries, worked int
	_, err = fmt.Sscan(c.line(), &tries, &worked)
	if must(t, err); worked == 0 {
		t.Error("the control attack never worked: the test proves nothing")
	}
}

// Trap 9: an ancestor that can be searched and not read is fine.
func TestTrap09_SearchableAncestor(t *testing.T) {
	other := asUser(t, otherUser)
	base := tempDir(t)
	outer := filepath.Join(base, "outer")
	must(t, os.Mkdir(outer, 0o711))
	home := filepath.Join(outer, "home")
	must(t, os.Mkdir(home, 0o700))
	must(t, os.Chown(home, otherUser, otherUser))
	for range 2 {
		spawn(t, other, "open", filepath.Join(home, "state", "authority")).done()
	}
	// R7, R59: the owner's directory is nobody else's, not even root's.
	_, err := Open(ctx, filepath.Join(home, "state", "authority"), Options{})
	wantErr(t, err, ErrUnavailable)
	third := asUser(t, thirdUser)
	if s := spawn(t, third, "open", filepath.Join(home, "state", "authority")).line(); !strings.HasPrefix(s, "error") {
		t.Errorf("a third user: %s", s)
	}
}

// T6: a leaf that is not exactly ours and 0700 is refused and left as it is.
func TestT06_Trap19_UnsafeLeaf(t *testing.T) {
	for _, mode := range []os.FileMode{0o755, 0o770, 0o700 | os.ModeSetgid, 0o700 | os.ModeSetuid, 0o700 | os.ModeSticky, 0o500, 0o777} {
		dir := filepath.Join(tempDir(t), "authority")
		must(t, os.Mkdir(dir, 0o700))
		must(t, os.Chmod(dir, mode))
		_, err := Open(ctx, dir, Options{Create: true})
		wantErr(t, err, ErrUnavailable)
		unchanged(t, dir, mode)
	}
	mustRoot(t)
	dir := filepath.Join(tempDir(t), "authority")
	must(t, os.Mkdir(dir, 0o700))
	must(t, os.Chown(dir, otherUser, otherUser))
	_, err := Open(ctx, dir, Options{Create: true})
	wantErr(t, err, ErrUnavailable)
	unchanged(t, dir, 0o700)
}

func unchanged(t *testing.T, dir string, mode os.FileMode) {
	t.Helper()
	info, err := os.Stat(dir)
	must(t, err)
	entries, err := os.ReadDir(dir)
	must(t, err)
	if info.Mode() != mode|os.ModeDir || len(entries) != 0 {
		t.Errorf("%v became %v with %d entries", mode, info.Mode(), len(entries))
	}
}

// T7: each ancestor in turn made unsafe: refused, nothing created. R11: also
// when everything was fine before and was closed in between.
func TestT07_R11_UnsafeAncestors(t *testing.T) {
	mustRoot(t)
	for depth := range 3 {
		for name, spoil := range map[string]func(ancestor, next string) error{
			"foreign":        func(p, _ string) error { return os.Chown(p, otherUser, otherUser) },
			"writable":       func(p, _ string) error { return os.Chmod(p, 0o777) },
			"group writable": func(p, _ string) error { return os.Chmod(p, 0o775) },
			"sticky, foreign child": func(p, n string) error {
				return errors.Join(os.Chmod(p, os.ModeSticky|0o777), os.Chown(n, otherUser, otherUser))
			},
		} {
			base := tempDir(t)
			chain := []string{base, filepath.Join(base, "a"), filepath.Join(base, "a", "b"), filepath.Join(base, "a", "b", "authority")}
			must(t, os.MkdirAll(chain[2], 0o755))
			a, err := Open(ctx, chain[3], Options{Create: true})
			must(t, err)
			must(t, a.Close())
			must(t, spoil(chain[depth], chain[depth+1]))
			_, err = Open(ctx, chain[3], Options{})
			wantErr(t, err, ErrUnavailable)
			_, err = Open(ctx, filepath.Join(chain[2], "new", "authority"), Options{Create: true})
			if depth < 2 || name != "sticky, foreign child" {
				wantErr(t, err, ErrUnavailable)
				if entries, err := os.ReadDir(chain[2]); err != nil || len(entries) != 1 {
					t.Errorf("%s at %d: created %v (%v)", name, depth, entries, err)
				}
			}
		}
	}
	// R10: sticky with a child of our own is fine.
	base := tempDir(t)
	must(t, os.Chmod(base, os.ModeSticky|0o777))
	a, err := Open(ctx, filepath.Join(base, "authority"), Options{Create: true})
	must(t, err)
	must(t, a.Close())
}
