package faults_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tidemark-log/tidemark/cursor"
	"github.com/tidemark-log/tidemark/faults/internal/blockdev"
	"github.com/tidemark-log/tidemark/faults/internal/lab"
	"github.com/tidemark-log/tidemark/faults/internal/notif"
	"github.com/tidemark-log/tidemark/faults/internal/oracle"
	"github.com/tidemark-log/tidemark/pagelog"
)

// keptFrom is the oldest revision that retention leaves here.
const keptFrom = 31

// kept is a log and what its history is. Forking, dropping and compacting do
// not change a single digest.
type kept struct {
	path    string
	digests []cursor.Digest // of revision i at i - 1
}

func (k *kept) fork() string { return filepath.Join(filepath.Dir(k.path), "fork.log") }

// newKept writes a log of 60 commits with keys and a checkpoint.
func newKept(t testing.TB, path string) kept {
	t.Helper()
	ctx := context.Background()
	l, err := pagelog.Create(path, pagelog.CreateOptions{PageSize: 4096}, pagelog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	k := kept{path: path}
	for rev := range uint64(60) {
		var b pagelog.Batch
		b.Append([]byte(oracle.Text(oracle.Attempt{Revision: rev + 1}, 0, 1, int(rev*977%9000))))
		b.Key([]byte("n"), strconv.AppendUint(nil, rev+1, 10))
		c, err := l.Commit(ctx, &b)
		if err != nil {
			t.Fatal(err)
		}
		k.digests = append(k.digests, c.Digest)
		if rev == 40 {
			if err := l.Checkpoint(ctx, rev, []byte("state")); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return k
}

// holds opens the log at path for writing and reading, and compares what it has
// with the history, of which more may follow. It returns the oldest revision
// and the generation of the file.
func (k *kept) holds(path string, more uint64) (oldest, generation uint64, err error) {
	l, err := pagelog.Open(path, pagelog.Options{})
	if err != nil {
		return 0, 0, err
	}
	oldest, generation = l.Oldest(), l.Generation()
	next := oldest
	for g, e := range l.Commits(oldest - 1) {
		if e != nil {
			err = e
			break
		}
		if g.Revision != next || next <= uint64(len(k.digests)) && g.Digest != k.digests[next-1] {
			err = fmt.Errorf("%s: revision %d stands where %d should, digest %v", path, g.Revision, next, g.Digest)
			break
		}
		next++
	}
	if head := uint64(len(k.digests)) + more; err == nil && next != head+1 {
		err = fmt.Errorf("%s ends at revision %d, not %d", path, next-1, head)
	}
	for rev := oldest; err == nil && rev <= uint64(len(k.digests)); rev++ {
		var got uint64
		if got, _, err = l.Lookup([]byte("n"), strconv.AppendUint(nil, rev, 10)); err == nil && got != rev {
			err = fmt.Errorf("%s: key %d leads to %d", path, rev, got)
		}
	}
	return oldest, generation, errors.Join(err, l.Close(), oracle.Verify(path, false))
}

// chore is one way to do with less of a log, or with two of it.
type chore struct {
	name string
	argv func(k *kept) []string
	// check looks at what is there now, done or not, and says whether it is
	// done.
	check func(k *kept) (done bool, err error)
}

func chores() []chore {
	return []chore{
		{"fork", func(k *kept) []string { return []string{"fork", k.path, k.fork()} }, func(k *kept) (bool, error) {
			if _, err := os.Lstat(k.fork()); errors.Is(err, fs.ErrNotExist) {
				return false, nil
			}
			_, _, err := k.holds(k.fork(), 1)
			return true, err
		}},
		{"retain", func(k *kept) []string { return []string{"retain", k.path, "--from", strconv.Itoa(keptFrom)} }, func(k *kept) (bool, error) {
			oldest, _, err := k.holds(k.path, 0)
			if err == nil && oldest != 1 && oldest != keptFrom {
				err = fmt.Errorf("the oldest revision is %d", oldest)
			}
			return oldest == keptFrom, err
		}},
		{"compact", func(k *kept) []string { return []string{"compact", k.path} }, func(k *kept) (bool, error) {
			_, generation, err := k.holds(k.path, 0)
			if err == nil && generation != 1 && generation != 2 {
				err = fmt.Errorf("the file generation is %d", generation)
			}
			return generation == 2, err
		}},
	}
}

// steps are the calls between which a chore may die: all that change something.
var steps = []notif.Call{notif.Openat, notif.Pwrite64, notif.Fdatasync, notif.Fsync, notif.Ftruncate, notif.Fallocate, notif.Renameat2, notif.Unlinkat}

// TestChores_Killed_Q125_D32 kills a fork, a retention and a compaction with
// SIGKILL before, after and in the middle of every call that changes something.
// Nothing is lost, nothing half done is seen, and doing it again succeeds.
func TestChores_Killed_Q125_D32(t *testing.T) {
	for _, c := range chores() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			made := newKept(t, filepath.Join(lab.Scratch(t), "run.log"))
			counts := c.killed(t, &made, notif.Rule{}).Counts
			var points []notif.Rule
			for _, call := range steps {
				for i := range counts[call] {
					for _, a := range notif.Actions(call) {
						if a == notif.Kill || a == notif.KillAfter || a == notif.TornKill {
							points = append(points, notif.Rule{Call: call, Index: i + 1, Action: a})
						}
					}
				}
			}
			all := len(points)
			if n := lab.Pick(24, all); n < all {
				points = thin(points, n)
			}
			kills := 0
			for _, rule := range points {
				if c.killed(t, &made, rule).Fired {
					kills++
				}
			}
			if kills < len(points)/2 {
				t.Errorf("%d of %d calls came again", kills, len(points))
			}
			lab.Count("kills of forks, retentions and compactions", kills)
			t.Logf("%d kills at %d of %d points", kills, len(points), all)
		})
	}
}

// killed runs the chore on a copy of the log until the rule kills it, looks at
// what is left, does it again and goes on with the log.
func (c *chore) killed(t *testing.T, from *kept, rule notif.Rule) notif.Result {
	t.Helper()
	k := *from
	k.path = filepath.Join(lab.Scratch(t), "run.log")
	copyFile(t, from.path, k.path)
	before, err := os.ReadFile(k.path)
	if err != nil {
		t.Fatal(err)
	}
	run := notif.Run{Helper: []string{lab.Faultd(), "exec"}, Program: append([]string{lab.Tidemark()}, c.argv(&k)...), Dir: filepath.Dir(k.path), Rule: rule}
	result, err := run.Do(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if rule.Action == notif.None && result.Exit != 0 || rule.Action != notif.None && result.Fired != (result.Exit == -1) {
		t.Fatalf("%v: exit code %d: %s", rule, result.Exit, result.Stderr)
	}
	if after, err := os.ReadFile(k.path); c.name == "fork" && (err != nil || string(after) != string(before)) {
		t.Fatalf("%v: the source of the fork changed, %v", rule, err)
	}
	done, err := c.check(&k)
	if err != nil || result.Exit == 0 && !done {
		t.Fatalf("%v: done %v, %v", rule, done, err)
	}
	if !done {
		lab.Execute(t, "", append([]string{lab.Tidemark()}, c.argv(&k)...)...).Want(t, 0)
		if done, err = c.check(&k); err != nil || !done {
			t.Fatalf("%v, done again: done %v, %v", rule, done, err)
		}
	}
	lab.Execute(t, "more\n", lab.Tidemark(), "append", k.path).Want(t, 0)
	if _, _, err := k.holds(k.path, 1); err != nil {
		t.Fatalf("%v, gone on: %v", rule, err)
	}
	return result
}

// TestChores_PowerCut_Q125_D32 cuts the power at any moment of a fork, a
// retention, a compaction and a fork of its outcome, on real file systems: what
// was said to be done is done, anything else is done or not, and no commit is
// lost or changed.
func TestChores_PowerCut_Q125_D32(t *testing.T) {
	for _, fs := range []lab.FileSystem{lab.Ext4, lab.XFS, lab.Btrfs} {
		t.Run(fs.Name, func(t *testing.T) {
			t.Parallel()
			c := newChoreCuts(t, fs)
			n := lab.Pick(24, 300)
			for i := range n {
				if err := c.try(i); err != nil {
					t.Fatal(err)
				}
			}
			lab.Count("images of a disk cut in a fork, a retention or a compaction", n)
			t.Logf("%d images; the chores were done at records %v, %d were found done before that was said", n, c.done, c.between)
		})
	}
}

// choreCuts is the recorded life of a log that is forked, shortened and
// compacted.
type choreCuts struct {
	*disk
	kept    kept
	image   string
	begin   int   // the log is whole from here on
	done    []int // and the chores, one by one, are done from there on
	between int   // chores found done in images before they were said to be
}

func newChoreCuts(t testing.TB, fs lab.FileSystem) *choreCuts {
	t.Helper()
	c := &choreCuts{disk: newDisk(t, fs)}
	c.image = filepath.Join(filepath.Dir(c.dir), "image")
	if err := os.Mkdir(c.image, 0o755); err != nil {
		t.Fatal(err)
	}
	lab.UnmountAfter(t, c.image)
	c.kept = newKept(t, c.log())
	unix.Sync() // none of this is what is tested here
	c.begin = c.position()
	for _, chore := range chores() {
		lab.Execute(t, "", append([]string{lab.Tidemark()}, chore.argv(&c.kept)...)...).Want(t, 0)
		c.done = append(c.done, c.position())
	}
	lab.Unmount(t, c.dir)
	return c
}

// try mounts one image and looks at everything that may be in it.
func (c *choreCuts) try(seed int) error {
	random := rand.New(rand.NewPCG(uint64(seed), 13))
	cut := c.begin + random.IntN(c.done[len(c.done)-1]-c.begin+1)
	mode := []blockdev.Mode{blockdev.Drop, blockdev.Rand, blockdev.Rand, blockdev.Keep}[random.IntN(4)]
	c.server.Ask("image %d %d %s", cut, seed, mode)
	err := c.fs.Mount(filepath.Join(c.fuse, "crash"), c.image)
	if err == nil {
		err = errors.Join(c.look(cut), lab.TryUnmount(c.image))
	}
	if err != nil {
		return fmt.Errorf("%s: cut after record %d, seed %d, %s: %w\nunflushed: %s", c.fs.Name, cut, seed, mode, err, c.server.Ask("unflushed %d", cut))
	}
	return nil
}

func (c *choreCuts) look(cut int) error {
	k := c.kept
	k.path = filepath.Join(c.image, "run.log")
	for i, chore := range chores() {
		done, err := chore.check(&k)
		if err != nil {
			return fmt.Errorf("%s: %w", chore.name, err)
		}
		if !done && cut >= c.done[i] {
			return fmt.Errorf("%s was done at record %d and is not any more", chore.name, c.done[i])
		}
		if done && cut < c.done[i] {
			c.between++
		}
	}
	return nil
}
