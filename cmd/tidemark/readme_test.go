package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
)

// TestReadme_Blocks runs every block of the README in one directory, from the
// top, and compares what it prints with the block behind it. Lines of make are
// left out: this is one of the tests that they run.
func TestReadme_Blocks(t *testing.T) {
	t.Parallel()
	sh := shell(t)
	dir := t.TempDir()
	blocks := regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?").FindAllStringSubmatch(string(read(t, "../../README.md")), -1)
	ran := 0
	for _, b := range blocks {
		kind, text, want := b[1], b[2], b[3]
		var out string
		switch {
		case kind == "sh" && !strings.Contains(text, "make "):
			out = script(t, sh, dir, text)
		case kind == "go":
			out = goProgram(t, dir, text)
		default:
			continue
		}
		ran++
		if want != "" && out != want {
			t.Errorf("%sprints\n%swant\n%s", text, out, want)
		}
	}
	if ran < 4 {
		t.Errorf("%d blocks of %d were run", ran, len(blocks))
	}
}

// TestExamples_Run runs the examples of all verbs, each in a directory of its
// own that holds what they take for granted.
func TestExamples_Run(t *testing.T) {
	t.Parallel()
	sh := shell(t)
	for _, c := range append(newRoot().Commands(), newRoot()) {
		t.Run(c.Name(), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			switch c.Name() {
			case "create":
			case "authority":
				dir = authorityFixture(t)
			case "get":
				dir = filepath.Dir(keyedFile(t, 20))
			default:
				tidemark(t, joined(numbered(60)), "append", filepath.Join(dir, "run.log")).want(t, 0)
			}
			if err := os.WriteFile(filepath.Join(dir, "input.txt"), []byte("a\nb\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(c.Example) {
				if strings.Contains(line, "--follow") || strings.Contains(line, "tidemark demo") || strings.Contains(line, "tidemark torture") || strings.Contains(line, "tidemark bench") {
					continue // they go on for long; other tests run them
				}
				script(t, sh, dir, line)
			}
		})
	}
}

func shell(t *testing.T) string {
	t.Helper()
	sh, err := exec.LookPath("sh")
	if err != nil {
		skip(t, "no shell here")
	}
	return sh
}

// script runs commands that find the program by its name.
func script(t *testing.T, sh, dir, text string) string {
	t.Helper()
	cmd := exec.Command(sh, "-e", "-c", text)
	cmd.Dir = dir
	// Verbs that look after the user's own authority get one within dir.
	cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+dir, "PATH="+filepath.Dir(binary)+string(os.PathListSeparator)+os.Getenv("PATH"))
	out, err := cmd.Output()
	if err != nil {
		t.Errorf("%s: %v\n%s", text, err, out)
	}
	return string(out)
}

// goProgram runs a program as a part of this module.
func goProgram(t *testing.T, dir, text string) string {
	t.Helper()
	source, built := filepath.Join(dir, "main.go"), filepath.Join(dir, "program")
	if runtime.GOOS == "windows" {
		built += ".exe"
	}
	if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("go", "build", "-o", built, source).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cmd := exec.Command(built)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	return string(out)
}
