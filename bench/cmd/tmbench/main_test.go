package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidemark-log/tidemark/bench/internal/report"
	"github.com/tidemark-log/tidemark/bench/internal/stat"
)

// A run writes results that the other commands can read, and removes its
// directory.
func TestRunPlotCheck(t *testing.T) {
	dir := t.TempDir()
	data, out := filepath.Join(dir, "data"), filepath.Join(dir, "results.json")
	args := []string{
		"-quick", "-rounds", "1", "-slice", "1ms", "-dir", data, "-out", out,
		"-fs", "native", "-w", "W1", "-peers", "raw prewritten,Tidemark", "-note", "a test",
	}
	if err := runCommand(context.Background(), args, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(data); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("directory left behind: %v", err)
	}
	if err := runCommand(context.Background(), append(args, "-merge"), nil); err != nil {
		t.Fatal(err)
	}
	doc, err := report.Read(out)
	if err != nil {
		t.Fatal(err)
	}
	if doc.Note != "a test" || !doc.Quick || len(doc.FileSystems) != 1 || len(doc.Ratios) == 0 {
		t.Errorf("results: %+v", doc)
	}
	var text bytes.Buffer
	plots := filepath.Join(dir, "plots")
	if err := plotCommand(context.Background(), []string{"-in", out, "-out", plots}, &text); err != nil {
		t.Fatal(err)
	}
	if err := checkCommand(context.Background(), []string{"-in", out}, &text); err == nil {
		t.Error("check: most bars were not measured, no error")
	}
	if err := tableCommand(context.Background(), []string{"-in", out}, &text); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text.String(), "### W1 on native") {
		t.Errorf("table does not show W1:\n%s", &text)
	}
	if !strings.Contains(text.String(), "first look") {
		t.Errorf("check does not say that this was a quick run:\n%s", &text)
	}
}

func TestRun_RefusesExistingDirectory(t *testing.T) {
	dir := t.TempDir()
	if err := runCommand(context.Background(), []string{"-dir", dir, "-w", "W1"}, nil); err == nil {
		t.Error("no error")
	}
	if _, err := os.Stat(dir); err != nil {
		t.Error(err)
	}
}

func TestRun_UnknownNames(t *testing.T) {
	for _, args := range [][]string{{"-w", "W99"}, {"-peers", "nobody"}} {
		args = append(args, "-dir", filepath.Join(t.TempDir(), "data"))
		if err := runCommand(context.Background(), args, nil); err == nil {
			t.Errorf("%v: no error", args)
		}
	}
}

func TestPrintJudgements(t *testing.T) {
	met := report.Judgement{Verdict: report.Met, Got: stat.Estimate{Median: 1}}
	missed := report.Judgement{Verdict: report.Missed}
	skipped := report.Judgement{Verdict: report.Unmeasured, Reason: "no xfs here"}
	unknown := report.Judgement{Verdict: report.Unmeasured, Reason: report.NotRun}
	for _, c := range []struct {
		name string
		all  []report.Judgement
		ok   bool
	}{
		{"met", []report.Judgement{met}, true},
		{"missed", []report.Judgement{met, missed}, false},
		{"skipped with a reason", []report.Judgement{met, skipped}, true},
		{"not run", []report.Judgement{met, unknown}, false},
	} {
		var out bytes.Buffer
		if err := printJudgements(&out, c.all); (err == nil) != c.ok {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestList(t *testing.T) {
	var out bytes.Buffer
	if err := listCommand(context.Background(), nil, &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Tidemark", "etcd wal", "raw leader", "W12"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
}
