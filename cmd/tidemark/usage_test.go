package main

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/tidemark-log/tidemark/cursor"
)

// TestUsage_Errors: what is wrong with a command line is named, with what was
// probably meant.
func TestUsage_Errors(t *testing.T) {
	t.Parallel()
	path := newLog(t, "a")
	for _, tc := range []struct {
		args string
		says string
	}{
		{"apend LOG", `no verb "apend"; did you mean append?`},
		{"ca LOG", "did you mean cat?"},
		{"state LOG", "did you mean stat?"},
		{"frobnicate LOG", `no verb "frobnicate"`},
		{"cat", "LOG is missing"},
		{"cat LOG LOG", "one LOG at a time"},
		{"append LOG --grup 5", "no flag --grup; did you mean --group?"},
		{"--grup 5 append LOG", "no flag --grup"},
		{"append LOG --acks", "did you mean --ack?"},
		{"append LOG -x", "no flag -x"},
		{"append LOG --zzzzzzzz", "no flag --zzzzzzzz"},
		{"append LOG --group", "--group"},
		{"append LOG --group 0", "--group: 0 is too small"},
		{"append LOG --group -1", "--group: -1 is too small"},
		{"append LOG --group 1048577", "--group: 1048577 is too large"},
		{"append LOG --group many", `--group: "many" is not a number`},
		{"append LOG --sync later", `--sync: "later" is none of durable, complete`},
		{"append LOG --sync durabel", "did you mean durable?"},
		{"append LOG --ack=perhaps", `--ack: "perhaps" is neither true nor false`},
		{"torture . --time soon", `--time: "soon" is not a duration such as 90s or 2h`},
		{"bench . --time -1s", "--time: -1s is negative"},
		{"--version", "no flag --version; did you mean the verb version?"},
		{"cat LOG --limit -1", "--limit: -1 is too small"},
		{"cat LOG --limit 1e3", `--limit: "1e3" is not a number`},
		{"cat LOG --limit 9999999999999999999999", "--limit"},
		{"create NEW --page-size 5000", "--page-size: it is 5000, it must be a power of two"},
		{"create NEW --page-size 1T", "--page-size: it is"},
		{"create NEW --page-size big", `"big" is not a size`},
		{"create NEW --align 9", "--align: it is 9, it must be"},
		{"create NEW --max-record 2G", "--max-record: it is 2147483648, it must be"},
		{"create NEW --max-group 1", "--max-group: it is 1, it must be"},
		{"version 1", "takes no operand"},
		{"stat LOG --jsn", "did you mean --json?"},
		{"verify LOG --workers -1", "--workers: -1 is too small"},
		{"help apend", "did you mean append?"},
		{"help append cat", "one verb at a time"},
		{"manual stats", "did you mean stat?"},
		{"manual --format html", "none of markdown, man"},
		{"completion", "name one shell"},
		{"completion bahs", "did you mean bash?"},
		{"demo LOG", "takes no operand"},
	} {
		t.Run(tc.args, func(t *testing.T) {
			t.Parallel()
			args := strings.Fields(strings.NewReplacer("LOG", path, "NEW", newPath(t)).Replace(tc.args))
			tidemark(t, "", args...).want(t, 2, tc.says).prints(t, "")
		})
	}
	tidemark(t, "", "cat", path).want(t, 0).prints(t, "a\n")
}

// TestUsage_Placement: flags may stand before or behind the operand, and --
// ends them.
func TestUsage_Placement(t *testing.T) {
	t.Parallel()
	path := newLog(t, "a", "b")
	for _, args := range [][]string{
		{"cat", "--limit", "1", path},
		{"cat", path, "--limit", "1"},
		{"cat", "--limit=1", "--", path},
		{"--any-file-system", "cat", path, "--limit=1"},
		{"cat", "--any-file-system", "--limit=1", path},
	} {
		tidemark(t, "", args...).want(t, 0).prints(t, "a\n")
	}
}

// TestHelp: every verb has help with an example, on standard output.
func TestHelp(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{nil, {"--help"}, {"help"}} {
		out := tidemark(t, "", args...).want(t, 0).out
		for _, c := range newRoot().Commands() {
			if !strings.Contains(out, "\n  "+c.Name()+" ") {
				t.Errorf("%v does not list %s", args, c.Name())
			}
		}
	}
	for _, c := range newRoot().Commands() {
		t.Run(c.Name(), func(t *testing.T) {
			t.Parallel()
			for _, args := range [][]string{{c.Name(), "--help"}, {"help", c.Name()}, {c.Name(), "-h"}} {
				out := tidemark(t, "", args...).want(t, 0).out
				for _, part := range []string{"Usage:\n  tidemark " + c.Name(), "Example:\n  ", "Exit codes: 0 good"} {
					if !strings.Contains(out, part) {
						t.Errorf("%v does not have %q:\n%s", args, part, out)
					}
				}
				for line := range strings.Lines(out) {
					if len(line) > 81 {
						t.Errorf("%v has a line longer than 80 characters: %s", args, line)
					}
				}
			}
			for i, line := range strings.Split(c.Long, "\n") {
				if len(line) > 80 {
					t.Errorf("line %d of the text is longer than 80 characters: %s", i+1, line)
				}
			}
		})
	}
}

// TestCompletion: every shell gets a script, and the words are the right ones.
func TestCompletion(t *testing.T) {
	t.Parallel()
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if out := tidemark(t, "", "completion", shell).want(t, 0).out; !strings.Contains(out, "tidemark") {
			t.Errorf("%s: %q", shell, out)
		}
	}
	for _, tc := range []struct {
		args []string
		want []string
	}{
		{[]string{""}, []string{"append", "cat", "create", "demo", "help", "stat", "tail", "torture", "verify", "version"}},
		{[]string{"append", "--sync", ""}, []string{"durable", "complete"}},
		{[]string{"help", ""}, []string{"append", "verify"}},
		{[]string{"completion", ""}, []string{"bash", "zsh", "fish", "powershell"}},
		{[]string{"append", "--"}, []string{"--ack", "--group", "--json", "--sync"}},
	} {
		out := execute(t, strings.NewReader(""), append([]string{binary, cobra.ShellCompNoDescRequestCmd}, tc.args...)...).out
		for _, w := range tc.want {
			if !strings.Contains(out, w+"\n") && !strings.Contains(out, w+"=\n") {
				t.Errorf("%v does not offer %s:\n%s", tc.args, w, out)
			}
		}
	}
}

// TestManual holds docs/CLI.md to the commands; -update writes it anew.
func TestManual(t *testing.T) {
	const file = "../../docs/CLI.md"
	want := tidemark(t, "", "manual").want(t, 0).out
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got := string(read(t, file)); got != want {
		t.Errorf("%s is not what the commands say; run go test ./cmd/tidemark -update", file)
	}
	for line := range strings.Lines(want) {
		if strings.HasPrefix(line, "|") && strings.Count(line, "|")-strings.Count(line, `\|`) != 3 {
			t.Errorf("a table of two columns has this line: %s", line)
		}
	}
	for _, c := range append(newRoot().Commands(), newRoot()) {
		args := []string{"manual", "--format", "man"}
		if c.HasParent() {
			args = append(args, c.Name())
		}
		page := tidemark(t, "", args...).want(t, 0).out
		for _, part := range []string{".TH TIDEMARK", ".SH NAME\ntidemark", ".SH SYNOPSIS\n", ".SH DESCRIPTION\n", ".SH EXIT STATUS\n", ".SH EXAMPLES\n"} {
			if !strings.Contains(page, part) {
				t.Errorf("%v has no %q:\n%s", args, part, page)
			}
		}
	}
}

func TestDistance(t *testing.T) {
	for _, tc := range []struct {
		a, b string
		want int
	}{
		{"", "", 0},
		{"", "abc", 3},
		{"abc", "", 3},
		{"abc", "abc", 0},
		{"abc", "acb", 1},
		{"apend", "append", 1},
		{"kitten", "sitting", 3},
		{"tsat", "stat", 1},
	} {
		if got := distance(tc.a, tc.b); got != tc.want {
			t.Errorf("distance(%q, %q) = %d, want %d", tc.a, tc.b, got, tc.want)
		}
	}
}

func TestSize(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "4096": 4096, "4K": 4096, "4k": 4096, "4KiB": 4096, "4KB": 4096, "1M": 1 << 20, "1g": 1 << 30, "2T": 2 << 40,
		"": -1, "K": -1, "-1": -1, "4X": -1, "4KK": -1, "1.5K": -1, "9999999T": -1, "0x10": -1,
	} {
		var z size
		if err := z.Set(text); (err != nil) != (want < 0) || err == nil && int64(z) != want {
			t.Errorf("%q: %d, %v; want %d", text, z, err, want)
		}
	}
}

func TestLoneSurrogate(t *testing.T) {
	for text, want := range map[string]int{
		`"plain"`: -1, `"\ud83d\ude00"`: -1, `"\ud83d"`: 1, `"\ude00"`: 1, `"\ud83d\ud83d"`: 1,
		`"\\ud83d"`: -1, `"\\\ud83d"`: 3, `"é\n\ud800x"`: 5, `"\ufffd"`: -1, `"\"\uDBFF\uDFFF"`: -1,
	} {
		if got := loneSurrogate([]byte(text)); got != want {
			t.Errorf("%s: %d, want %d", text, got, want)
		}
	}
}

// FuzzParseLine: a line is refused, or gives the payload and the keys that cat
// would print the same way.
func FuzzParseLine(f *testing.F) {
	f.Add([]byte(`{"payload": "a", "keys": [{"key": "k"}, {"namespace_base64": "AP8=", "key_base64": "gA=="}]}`))
	f.Add([]byte(`{"payload": "a\ud83d\ude00"}`))
	f.Add([]byte(`{"payload_base64": "AP8="}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		r, err := parseLine(line)
		if err != nil {
			return
		}
		var out bytes.Buffer
		p := newPrinter(&out, &printFlags{json: true}, cursor.Cursor{})
		var keys []keyLine
		for _, k := range r.keys {
			var l keyLine
			l.Namespace, l.NamespaceBytes = textOrBase64(k.namespace)
			l.Key, l.KeyBytes = textOrBase64(k.key)
			keys = append(keys, l)
		}
		if err := p.record(recordLine{Keys: keys}, r.payload); err != nil {
			t.Fatal(err)
		}
		if err := p.out.Flush(); err != nil {
			t.Fatal(err)
		}
		again, err := parseLine(bytes.TrimSuffix(out.Bytes(), []byte("\n")))
		same := slices.EqualFunc(again.keys, r.keys, func(a, b recordKey) bool {
			return bytes.Equal(a.namespace, b.namespace) && bytes.Equal(a.key, b.key)
		})
		if err != nil || !bytes.Equal(again.payload, r.payload) || !same {
			t.Fatalf("%q came back as %q, %v", r, again, err)
		}
	})
}
