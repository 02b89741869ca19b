package pagelog

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// meter reads what a benchmark costs the block device: bytes written and
// flushes, from the kernel's own counters of the device that holds a directory.
// They count everybody's work on it, so they mean something on a quiet machine
// only. Where there are none, it says so and reports nothing.
type meter struct {
	b     *testing.B
	stat  string // file with the counters; empty: there is none
	bytes uint64
	flush uint64
}

// startMeter begins to count what is done to the device of a directory.
func startMeter(b *testing.B, dir string) *meter {
	b.Helper()
	m := &meter{b: b}
	stat, why := deviceStat(dir)
	if why != "" {
		b.Logf("no device counters: %s", why)
		return m
	}
	m.stat = stat
	m.bytes, m.flush, _ = readDevice(stat)
	return m
}

// report adds what was counted to the benchmark's result.
func (m *meter) report() {
	m.b.Helper()
	if m.stat == "" {
		return
	}
	bytes, flush, ok := readDevice(m.stat)
	if !ok {
		m.b.Logf("no device counters: %s cannot be read any more", m.stat)
		return
	}
	m.b.ReportMetric(float64(bytes-m.bytes)/float64(m.b.N), "dev-B/op")
	m.b.ReportMetric(float64(flush-m.flush)/float64(m.b.N), "flushes/op")
}

// deviceStat returns the counters of the device that holds a directory, or why
// there are none.
func deviceStat(dir string) (stat, why string) {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", err.Error()
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", "this system does not list its mounts"
	}
	device, at := "", ""
	for line := range strings.Lines(string(mounts)) {
		f := strings.Fields(line) // ID, parent, device, root, mount point, …
		if len(f) < 5 || len(f[4]) < len(at) {
			continue
		}
		if f[4] == "/" || dir == f[4] || strings.HasPrefix(dir, f[4]+"/") {
			device, at = f[2], f[4]
		}
	}
	stat = filepath.Join("/sys/dev/block", device, "stat")
	if _, _, ok := readDevice(stat); !ok {
		return "", "the file system at " + at + " (" + device + ") is on no block device with counters"
	}
	return stat, ""
}

// readDevice returns the bytes written to a device and the flushes it did.
func readDevice(stat string) (bytes, flushes uint64, ok bool) {
	text, err := os.ReadFile(stat)
	f := strings.Fields(string(text))
	const sectorsWritten, flushIOs = 6, 15
	if err != nil || len(f) <= flushIOs {
		return 0, 0, false
	}
	sectors, err := strconv.ParseUint(f[sectorsWritten], 10, 64)
	if err != nil {
		return 0, 0, false
	}
	flushes, err = strconv.ParseUint(f[flushIOs], 10, 64)
	return sectors * 512, flushes, err == nil
}

// TestMeter: where there are counters, a sync of new bytes moves them.
func TestMeter(t *testing.T) {
	dir := t.TempDir()
	stat, why := deviceStat(dir)
	if why != "" {
		t.Skip(why)
	}
	before, _, _ := readDevice(stat)
	f, err := os.Create(filepath.Join(dir, "a"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	const size = 1 << 20
	if _, err := f.Write(payload(1, size)); err != nil {
		t.Fatal(err)
	}
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	if after, _, ok := readDevice(stat); !ok || after-before < size {
		t.Errorf("%d bytes were synced, the device counted %d", size, after-before)
	}
	if _, why := deviceStat("/proc"); why == "" {
		t.Error("a file system without a device has counters")
	}
}
