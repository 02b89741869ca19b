package faults_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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

// purePackages hold bytes and no files: what they write must be the same bytes
// everywhere, which their golden files say.
var purePackages = []string{"./frame", "./cursor", "./checkpoint", "./snapshot"}

// filePackages reach the operating system.
var filePackages = []string{"./internal/disk", "./pagelog", "./cmd/tidemark"}

// TestMachines runs the short suites, with the golden files of the format, on
// other architectures: big-endian and 32 bits wide.
func TestMachines(t *testing.T) {
	machines := []machine{s390x, arm, mips}
	packages, only := append(append([]string{}, purePackages...), filePackages...), "."
	if !lab.Gate() {
		machines, packages, only = machines[:1], purePackages[:2], "Golden"
	}
	if os.Getenv("FAULTS_TORTURE") == "1" {
		machines = append(machines, arm64, riscv64)
	}
	for _, m := range machines {
		t.Run(m.arch, func(t *testing.T) {
			interpreter := lab.Program(t, "qemu-"+m.qemu+"-static")
			args := append([]string{"test", "-short", "-count=1", "-run", only}, packages...)
			out, err := m.command(t, interpreter, "go", args...).CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			lab.Count("packages tested on other architectures", len(packages))
			t.Logf("%s", out)
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
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH="+m.arch, "CGO_ENABLED=0", "GOFLAGS=-buildvcs=false")
	if m.arch == "mips" {
		cmd.Env = append(cmd.Env, "GOMIPS=softfloat")
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
		Pdeathsig:   syscall.SIGKILL,
	}
	return cmd
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

// notUnderWine names what Wine 8 does not do as Windows does, and so what is
// not tested here.
var notUnderWine = map[string]string{}

// TestWindows runs what it can under Wine.
func TestWindows(t *testing.T) {
	lab.Larger(t)
	w := newWine(t)
	for _, pkg := range append(append([]string{}, purePackages...), filePackages[:2]...) {
		t.Run(strings.TrimPrefix(pkg, "./"), func(t *testing.T) { w.test(t, pkg) })
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
	base, err := os.MkdirTemp("", "faults-wine-")
	if err != nil {
		t.Fatal(err)
	}
	prefix := filepath.Join(base, "prefix")
	w.env = append(os.Environ(), "WINEPREFIX="+prefix, "WINEDEBUG=-all", "DISPLAY=")
	t.Cleanup(func() {
		server := exec.Command(filepath.Join(filepath.Dir(w.program), "wineserver64"), "-k")
		server.Env = w.env
		_ = server.Run() // it may have gone by itself
		if err := os.RemoveAll(base); err != nil {
			t.Error(err)
		}
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

// test runs the tests of a package and fails for each that fails and is not
// known to.
func (w *wineBox) test(t *testing.T, pkg string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "test", "-short", "-count=1", "-v", "-exec", w.program, pkg)
	cmd.Dir = lab.Source()
	cmd.Env = append(w.env, "GOOS=windows", "GOARCH=amd64", "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	passed, failed := 0, 0
	for line := range strings.Lines(string(out)) {
		name, bad := strings.CutPrefix(line, "--- FAIL: ")
		if _, good := strings.CutPrefix(line, "--- PASS: "); good {
			passed++
		}
		if !bad {
			continue
		}
		name, _, _ = strings.Cut(name, " ")
		if why, known := notUnderWine[name]; known {
			t.Logf("%s: %s", name, why)
			lab.Count("tests that Wine cannot run", 1)
			continue
		}
		failed++
	}
	lab.Count("tests passed under Wine", passed)
	if failed > 0 || err != nil && passed == 0 {
		t.Errorf("%v\n%s", err, out)
	}
}
