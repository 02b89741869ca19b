package notif

import "testing"

func TestParseRule(t *testing.T) {
	for _, call := range Calls() {
		if numbers[call] == 0 && call != "" && names[numbers[call]] != call {
			t.Errorf("%s has no number", call)
		}
		if len(Actions(call)) == 0 {
			t.Errorf("%s has no faults", call)
		}
		for _, action := range Actions(call) {
			want := Rule{call, 7, action}
			if got, err := ParseRule(want.String()); err != nil || got != want {
				t.Errorf("%v is read as %v, %v", want, got, err)
			}
		}
	}
	for _, bad := range []string{"", "fdatasync:EIO", "fdatasync:EIO:0", "fdatasync:EIO:x", "fdatasync:short:1", "write:EIO:1"} {
		if r, err := ParseRule(bad); err == nil {
			t.Errorf("%q is read as %v", bad, r)
		}
	}
}

func TestWithin(t *testing.T) {
	for path, want := range map[string]bool{
		"/a/b": true, "/a/b/c": true, "/a/b (deleted)": false, "/a/bc": false, "/a": false, "": false,
	} {
		if within(path, "/a/b") != want {
			t.Errorf("%q: %v", path, !want)
		}
	}
}

func TestLength(t *testing.T) {
	for _, tc := range []struct {
		n    uint64
		much extent
		want int
	}{{100, whole, 100}, {100, half, 50}, {1, half, 1}, {0, whole, 0}} {
		c := call{notification: &notification{args: [6]uint64{2: tc.n}}}
		if got := c.length(tc.much); got != tc.want {
			t.Errorf("%d bytes: %d", tc.n, got)
		}
	}
}
