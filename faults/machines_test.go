package faults_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/tidemark-log/tidemark/faults/internal/lab"
)

// machine is an architecture that this one can pretend to be.
type machine struct {
	arch   string // Go's name
	qemu   string // qemu's
	class  byte   // of the ELF header: 1 for 32 bits, 2 for 64
	data   byte   // 1 for little-endian, 2 for big-endian
	number byte   // of the machine
}

var (
	s390x   = machine{"s390x", "s390x", 2, 2, 0x16}
	arm     = machine{"arm", "arm", 1, 1, 0x28}
	mips    = machine{"mips", "mips", 1, 2, 0x08}
	arm64   = machine{"arm64", "aarch64", 2, 1, 0xb7}
	riscv64 = machine{"riscv64", "riscv64", 2, 1, 0xf3}
)

// suite is the tests of a package that another machine can say something about:
// the bytes of the format, which their golden files fix, and everything that
// reaches the system. What is left out says nothing there that it does not say
// here, and takes ten times as long.
type suite struct{ pkg, run string }

var suites = []suite{
	{"./frame", "Golden"},
	{"./cursor", "Golden"},
	{"./checkpoint", "Golden"},
	{"./internal/disk", "."},
	{"./pagelog", "RoundTrip|Lock|Open|Create|Close|Recover|Follow|Torn"},
	{"./snapshot", "."},
	{"./authority", "Golden"},
}

// windowsSuites are what Windows does in a way of its own beside them.
var windowsSuites = []suite{
	{"./internal/securedir", "."},
	{"./authority", "R[0-9]|Model_EveryState|CrashMatrix"},
}

// TestMachines runs the short suites, with the golden files of the format, on
// other architectures: big-endian and 32 bits wide.
func TestMachines(t *testing.T) {
	t.Parallel()
	machines, suites := []machine{s390x, arm, mips}, append([]suite{{"./cmd/tidemark", "Append|Cat|Usage"}}, suites...)
	if !lab.Gate() {
		suites = suites[1:4] // golden files
	}
	if os.Getenv("FAULTS_TORTURE") == "1" {
		machines = append(machines, arm64, riscv64)
	}
	for _, m := range machines {
		t.Run(m.arch, func(t *testing.T) {
			t.Parallel()
			interpreter := lab.Program(t, "qemu-"+m.qemu+"-static")
			for _, s := range suites {
				out, err := m.command(t, interpreter, "go", "test", "-short", "-count=1", "-run", s.run, s.pkg).CombinedOutput()
				if err != nil {
					t.Errorf("%v\n%s", err, out)
				} else {
					t.Logf("%s", out)
				}
				lab.Count("packages tested on other architectures", 1)
			}
		})
	}
}

// registration is what the kernel is told, so that programs of the machine run:
// also those that a test starts itself.
func (m machine) registration(interpreter string) string {
	magic := append([]byte("\x7fELF"), m.class, m.data, 1)
	magic = append(magic, make([]byte, 9)...)
	mask := []byte(strings.Repeat("\xff", 20))
	mask[7] = 0 // the system's convention does not matter
	if m.data == 2 {
		magic = append(magic, 0, 2, 0, m.number)
		mask[17] = 0xfe // programs and shared objects
	} else {
		magic = append(magic, 2, 0, m.number, 0)
		mask[16] = 0xfe
	}
	return fmt.Sprintf(":faults-%s:M::%s:%s:%s:F", m.arch, escaped(magic), escaped(mask), interpreter)
}

func escaped(b []byte) string {
	var s strings.Builder
	for _, c := range b {
		fmt.Fprintf(&s, `\x%02x`, c)
	}
	return s.String()
}

// command is a command that finds itself on a machine of the other kind. The
// registration is made in a user namespace of its own, which the rest of the
// machine never sees.
func (m machine) command(t *testing.T, interpreter, name string, args ...string) *exec.Cmd {
	t.Helper()
	dir := lab.Scratch(t)
	script := `mount -t binfmt_misc none "$1" && printf '%s' "$2" > "$1/register" && shift 2 && exec "$@"`
	shell := append([]string{"-c", script, "sh", dir, m.registration(interpreter), name}, args...)
	cmd := exec.CommandContext(t.Context(), "sh", shell...)
	cmd.Dir = lab.Source()
	// Root of a namespace may not do all that root may: skips are allowed there.
	cmd.Env = append(os.Environ(), "REQUIRE_FAULTS=", "GOOS=linux", "GOARCH="+m.arch, "CGO_ENABLED=0")
	if m.arch == "mips" {
		cmd.Env = append(cmd.Env, "GOMIPS=softfloat")
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: users()}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: users()}},
		Pdeathsig:   syscall.SIGKILL,

		GidMappingsEnableSetgroups: os.Getuid() == 0,
	}
	return cmd
}

// users is how many users there are on the other machine. Tests that become
// another user need more than one, which only root can give them.
func users() int {
	if os.Getuid() == 0 {
		return 1 << 16
	}
	return 1
}

// TestRegistration holds the line for one machine against the one that is known
// to work.
func TestRegistration(t *testing.T) {
	const want = `:faults-s390x:M::\x7f\x45\x4c\x46\x02\x02\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\x16` +
		`:\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff:/qemu:F`
	if got := s390x.registration("/qemu"); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestCompiles vets the product, tests too, for systems that nothing here can
// run.
func TestCompiles(t *testing.T) {
	targets := []string{"linux/386", "darwin/arm64", "freebsd/amd64", "windows/amd64"}
	if !lab.Gate() {
		targets = targets[:1]
	}
	for _, target := range targets {
		t.Run(target, func(t *testing.T) {
			t.Parallel()
			system, arch, _ := strings.Cut(target, "/")
			cmd := exec.CommandContext(t.Context(), "go", "vet", "./...")
			cmd.Dir = lab.Source()
			cmd.Env = append(os.Environ(), "GOOS="+system, "GOARCH="+arch, "CGO_ENABLED=0")
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			lab.Count("systems vetted", 1)
		})
	}
}

// notUnderWine names tests that need what Wine 8 does not have.
var notUnderWine = map[string]string{
	"TestR95_R96_RealLog":              "Wine keeps no access control lists, so its directories are not private",
	"TestL29_NoRegularFile":            "Wine says that it made a symbolic link, and made none",
	"TestCompact_FollowersOfARealFile": "Wine 8 does not let a file be replaced while somebody has it open, as Windows 10 does",
}

// TestWindows runs what it can under Wine.
func TestWindows(t *testing.T) {
	lab.Larger(t)
	t.Parallel()
	w := newWine(t)
	for _, s := range append(windowsSuites, suites...) {
		t.Run(strings.TrimPrefix(s.pkg, "./"), func(t *testing.T) { w.test(t, s) })
	}
}

// wineBox is a folder in which Wine pretends to be Windows.
type wineBox struct {
	program string
	env     []string
}

func newWine(t *testing.T) *wineBox {
	t.Helper()
	w := &wineBox{program: lab.Program(t, "wine64")}
	prefix := filepath.Join(lab.OnDisk(t), "prefix")
	w.env = append(os.Environ(), "WINEPREFIX="+prefix, "WINEDEBUG=-all", "DISPLAY=")
	t.Cleanup(func() {
		server := exec.Command(filepath.Join(filepath.Dir(w.program), "wineserver64"), "-k")
		server.Env = w.env
		_ = server.Run() // it may have gone by itself
	})
	w.run(t, "wineboot", "-i")
	if err := writeRandomDLL(filepath.Join(prefix, "drive_c", "windows", "system32", "bcryptprimitives.dll")); err != nil {
		t.Fatal(err)
	}
	w.run(t, "winecfg", "-v", "win10")
	return w
}

func (w *wineBox) run(t *testing.T, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), w.program, args...)
	cmd.Env = w.env
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%q: %v\n%s", args, err, out)
	}
}

// wineCannotClean is what the testing package says where a test did all it had
// to and Wine 8 then does not delete as Windows does (FileDispositionInfoEx).
const wineCannotClean = "TempDir RemoveAll cleanup"

// test runs the tests of a package and fails for each that fails for another
// reason than Wine's.
func (w *wineBox) test(t *testing.T, s suite) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "test", "-short", "-count=1", "-json", "-run", s.run, "-exec", w.program, s.pkg)
	cmd.Dir = lab.Source()
	cmd.Env = append(w.env, "GOOS=windows", "GOARCH=amd64", "CGO_ENABLED=0")
	out, err := cmd.Output()
	results := readResults(out)
	harmless := map[string]bool{}
	if len(results.failed) > 0 {
		harmless = logLines(t, s)
	}
	for name, r := range results.failed {
		if why, known := notUnderWine[name]; known {
			t.Logf("%s cannot run: %s", name, why)
			lab.Count("tests that Wine cannot run", 1)
			continue
		}
		if r.onlyCleaning(harmless) {
			lab.Count("tests passed under Wine but for deleting", 1)
			continue
		}
		t.Errorf("%s:\n%s", name, strings.Join(r.said, ""))
	}
	lab.Count("tests passed under Wine", results.passed)
	if results.passed == 0 {
		t.Errorf("nothing ran: %v\n%s", err, out)
	}
}

// results is what a run of 'go test -json' came to.
type results struct {
	passed int
	failed map[string]*result
}

// result is what one test that failed said.
type result struct {
	said  []string
	below bool // a test within it failed, and says why
}

func readResults(out []byte) results {
	all := map[string]*result{}
	r := results{failed: map[string]*result{}}
	for in := json.NewDecoder(bytes.NewReader(out)); ; {
		var event struct{ Action, Test, Output string }
		if in.Decode(&event) != nil {
			return r
		}
		if event.Test == "" {
			continue
		}
		one := all[event.Test]
		if one == nil {
			one = &result{}
			all[event.Test] = one
		}
		switch event.Action {
		case "output":
			one.said = append(one.said, event.Output)
		case "pass":
			r.passed++
		case "fail":
			r.failed[event.Test] = one
			if parent := path.Dir(event.Test); all[parent] != nil {
				all[parent].below = true
			}
		}
	}
}

// saidAt is where in the sources a test said something.
var saidAt = regexp.MustCompile(`^\s*(\w+_test\.go:\d+): `)

// logLines returns the places where tests of a package say something here,
// where they pass: it is no complaint.
func logLines(t *testing.T, s suite) map[string]bool {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "test", "-short", "-count=1", "-v", "-run", s.run, s.pkg)
	cmd.Dir = lab.Source()
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("on this system: %v\n%s", err, out)
	}
	harmless := map[string]bool{}
	for line := range strings.Lines(string(out)) {
		if m := saidAt.FindStringSubmatch(line); m != nil {
			harmless[m[1]] = true
		}
	}
	return harmless
}

// onlyCleaning reports whether nothing went wrong but deleting what was left.
func (r *result) onlyCleaning(harmless map[string]bool) bool {
	cleaning := r.below
	for _, line := range r.said {
		if strings.Contains(line, wineCannotClean) {
			cleaning = true
		} else if m := saidAt.FindStringSubmatch(line); m != nil && !harmless[m[1]] {
			return false
		}
	}
	return cleaning
}
