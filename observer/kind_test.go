package observer

import (
	"fmt"
	"testing"
)

func TestEventKind_String(t *testing.T) {
	for k, want := range map[EventKind]string{Committed: "commit", Bookmark: "bookmark", Lag: "lag", Noted: "note", 9: "kind 9"} {
		if got := fmt.Sprint(k); got != want {
			t.Errorf("kind %d is %q, want %q", uint8(k), got, want)
		}
	}
}
