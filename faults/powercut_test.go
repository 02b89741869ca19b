package faults_test

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tidemark-log/tidemark/faults/internal/blockdev"
	"github.com/tidemark-log/tidemark/faults/internal/lab"
	"github.com/tidemark-log/tidemark/faults/internal/oracle"
	"github.com/tidemark-log/tidemark/pagelog"
)

// disk is a served disk with a file system on it.
type disk struct {
	testing.TB
	fs     lab.FileSystem
	server *lab.Process
	fuse   string // folder of the files disk and crash
	dir    string // where the file system is mounted
}

// newDisk serves a disk, formats and mounts it.
func newDisk(t testing.TB, fs lab.FileSystem) *disk {
	t.Helper()
	lab.Root(t)
	lab.Device(t, "/dev/fuse")
	lab.Device(t, "/dev/loop-control")
	lab.Program(t, fs.Make[0])
	base := lab.Scratch(t)
	d := &disk{TB: t, fs: fs, fuse: filepath.Join(base, "fuse"), dir: filepath.Join(base, "mnt")}
	if err := errors.Join(os.Mkdir(d.fuse, 0o755), os.Mkdir(d.dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	d.server = lab.Start(t, lab.Faultd(), "disk", d.fuse, strconv.FormatInt(fs.MB, 10))
	if line, err := d.server.Hear(); err != nil || line != "ready" {
		d.server.Kill()
		t.Fatalf("serve a disk: %q, %s", line, d.server.Stderr())
	}
	lab.UnmountAfter(t, d.fuse)
	lab.UnmountAfter(t, d.dir)
	dev, err := lab.Attach(filepath.Join(d.fuse, "disk"))
	if err != nil {
		t.Fatal(err)
	}
	fs.Format(t, dev.Name())
	if err := errors.Join(fs.MountDevice(dev.Name(), d.dir), dev.Close()); err != nil {
		t.Fatal(err)
	}
	unix.Sync()
	d.server.Ask("mark")
	return d
}

func (d *disk) log() string { return filepath.Join(d.dir, "run.log") }

func (d *disk) position() int {
	d.Helper()
	n, err := strconv.Atoi(d.server.Ask("pos"))
	if err != nil {
		d.Fatal(err)
	}
	return n
}

// moment is what was promised when the disk had seen so many records.
type moment struct {
	position int
	ledger   *oracle.Ledger
}

// TestPowerCut_C25_C26 cuts the power at any moment of a writer's life, on real
// file systems: whatever of the unflushed sectors is on the disk then, the file
// system replays its journal, the log opens, and everything acknowledged before
// that moment is in it.
func TestPowerCut_C25_C26(t *testing.T) {
	for _, fs := range []lab.FileSystem{lab.Ext4, lab.Ext4Journal, lab.XFS, lab.Btrfs} {
		t.Run(fs.Name, func(t *testing.T) {
			t.Parallel()
			c := newCuts(t, fs)
			n := lab.Pick(24, 300)
			for i := range n {
				if err := c.try(i); err != nil {
					t.Error(err)
				}
			}
			lab.Count("images of a cut disk", n)
			t.Logf("%d images of %d records, %d commits", n, c.end, c.moments[len(c.moments)-1].ledger.Durable())
		})
	}
}

// TestPowerCut_Control is the proof of the proof: on a file system that flushes
// nothing, power cuts must be seen to lose acknowledged commits.
func TestPowerCut_Control(t *testing.T) {
	t.Parallel()
	c := newCuts(t, lab.Ext4NoFlush)
	lost, n := 0, lab.Pick(12, 60)
	var last error
	for i := range n {
		if err := c.try(i); err != nil {
			lost, last = lost+1, err
		}
	}
	t.Logf("%d of %d images broke a promise, as they must: %v", lost, n, last)
	lab.Count("images of a disk without flushes", n)
	lab.Count("of them caught", lost)
	if lost == 0 {
		t.Error("no image of a disk that flushes nothing lost anything: this test can see nothing")
	}
}

// cuts is the recorded life of a writer.
type cuts struct {
	*disk
	moments []moment
	end     int
	image   string // where images are mounted
}

func newCuts(t testing.TB, fs lab.FileSystem) *cuts {
	t.Helper()
	c := &cuts{disk: newDisk(t, fs)}
	c.image = filepath.Join(filepath.Dir(c.dir), "image")
	if err := os.Mkdir(c.image, 0o755); err != nil {
		t.Fatal(err)
	}
	lab.UnmountAfter(t, c.image)
	ledger := oracle.New()
	c.moments = []moment{{c.position(), ledger.Clone()}}
	c.live(ledger, "dwdwccSwdKwdRwdcdw", "-try", "0", "-size", "900")
	c.live(ledger, "dccwdwddddw", "-try", "100", "-size", "9000", "-checkpoint", "20000")
	c.append(ledger)
	c.live(ledger, "dcdw", "-try", "300", "-size", "500000", "-lines", "5")
	c.live(ledger, "dRd", "-try", "400")
	c.end = c.position()
	lab.Unmount(t, c.dir)
	return c
}

// live runs a victim and notes after each word what is promised from there on.
// One that waits at the end of its script is killed there.
func (c *cuts) live(ledger *oracle.Ledger, script string, flags ...string) {
	c.Helper()
	argv := append(append([]string{lab.Victim()}, flags...), c.log(), script)
	p := lab.Start(c, argv...)
	waits := strings.Count(script, "w")
	for {
		line, err := p.Hear()
		if err != nil {
			break
		}
		if line == "waiting" {
			if waits--; waits == 0 && strings.HasSuffix(script, "w") {
				break
			}
			if err := p.Say("go"); err != nil {
				c.Fatal(err)
			}
			continue
		}
		if err := ledger.HearLine(line); err != nil {
			c.Fatal(err)
		}
		c.moments = append(c.moments, moment{c.position(), ledger.Clone()})
	}
	p.Kill()
	if p.Stderr() != "" {
		c.Fatal(p.Stderr())
	}
}

// append lets the command line program write commits of two lines.
func (c *cuts) append(ledger *oracle.Ledger) {
	c.Helper()
	groups, err := oracle.Read(c.log(), pagelog.ReaderOptions{})
	if err != nil {
		c.Fatal(err)
	}
	p := lab.Start(c, lab.Tidemark(), "append", "--ack", "--group", "2", c.log())
	for i := range uint64(5) {
		a := oracle.Attempt{Revision: uint64(len(groups)) + 1 + i, Try: 200}
		ledger.Offer(a)
		got := p.Ask("%s", strings.Join(oracle.Texts(a, 2, 2000), "\n"))
		if got != strconv.FormatUint(a.Revision, 10) {
			c.Fatalf("acknowledged %q, want %d", got, a.Revision)
		}
		ledger.Ack(a, true)
		c.moments = append(c.moments, moment{c.position(), ledger.Clone()})
	}
	p.CloseIn()
	if exit := p.Wait(); exit != 0 {
		c.Fatalf("exit code %d: %s", exit, p.Stderr())
	}
}

// try mounts one image and holds the log in it against what was promised.
func (c *cuts) try(seed int) error {
	random := rand.New(rand.NewPCG(uint64(seed), 11))
	cut := random.IntN(c.end + 1)
	mode := []blockdev.Mode{blockdev.Drop, blockdev.Rand, blockdev.Rand, blockdev.Keep}[random.IntN(4)]
	c.server.Ask("image %d %d %s", cut, seed, mode)
	err := c.fs.Mount(filepath.Join(c.fuse, "crash"), c.image)
	if err == nil {
		err = c.look(promised(c.moments, cut))
		err = errors.Join(err, lab.TryUnmount(c.image))
	}
	if err != nil {
		return fmt.Errorf("%s: cut after record %d of %d, seed %d, %s: %w\nunflushed: %s",
			c.fs.Name, cut, c.end, seed, mode, err, c.server.Ask("unflushed %d", cut))
	}
	return nil
}

func (c *cuts) look(l *oracle.Ledger) error {
	groups, err := oracle.Recover(filepath.Join(c.image, "run.log"), pagelog.Options{})
	if errors.Is(err, fs.ErrNotExist) && l.MayBeMissing() {
		return nil
	}
	if err != nil {
		return err
	}
	return l.Check(groups, oracle.PowerCut)
}
