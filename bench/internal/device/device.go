// Package device says what lies under a directory, and what was written to it:
// the file system, its block device and the counters the kernel keeps of it.
package device

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// ErrNoDevice means that no block device with counters lies under a directory.
var ErrNoDevice = errors.New("no block device under this directory")

// FileSystem is where stores were put.
type FileSystem struct {
	Name    string `json:"name"`    // "native", "ext4" or "xfs"
	Type    string `json:"type"`    // as mounted
	Options string `json:"options"` // as mounted
	Device  string `json:"device"`  // name of the block device; empty if none
	Journal string `json:"journal"` // "yes", "no" or "unknown"; ext4 only
}

// Counts are what a block device has done since it came up.
type Counts struct {
	WriteBytes    uint64
	WriteRequests uint64
	Flushes       uint64
}

// Sub returns the counts since earlier.
func (c Counts) Sub(earlier Counts) Counts {
	return Counts{
		WriteBytes:    c.WriteBytes - earlier.WriteBytes,
		WriteRequests: c.WriteRequests - earlier.WriteRequests,
		Flushes:       c.Flushes - earlier.Flushes,
	}
}

// Counter reads the counters of one block device. The zero value counts
// nothing, for directories without a device. What other programs do to the
// same device is counted too.
type Counter struct{ path string }

// Counts reads the counters. Requests that were merged count once; a file
// system that writes more than was handed to it shows here and nowhere else
// (the counters of a process count whole folios).
func (c Counter) Counts() (Counts, error) {
	if c.path == "" {
		return Counts{}, nil
	}
	text, err := os.ReadFile(c.path)
	if err != nil {
		return Counts{}, err
	}
	return parseCounts(string(text))
}

// Valid reports whether there is a device to count.
func (c Counter) Valid() bool { return c.path != "" }

// Positions in the stat file of a block device, and the unit of its sectors.
const (
	writeRequestsField = 4
	writeSectorsField  = 6
	flushesField       = 15
	sectorSize         = 512
)

func parseCounts(text string) (Counts, error) {
	fields := strings.Fields(text)
	if len(fields) <= flushesField {
		return Counts{}, fmt.Errorf("device counters: %d fields, no flushes among them", len(fields))
	}
	var c Counts
	for _, f := range []struct {
		at   int
		to   *uint64
		unit uint64
	}{
		{writeRequestsField, &c.WriteRequests, 1},
		{writeSectorsField, &c.WriteBytes, sectorSize},
		{flushesField, &c.Flushes, 1},
	} {
		n, err := strconv.ParseUint(fields[f.at], 10, 64)
		if err != nil {
			return Counts{}, fmt.Errorf("device counters: %w", err)
		}
		*f.to = n * f.unit
	}
	return c, nil
}

// Under describes the file system of dir and finds its device's counters.
// The counter is the zero one if there is no device.
func Under(dir string) (FileSystem, Counter, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return FileSystem{}, Counter{}, err
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return FileSystem{}, Counter{}, err
	}
	m, err := findMount(string(mounts), abs)
	if err != nil {
		return FileSystem{}, Counter{}, err
	}
	fsys := FileSystem{Name: "native", Type: m.fsType, Options: m.options, Journal: "unknown"}
	name, err := blockName(abs, m.source)
	if errors.Is(err, ErrNoDevice) {
		return fsys, Counter{}, nil
	}
	if err != nil {
		return FileSystem{}, Counter{}, err
	}
	fsys.Device = name
	if strings.HasPrefix(m.fsType, "ext") {
		fsys.Journal = journal(m.fsType, name)
	}
	return fsys, Counter{path: filepath.Join("/sys/block", name, "stat")}, nil
}

// mount is one line of mountinfo.
type mount struct {
	point, fsType, source, options string
}

// findMount returns the mount that path is in: the last one listed among those
// with the longest matching mount point.
func findMount(mountinfo, path string) (mount, error) {
	var best mount
	for line := range strings.Lines(mountinfo) {
		before, after, ok := strings.Cut(line, " - ")
		left, right := strings.Fields(before), strings.Fields(after)
		if !ok || len(left) < 6 || len(right) < 3 {
			continue
		}
		point := strings.ReplaceAll(left[4], `\040`, " ")
		inside := point == "/" || path == point || strings.HasPrefix(path, point+"/")
		if inside && len(point) >= len(best.point) {
			best = mount{point: point, fsType: right[0], source: right[1], options: joinOptions(left[5], right[2])}
		}
	}
	if best.point == "" {
		return mount{}, fmt.Errorf("no mount for %s", path)
	}
	return best, nil
}

// joinOptions lists the options of a mount and of its file system, once each.
func joinOptions(mount, super string) string {
	all := strings.Split(mount, ",")
	for option := range strings.SplitSeq(super, ",") {
		if !slices.Contains(all, option) {
			all = append(all, option)
		}
	}
	return strings.Join(all, ",")
}

// blockName returns the name in /sys/block of the device under path. A file
// system with device numbers of its own is asked for by its mount source.
func blockName(path, source string) (string, error) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return "", &os.PathError{Op: "stat", Path: path, Err: err}
	}
	dev := st.Dev
	if unix.Major(dev) == 0 {
		if err := unix.Stat(source, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFBLK {
			return "", ErrNoDevice
		}
		dev = st.Rdev
	}
	link := fmt.Sprintf("/sys/dev/block/%d:%d", unix.Major(dev), unix.Minor(dev))
	target, err := filepath.EvalSymlinks(link)
	if errors.Is(err, os.ErrNotExist) {
		return "", ErrNoDevice
	}
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(filepath.Join(target, "partition")); err == nil {
		target = filepath.Dir(target) // flushes are counted on the whole device
	}
	return filepath.Base(target), nil
}

// journal reports whether an ext file system on a device has a journal: the
// kernel runs a thread for each.
func journal(fsType, device string) string {
	if fsType == "ext2" {
		return "no"
	}
	names, err := filepath.Glob("/proc/fs/jbd2/" + device + "*")
	if err != nil {
		return "unknown"
	}
	if len(names) > 0 {
		return "yes"
	}
	if _, err := os.Stat("/proc/fs/jbd2"); err != nil {
		return "unknown"
	}
	return "no"
}
