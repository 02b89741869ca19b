// Package lab is the workshop of the fault tests: how large a run is, which
// means this machine has, the programs under test, file systems to break, and
// the count of everything that was done or skipped.
package lab

import (
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Environment of a run.
const (
	envSize    = "FAULTS"         // short or gate
	envRequire = "REQUIRE_FAULTS" // 1: what cannot run is a failure
	envSummary = "FAULTS_SUMMARY" // a file that gets the summary, too
	envSource  = "FAULTS_SOURCE"  // where the product's sources are
)

// Gate reports whether the full size was asked for.
func Gate() bool { return os.Getenv(envSize) == "gate" }

// Pick returns the size that was asked for.
func Pick(short, gate int) int {
	if Gate() {
		return gate
	}
	return short
}

// tally is what the summary prints.
var tally struct {
	sync.Mutex
	counts map[string]int
	skips  []string
}

// Count adds to what the summary prints of a layer, such as "kills".
func Count(what string, n int) {
	tally.Lock()
	defer tally.Unlock()
	if tally.counts == nil {
		tally.counts = map[string]int{}
	}
	tally.counts[what] += n
}

// Skip skips a test for want of means, says so and counts it; where everything
// must run, it fails it.
func Skip(t testing.TB, format string, args ...any) {
	t.Helper()
	reason := fmt.Sprintf(format, args...)
	if os.Getenv(envRequire) == "1" {
		t.Fatalf("%s=1, and %s", envRequire, reason)
	}
	tally.Lock()
	tally.skips = append(tally.skips, t.Name()+": "+reason)
	tally.Unlock()
	t.Skip(reason)
}

// Larger skips a test that is only for the full size. It is no want of means.
func Larger(t testing.TB) {
	t.Helper()
	if !Gate() {
		Count("tests left to the gate", 1)
		t.Skipf("runs with %s=gate", envSize)
	}
}

// Root skips a test unless it runs as root.
func Root(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		Skip(t, "only root may mount")
	}
}

// Program returns the path of an installed program, and skips without it.
func Program(t testing.TB, name string) string {
	t.Helper()
	for _, dir := range []string{"", "/usr/sbin", "/sbin", "/usr/lib/wine"} {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path
		}
	}
	Skip(t, "%s is not installed (install.sh does)", name)
	return ""
}

// Device skips a test without a device.
func Device(t testing.TB, path string) {
	t.Helper()
	if f, err := os.OpenFile(path, os.O_RDWR, 0); err != nil {
		Skip(t, "%v", err)
	} else if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// summarize prints what was done.
func summarize(w io.Writer) {
	tally.Lock()
	defer tally.Unlock()
	size := "short"
	if Gate() {
		size = "gate"
	}
	var parts []string
	for _, what := range slices.Sorted(maps.Keys(tally.counts)) {
		parts = append(parts, fmt.Sprintf("%d %s", tally.counts[what], what))
	}
	fmt.Fprintf(w, "faults: size %s: %s; %d tests skipped\n", size, strings.Join(parts, ", "), len(tally.skips))
	for _, s := range tally.skips {
		fmt.Fprintf(w, "faults: skipped %s\n", s)
	}
}

// Programs under test and the tools that test them, built once.
var programs struct{ tidemark, victim, faultd string }

// Tidemark is the path of the unmodified command line program.
func Tidemark() string { return programs.tidemark }

// Victim is the path of the program that uses the package directly.
func Victim() string { return programs.victim }

// Faultd is the path of the program that serves broken disks and puts filters
// on.
func Faultd() string { return programs.faultd }

// Source is the folder of the product's sources.
func Source() string {
	if dir := os.Getenv(envSource); dir != "" {
		return dir
	}
	return ".."
}

// build builds the programs into dir.
func build(dir string) error {
	programs.tidemark = filepath.Join(dir, "tidemark")
	programs.victim = filepath.Join(dir, "victim")
	programs.faultd = filepath.Join(dir, "faultd")
	for _, b := range []struct{ in, out, pkg string }{
		{Source(), programs.tidemark, "./cmd/tidemark"},
		{".", programs.victim, "./cmd/victim"},
		{".", programs.faultd, "./cmd/faultd"},
	} {
		cmd := exec.Command("go", "build", "-o", b.out, b.pkg)
		cmd.Dir = b.in
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("build %s: %w\n%s", b.pkg, err, out)
		}
	}
	return nil
}
