package main

import (
	"runtime"
	"testing"
)

// TestRetain_L54: the oldest commits go, the rest stays, and positions before
// are told from others.
func TestRetain_L54(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "darwin" {
		skip(t, "pages cannot be freed on this system")
	}
	path := newPath(t)
	tidemark(t, "", "create", path, "--page-size", "4K").want(t, 0)
	tidemark(t, joined(numbered(400)), "append", path).want(t, 0)
	tidemark(t, "", "retain", path).want(t, 2, "--from is missing")
	tidemark(t, "", "retain", path, "--from", "402").want(t, 5, "the head is 400")
	tidemark(t, "", "retain", path, "--from", "301", "--json").want(t, 0).prints(t, `{"oldest":301,"dropped":300,"head":400}`+"\n")
	tidemark(t, "", "retain", path, "--from", "200").want(t, 0).prints(t, "dropped 0 commits, oldest 301, head 400\n")
	tidemark(t, "", "cat", path).want(t, 0).prints(t, joined(numbered(400)[300:]))
	tidemark(t, "", "cat", path, "--after", "299").want(t, 5, "next: ")
	tidemark(t, "", "cat", path, "--after", "300").want(t, 0)
	tidemark(t, "", "verify", path).want(t, 0)
	if s := statOf(t, path); s["oldest"] != 301.0 || s["head"] != 400.0 {
		t.Errorf("%v", s)
	}
	// The host's state keeps what is needed to go on from it.
	tidemark(t, "state", "checkpoint", path, "--blob", "-", "--at", "350").want(t, 0)
	tidemark(t, "", "retain", path, "--from", "352").want(t, 4, "still needed", "checkpoint")
	tidemark(t, "", "retain", path, "--from", "351").want(t, 0)
	if rev, data := lastState(t, path); rev != 350 || data != "state" {
		t.Errorf("%d %q", rev, data)
	}
}
