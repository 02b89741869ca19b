package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/tidemark-log/tidemark/authority"
	"github.com/tidemark-log/tidemark/pagelog"
	"github.com/tidemark-log/tidemark/snapshot"
)

// privateDir names an authority that does not exist yet, by a path without
// links.
func privateDir(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	return filepath.Join(dir, "authority")
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// state is a snapshot of a run.
func state(t *testing.T, run string, last uint64, l snapshot.Lifecycle) snapshot.Snapshot {
	t.Helper()
	plan, err := snapshot.NewPlan(nil, "tools", "compat", nil)
	must(t, err)
	s, err := snapshot.New(snapshot.State{
		RunID: run, Definition: "agent", Model: "model", TurnLimit: 9, Turns: 2, LastSequence: last, Lifecycle: l, Plan: plan,
		Messages: []snapshot.Message{{ID: "m", Role: snapshot.User, Parts: []snapshot.Part{{Kind: snapshot.Text, Data: []byte("a secret")}}}},
	})
	must(t, err)
	return s
}

// begun starts a run on a log of its own with two commits.
func begun(t *testing.T, a *authority.Authority, dir, run string) (*authority.Lease, *pagelog.Log) {
	t.Helper()
	ctx := context.Background()
	l, err := a.Start(ctx, run)
	must(t, err)
	token, err := l.Token()
	must(t, err)
	log, err := pagelog.Create(filepath.Join(filepath.Dir(dir), run+".log"), pagelog.CreateOptions{}, pagelog.Options{Fence: token})
	must(t, err)
	t.Cleanup(func() { _ = log.Close() })
	_, err = l.Continue(log)
	must(t, err)
	for range 2 {
		var b pagelog.Batch
		b.Add(pagelog.Record{Kind: 1, Data: []byte("event")})
		_, err := log.Commit(ctx, &b)
		must(t, err)
	}
	return l, log
}

// TestAuthority_R109 is an operator's day: look, believe an envelope or not, end
// what is stuck, change keys.
func TestAuthority_R109(t *testing.T) {
	t.Parallel()
	ctx, dir := context.Background(), privateDir(t)
	do := func(args ...string) result {
		t.Helper()
		return tidemark(t, "", append([]string{"authority"}, append(args, "--dir", dir)...)...)
	}
	do("list").want(t, 2, "store unavailable", dir).prints(t, "")
	do("init").want(t, 0).prints(t, "ready; key 1 signs\n")
	do("init", "--json").want(t, 0).prints(t, `{"keys":[{"generation":1,"status":"primary"}]}`+"\n")
	do("list").want(t, 0).prints(t, "key 1: primary\n")

	a, err := authority.Open(ctx, dir, authority.Options{})
	must(t, err)
	l, log := begun(t, a, dir, "one")
	e, err := l.Suspend(ctx, state(t, "one", 2, snapshot.Suspended))
	must(t, err)
	file := filepath.Join(filepath.Dir(dir), "one.envelope")
	must(t, os.WriteFile(file, e.Encoding(), 0o600))
	stuck, _ := begun(t, a, dir, "two")

	list := do("list").want(t, 0).out
	for _, part := range []string{
		"suspended  held      key 1  transition 1  last sequence 2  one\n",
		"active     held      key 1  transition 1  last sequence 0  two\n",
	} {
		if !strings.Contains(list, part) {
			t.Errorf("list lacks %q:\n%s", part, list)
		}
	}
	var shown struct {
		Run, Phase, Log string
		Held            bool
		LastSequence    uint64 `json:"last_sequence"`
	}
	must(t, json.Unmarshal([]byte(do("inspect", "one", "--json").want(t, 0).out), &shown))
	if shown.Run != "one" || shown.Phase != "suspended" || !shown.Held || shown.LastSequence != 2 || shown.Log != log.Cursor(log.Head()).String() {
		t.Errorf("%+v", shown)
	}
	do("inspect", "three").want(t, 4, `run "three" was never started`)
	tidemark(t, "", "authority", "list", "--dir", dir+string(filepath.Separator)).want(t, 0)
	tidemark(t, "", "authority", "list", "--dir", "authority").want(t, 2, `--dir: "authority" is not an absolute path`)
	do("inspect", "bad\x01id").want(t, 2)
	do("verify", file).want(t, 0).prints(t, "genuine: run \"one\", suspended at sequence 2, signed by key 1; 1 message, turn 2 of 9\n")
	if out := do("verify", file, "--json").want(t, 0).out; strings.Contains(out, "secret") || !strings.Contains(out, `"lifecycle":"suspended"`) {
		t.Error(out)
	}
	forged := e.Encoding()
	forged[len(forged)-1] ^= 1
	must(t, os.WriteFile(file+"-forged", forged, 0o600))
	do("verify", file+"-forged").want(t, 1, "verification failed").prints(t, "")
	must(t, os.WriteFile(file+"-short", forged[:20], 0o600))
	do("verify", file+"-short").want(t, 2, "not an envelope", "an envelope is what")
	do("verify", file+"-none").want(t, 2)

	do("resolve", "two", "--as", "failed").want(t, 3, "busy")
	must(t, stuck.Close())
	do("resolve", "two").want(t, 2, "--as is missing")
	do("resolve", "two", "--as", "faild").want(t, 2, "did you mean failed?")
	do("resolve", "two", "--as", "failed").want(t, 0).prints(t, "run \"two\" is failed\n")
	do("resolve", "two", "--as", "failed").want(t, 4, `run "two" is over`)

	do("rotate").want(t, 0).prints(t, "key 2 signs from now on\n")
	do("retire").want(t, 2, "--key is missing")
	do("retire", "--key", "1").want(t, 4) // the claim of one needs it
	done, err := l.Finish(ctx, state(t, "one", 2, snapshot.Completed))
	must(t, err)
	must(t, os.WriteFile(file, done.Encoding(), 0o600))
	do("verify", file).want(t, 0).prints(t, "genuine: run \"one\", completed at sequence 2, signed by key 2; 1 message, turn 2 of 9\n")
	do("retire", "--key", "1").want(t, 0).prints(t, "key 1 is gone\n")
	do("retire", "--key", "2").want(t, 4, "key 2 signs")
	must(t, a.Close())

	// A log of a run is not for others to write.
	must(t, log.Close())
	tidemark(t, "x\n", "append", filepath.Join(filepath.Dir(dir), "one.log")).want(t, 3, "belongs to a run")
	tidemark(t, "", "cat", filepath.Join(filepath.Dir(dir), "one.log")).want(t, 0).prints(t, "event\nevent\n")

	damageAll(t, dir)
	if out := do("list").want(t, 1, "2 of 2 runs").out; strings.Count(out, "damaged") != 2 {
		t.Error(out)
	}
	do("inspect", "one").want(t, 1, "cannot be believed")
	do("resolve", "one", "--as", "cancelled").want(t, 0)
	do("inspect", "one").want(t, 0)
}

// damageAll flips a bit in the newest record of every run.
func damageAll(t *testing.T, dir string) {
	t.Helper()
	states, err := filepath.Glob(filepath.Join(dir, "run-*.state"))
	must(t, err)
	for _, s := range states {
		b := read(t, s)
		b[len(bytes.TrimRight(b, "\x00"))-1] ^= 1
		must(t, os.WriteFile(s, b, 0o600))
	}
}

// TestAuthority_R109_Usage: what is wrong with a command line is said, and every
// verb has help.
func TestAuthority_R109_Usage(t *testing.T) {
	t.Parallel()
	for args, says := range map[string]string{
		"authority frobnicate":          "no verb",
		"authority lst":                 "did you mean list?",
		"authority resolve":             "RUN is missing",
		"authority resolve a b":         "one RUN at a time",
		"authority list x":              "takes no operand",
		"authority verify":              "name one ENVELOPE",
		"authority retire --key 0":      "too small",
		"authority list --dir relative": "relative",
		"help authority lst":            "did you mean list?",
	} {
		tidemark(t, "", strings.Fields(args)...).want(t, 2, says).prints(t, "")
	}
	all := tidemark(t, "", "authority").want(t, 0).out
	for _, verb := range []string{"init", "list", "inspect", "verify", "resolve", "rotate", "retire"} {
		for _, args := range [][]string{{"authority", verb, "--help"}, {"help", "authority", verb}} {
			out := tidemark(t, "", args...).want(t, 0).out
			for _, part := range []string{"Usage:\n  tidemark authority " + verb, "Example:\n  ", "--json", "--dir"} {
				if !strings.Contains(out, part) {
					t.Errorf("%v lacks %q:\n%s", args, part, out)
				}
			}
		}
		if !strings.Contains(all, "\n  "+verb+" ") {
			t.Errorf("not listed: %s\n%s", verb, all)
		}
	}
	for _, c := range newAuthority(&app{}).Commands() {
		for line := range strings.SplitSeq(c.Long, "\n") {
			if len(line) > 80 {
				t.Errorf("%s: too long: %s", c.Name(), line)
			}
		}
	}
}

// authorityFixture is a directory with an authority where the user's own one is
// for scripts, an orphaned run in it, and the envelope of a suspended one.
func authorityFixture(t *testing.T) string {
	t.Helper()
	ctx, top := context.Background(), filepath.Dir(privateDir(t))
	dir := filepath.Join(top, "tidemark", "authority")
	a, err := authority.Open(ctx, dir, authority.Options{Create: true})
	must(t, err)
	orphan, _ := begun(t, a, dir, "run-17")
	must(t, orphan.Close())
	l, _ := begun(t, a, dir, "run-18")
	e, err := l.Suspend(ctx, state(t, "run-18", 2, snapshot.Suspended))
	must(t, err)
	must(t, os.WriteFile(filepath.Join(top, "run.envelope"), e.Encoding(), 0o600))
	must(t, l.Close())
	must(t, a.Close())
	return top
}

// TestAuthority_R109_Examples runs the examples of the verbs, in the order in
// which an operator would come to them.
func TestAuthority_R109_Examples(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		skip(t, "scripts find an authority by XDG_STATE_HOME")
	}
	sh, dir := shell(t), authorityFixture(t)
	verbs := map[string]*cobra.Command{}
	for _, c := range newAuthority(&app{}).Commands() {
		verbs[c.Name()] = c
	}
	order := []string{"init", "list", "inspect", "verify", "resolve", "rotate", "retire"}
	if len(verbs) != len(order) {
		t.Errorf("%d verbs", len(verbs))
	}
	for _, name := range order {
		for line := range strings.Lines(verbs[name].Example) {
			if !strings.Contains(line, "--dir /var") {
				script(t, sh, dir, line)
			}
		}
		if name == "resolve" { // the other run needs the key, too
			script(t, sh, dir, "tidemark authority resolve run-18 --as cancelled")
		}
	}
}
