package oracle

import (
	"strings"
	"testing"
)

func groupOf(revision uint64, try int) Group {
	return Group{revision, Texts(Attempt{revision, try}, 2, 200)}
}

// said is what a writer of five revisions says; revision 4 is complete only,
// and the first try at revision 3 was rejected.
const said = `open 0
offer 1 0
ack 1 0 durable
offer 2 0
ack 2 0 complete
offer 3 0
reject 3 0
offer 3 1
ack 3 1 durable
offer 4 0
ack 4 0 complete
offer 5 0
ack 5 0 dura`

func heard(t *testing.T) *Ledger {
	t.Helper()
	l := New()
	if err := l.Hear(said); err != nil {
		t.Fatal(err)
	}
	return l
}

// TestCheck holds the oracle itself to account: everything that is a broken
// promise must be called one.
func TestCheck(t *testing.T) {
	whole := []Group{groupOf(1, 0), groupOf(2, 0), groupOf(3, 1), groupOf(4, 0), groupOf(5, 0)}
	with := func(n int, change func([]Group)) []Group {
		groups := append([]Group{}, whole[:n]...)
		if change != nil {
			change(groups)
		}
		return groups
	}
	for _, tc := range []struct {
		name   string
		groups []Group
		loss   Loss
		want   string // part of the error; empty: kept
	}{
		{"everything", whole, Death, ""},
		{"all that was complete", with(4, nil), Death, ""},
		{"all that was durable", with(3, nil), PowerCut, ""},
		{"a complete one lost by a death", with(3, nil), Death, "lost"},
		{"a durable one lost by a power cut", with(2, nil), PowerCut, "lost"},
		{"nothing left", nil, PowerCut, "lost"},
		{"a rejected one is there", with(5, func(g []Group) { g[2] = groupOf(3, 0) }), Death, "rejected"},
		{"one that nobody offered", with(5, func(g []Group) { g[4] = groupOf(5, 7) }), Death, "nobody offered"},
		{"another revision's contents", with(5, func(g []Group) { g[3].Records = whole[0].Records }), Death, "holds revision 1"},
		{"two exchanged", with(5, func(g []Group) { g[3], g[4] = g[4], g[3] }), Death, "stands where"},
		{"half a commit", with(5, func(g []Group) { g[3].Records = g[3].Records[:1] }), Death, "record 0 of 1"},
		{"one byte changed", with(5, func(g []Group) {
			text := []byte(g[0].Records[1])
			text[len(text)-1] ^= 1
			g[0].Records = []string{g[0].Records[0], string(text)}
		}), Death, "other bytes"},
		{"bytes of nobody", with(5, func(g []Group) { g[0].Records = []string{"\x00\x00"} }), Death, "record 0"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := heard(t).Check(tc.groups, tc.loss)
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

// TestSettle shows that a recovery binds: what it found stays, what it dropped
// does not come back, and a new try is told from an old one.
func TestSettle(t *testing.T) {
	l := heard(t)
	found := []Group{groupOf(1, 0), groupOf(2, 0), groupOf(3, 1), groupOf(4, 0)}
	if err := l.Settle(found); err != nil {
		t.Fatal(err)
	}
	if err := l.Check(found[:3], PowerCut); err == nil {
		t.Error("what a recovery found may go again")
	}
	if err := l.Check(append(found, groupOf(5, 0)), Death); err == nil {
		t.Error("what a recovery dropped may come back")
	}
	if a := l.Next(5); a != (Attempt{5, 1}) {
		t.Errorf("the next try is %v", a)
	}
}

func TestHear_Unoffered(t *testing.T) {
	if err := New().Hear("ack 1 0 durable\n"); err == nil {
		t.Error("an acknowledgement of nothing was taken")
	}
}

func TestFromCat(t *testing.T) {
	in := `{"revision":1,"record":0,"payload":"a"}
{"revision":1,"record":1,"payload":"b"}
{"revision":2,"record":0,"payload":"c"}
{"revision":3,"rec`
	groups, err := FromCat(strings.NewReader(in))
	if err != nil || len(groups) != 2 || len(groups[0].Records) != 2 {
		t.Errorf("%v, %v", groups, err)
	}
	if _, err := FromCat(strings.NewReader(`{"revision":1,"record":1,"payload":"b"}` + "\n")); err == nil {
		t.Error("a record without the one before it was taken")
	}
}

// TestOpen shows what opening binds a log to, after a death of the writer.
func TestOpen(t *testing.T) {
	l := heard(t)
	if err := l.Clone().Open(3); err == nil {
		t.Error("opening lost a complete commit, and that was fine")
	}
	if err := l.Open(4); err != nil {
		t.Fatal(err)
	}
	found := []Group{groupOf(1, 0), groupOf(2, 0), groupOf(3, 1), groupOf(4, 0)}
	if err := l.Check(found, PowerCut); err != nil {
		t.Error(err)
	}
	if err := l.Check(found[:3], PowerCut); err == nil {
		t.Error("what opening found may go again")
	}
	if err := l.Check(append(found, groupOf(5, 0)), Death); err == nil {
		t.Error("what opening dropped may come back")
	}
}
