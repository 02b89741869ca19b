package device

import (
	"os"
	"testing"
)

func TestParseCounts(t *testing.T) {
	const text = " 100 1 200 3 40 5 640 7 0 9 10 11 12 13 14 17 16\n"
	got, err := parseCounts(text)
	if err != nil {
		t.Fatal(err)
	}
	if want := (Counts{WriteBytes: 640 * 512, WriteRequests: 40, Flushes: 17}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	for _, bad := range []string{"", "1 2 3", "a b c d e f g h i j k l m n o p q"} {
		if _, err := parseCounts(bad); err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
}

const mountinfo = `22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
30 22 0:26 / /dev/shm rw - tmpfs tmpfs rw,size=1k
31 22 7:0 / /bench/data rw,relatime - xfs /dev/loop0 rw,attr2
32 22 7:1 / /with\040space rw - ext4 /dev/loop1 rw
`

func TestFindMount(t *testing.T) {
	for path, want := range map[string]string{
		"/home/x":           "/dev/vda",
		"/bench/data":       "/dev/loop0",
		"/bench/data/store": "/dev/loop0",
		"/bench/database":   "/dev/vda",
		"/dev/shm/a":        "tmpfs",
		"/with space/a":     "/dev/loop1",
	} {
		m, err := findMount(mountinfo, path)
		if err != nil {
			t.Fatal(err)
		}
		if m.source != want {
			t.Errorf("%s: mounted from %s, want %s", path, m.source, want)
		}
	}
	if m, _ := findMount(mountinfo, "/home"); m.options != "rw,relatime" {
		t.Errorf("options %q", m.options)
	}
	if _, err := findMount("", "/x"); err == nil {
		t.Error("no mounts: no error")
	}
}

// What a directory is on differs from machine to machine; that a counter, if
// there is one, can be read does not.
func TestUnder(t *testing.T) {
	fsys, counter, err := Under(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if fsys.Type == "" {
		t.Error("no file system type")
	}
	if counter.Valid() != (fsys.Device != "") {
		t.Errorf("device %q, counter valid: %v", fsys.Device, counter.Valid())
	}
	if _, err := counter.Counts(); err != nil {
		t.Error(err)
	}
}

func TestMountLoop_Impossible(t *testing.T) {
	dir := t.TempDir()
	if _, err := MountLoop(dir, "fat", 1<<20); err == nil {
		t.Error("unknown file system: no error")
	}
	if _, err := MountLoop(dir, "ext4", 1<<60); err == nil {
		t.Error("no room: no error")
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestThisMachine(t *testing.T) {
	m := ThisMachine()
	if m.Cores < 1 || m.Kernel == "" || m.MemoryBytes == 0 || m.Go == "" {
		t.Errorf("incomplete: %+v", m)
	}
}

func TestField(t *testing.T) {
	if got := field("a\t: 1\nmodel name\t: Fast CPU\n", "model name"); got != "Fast CPU" {
		t.Errorf("got %q", got)
	}
	if got := field("", "model name"); got != "" {
		t.Errorf("got %q", got)
	}
}
