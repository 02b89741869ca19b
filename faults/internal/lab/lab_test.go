package lab

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// fakeTest is a test that notes how it ended.
type fakeTest struct {
	testing.TB
	ended string
}

func (f *fakeTest) Helper()      {}
func (f *fakeTest) Name() string { return "TestFake" }

func (f *fakeTest) Skip(...any) {
	if f.ended == "" { // else it would not have come so far
		f.ended = "skipped"
	}
}

func (f *fakeTest) Fatalf(format string, a ...any) {
	f.ended = "failed: " + fmt.Sprintf(format, a...)
}

// TestSkip shows that what cannot run is said and counted, and is a failure
// where everything must run.
func TestSkip(t *testing.T) {
	t.Setenv(envRequire, "")
	var f fakeTest
	Program(&f, "no-such-program")
	if f.ended != "skipped" {
		t.Errorf("ended as %q", f.ended)
	}
	Count("kills", 2)
	Count("kills", 3)
	var summary bytes.Buffer
	summarize(&summary)
	for _, want := range []string{"5 kills", "1 tests skipped", "TestFake: no-such-program is not installed"} {
		if !strings.Contains(summary.String(), want) {
			t.Errorf("the summary lacks %q: %s", want, &summary)
		}
	}
	t.Setenv(envRequire, "1")
	f.ended = ""
	Program(&f, "no-such-program")
	if !strings.HasPrefix(f.ended, "failed: REQUIRE_FAULTS=1, and no-such-program") {
		t.Errorf("ended as %q", f.ended)
	}
}
