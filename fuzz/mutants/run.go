package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// mutant is one wrong line. Its old text must be in the file exactly once.
type mutant struct {
	name     string
	file     string // from the module's root
	old, new string
	at       int     // offset of old, if it need not be the only one; else 0
	pkg      string  // whose tests must notice: "./pagelog"
	tests    string  // which of them, as go test -run has it
	then     string  // and if those do not notice: go test -run again; "" for none
	beyond   *mutant // and if those do not: tests of another package; nil for none
}

// patience is after how long a test that a mutant made hang is taken for one
// that failed.
const patience = 90 * time.Second

// outcome is what became of a mutant.
type outcome struct {
	mutant
	killer string // test that failed, or how it ended
	broken string // what the compiler says, if the mutant is no program
	took   time.Duration
}

type checker struct {
	root     string // of the copy
	out      io.Writer
	mu       sync.Mutex
	done     int
	outcomes []outcome
}

// moduleRoot returns the directory of this module's go.mod.
func moduleRoot() (string, error) {
	out, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return "", err
	}
	mod := strings.TrimSpace(string(out))
	if mod == "" || mod == os.DevNull {
		return "", errors.New("run it within the module")
	}
	return filepath.Dir(mod), nil
}

// copyModule copies what tests of the main module need.
func copyModule(from, to string) error {
	return filepath.WalkDir(from, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, name)
		if err != nil {
			return err
		}
		if d.IsDir() {
			if slices.Contains([]string{".git", "bin", "bench", "faults"}, rel) {
				return filepath.SkipDir
			}
			return os.MkdirAll(filepath.Join(to, rel), 0o700)
		}
		if !d.Type().IsRegular() {
			return nil
		}
		b, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, rel), b, 0o600)
	})
}

// apply returns the mutated text of the file.
func (c *checker) apply(m mutant) ([]byte, error) {
	src, err := os.ReadFile(filepath.Join(c.root, m.file))
	if err != nil {
		return nil, err
	}
	at := m.at
	if at == 0 {
		if n := bytes.Count(src, []byte(m.old)); n != 1 {
			return nil, fmt.Errorf("mutant %q: its text is in %s %d times, not once: the code moved on, and the mutant must follow:\n%s", m.name, m.file, n, m.old)
		}
		at = bytes.Index(src, []byte(m.old))
	}
	return slices.Concat(src[:at], []byte(m.new), src[at+len(m.old):]), nil
}

// baseline runs every test that is asked for once, without a mutant.
func (c *checker) baseline(list []mutant) error {
	patterns := map[string][]string{}
	for i := range list {
		for m := &list[i]; m != nil; m = m.beyond {
			for _, p := range []string{m.tests, m.then} {
				if p != "" && !slices.Contains(patterns[m.pkg], p) {
					patterns[m.pkg] = append(patterns[m.pkg], p)
				}
			}
		}
	}
	for _, pkg := range slices.Sorted(maps.Keys(patterns)) {
		// go test splits a pattern at its slashes, so only those without any can
		// be joined.
		joined, parts := []string{}, []string{}
		for _, p := range patterns[pkg] {
			if strings.Contains(p, "/") {
				parts = append(parts, p)
			} else {
				joined = append(joined, p)
			}
		}
		if len(joined) > 0 {
			parts = append(parts, strings.Join(joined, "|"))
		}
		for _, p := range parts {
			if killer, broken := c.test("", pkg, p, 20*patience); killer != "" || broken != "" {
				return fmt.Errorf("%s -run %s fails without any mutant: %s%s", pkg, p, killer, broken)
			}
		}
	}
	return nil
}

// all tries the mutants, several at a time.
func (c *checker) all(list []mutant, parallel int) {
	next := make(chan mutant)
	var wg sync.WaitGroup
	for range max(1, parallel) {
		wg.Go(func() {
			for m := range next {
				c.try(m, len(list))
			}
		})
	}
	for _, m := range list {
		next <- m
	}
	close(next)
	wg.Wait()
}

// try finds out which test notices a mutant.
func (c *checker) try(m mutant, of int) {
	began := time.Now()
	o := outcome{mutant: m}
	overlay, err := c.overlay(m)
	if err != nil {
		o.broken = err.Error()
	} else {
		o.killer, o.broken = c.kill(overlay, &m)
		_ = os.RemoveAll(filepath.Dir(overlay))
	}
	o.took = time.Since(began)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.done++
	c.outcomes = append(c.outcomes, o)
	verdict := o.killer
	switch {
	case o.broken != "":
		verdict = "DOES NOT COMPILE: " + o.broken
	case verdict == "":
		verdict = "SURVIVES"
	}
	fmt.Fprintf(c.out, "%3d/%d  %-55s %5.1fs  %s\n", c.done, of, m.name, o.took.Seconds(), verdict)
}

// kill runs tests until one notices.
func (c *checker) kill(overlay string, m *mutant) (killer, broken string) {
	for ; m != nil; m = m.beyond {
		for i, pattern := range []string{m.tests, m.then} {
			if pattern == "" {
				continue
			}
			killer, broken = c.test(overlay, m.pkg, pattern, time.Duration(1+3*i)*patience)
			if killer != "" || broken != "" {
				return killer, broken
			}
		}
	}
	return "", ""
}

// overlay writes the mutated file and the list that gives it to the compiler.
func (c *checker) overlay(m mutant) (string, error) {
	src, err := c.apply(m)
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp(c.root, ".mutant-")
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, "mutant.go")
	list, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(c.root, m.file): file}})
	if err != nil {
		return "", err
	}
	name := filepath.Join(dir, "overlay.json")
	return name, errors.Join(os.WriteFile(file, src, 0o600), os.WriteFile(name, list, 0o600))
}

var (
	failed   = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)
	hung     = regexp.MustCompile(`(?m)^\s*running tests:\n\s+(\S+)`)
	panicked = regexp.MustCompile(`(?m)^(panic: .*|fatal error: .*)$`)
	compiler = regexp.MustCompile(`(?m)^\S+\.go:\d+:\d+: .*$`)
)

// test runs tests and returns the one that failed, or what the compiler says.
func (c *checker) test(overlay, pkg, pattern string, limit time.Duration) (killer, broken string) {
	args := []string{"test", "-trimpath", "-vet=off", "-ldflags=-w", "-count=1", "-short", "-failfast", "-timeout=" + limit.String(), "-run=" + pattern}
	if overlay != "" {
		args = append(args, "-overlay="+overlay)
	}
	cmd := exec.Command("go", append(args, pkg)...)
	cmd.Dir = c.root
	out, err := cmd.CombinedOutput()
	if err == nil {
		if bytes.Contains(out, []byte("no tests to run")) {
			return "", "no test matches " + pattern
		}
		return "", ""
	}
	if bytes.Contains(out, []byte("[build failed]")) || bytes.Contains(out, []byte("[setup failed]")) {
		return "", firstOf(compiler.FindString(string(out)), string(out))
	}
	names := failed.FindAllStringSubmatch(string(out), -1)
	switch {
	case len(names) > 0:
		killer = names[len(names)-1][1] // the innermost of a test and its parts
	case hung.Match(out):
		killer = hung.FindStringSubmatch(string(out))[1] + " (hangs)"
	default:
		killer = firstOf(panicked.FindString(string(out)), strings.TrimSpace(string(out)))
	}
	return killer, ""
}

func firstOf(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// report sums up and says whether that is good enough.
func (c *checker) report(f flags, took time.Duration) error {
	killed, broken := 0, 0
	var alive []string
	killers := map[string]int{}
	for _, o := range c.outcomes {
		switch {
		case o.broken != "":
			broken++
		case o.killer == "":
			alive = append(alive, fmt.Sprintf("%s: %s: %q -> %q", o.name, o.file, o.old, o.new))
		default:
			killed++
			top, _, _ := strings.Cut(o.killer, "/")
			killers[top]++
		}
	}
	fmt.Fprintf(c.out, "\n%d of %d mutants killed in %d s, by %d tests\n", killed, len(c.outcomes)-broken, int(took.Seconds()), len(killers))
	slices.Sort(alive)
	for _, a := range alive {
		fmt.Fprintf(c.out, "survives: %s\n", a)
	}
	switch {
	case f.general == 0 && killed < len(c.outcomes):
		return errSurvived
	case f.general > 0 && float64(killed) < f.least*float64(len(c.outcomes)-broken):
		return errSurvived
	}
	return nil
}
