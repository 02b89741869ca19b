package device

import (
	"os"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// Machine is what the figures were taken on.
type Machine struct {
	CPU         string `json:"cpu"`
	Cores       int    `json:"cores"`
	MemoryBytes uint64 `json:"memory_bytes"`
	Kernel      string `json:"kernel"`
	Arch        string `json:"arch"`
	Go          string `json:"go"`
	LoadAverage string `json:"load_average"` // at the start; a busy machine spoils figures
}

// ThisMachine describes the machine it runs on. What it cannot find out stays
// empty.
func ThisMachine() Machine {
	m := Machine{Cores: runtime.NumCPU(), Arch: runtime.GOARCH, Go: runtime.Version()}
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		m.CPU = field(string(text), "model name")
	}
	if text, err := os.ReadFile("/proc/loadavg"); err == nil {
		m.LoadAverage = strings.TrimSpace(string(text))
	}
	var name unix.Utsname
	if unix.Uname(&name) == nil {
		m.Kernel = unix.ByteSliceToString(name.Release[:])
	}
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) == nil {
		m.MemoryBytes = uint64(info.Totalram) * uint64(info.Unit)
	}
	return m
}

// field returns the value of the first "name : value" line.
func field(text, name string) string {
	for line := range strings.Lines(text) {
		key, value, ok := strings.Cut(line, ":")
		if ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
