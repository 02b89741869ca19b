package snapshot

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// sample is a state that uses every field.
func sample(t testing.TB) State {
	t.Helper()
	plan, err := NewPlan(
		[]Component{{"example/b", "v2", "sum-b"}, {"example/a", "v1", "sum-a"}},
		"tools-1", "compat-1",
		[]Definition{{"search", []byte(`{"q":"string"}`)}})
	if err != nil {
		t.Fatal(err)
	}
	return State{
		RunID: "run-1", Definition: "agent/1", Model: "model-x",
		TurnLimit: 8, Turns: 1, LastSequence: 42, Lifecycle: Suspended,
		Plan:         plan,
		Interactions: []string{"ask-2", "ask-1"},
		Messages: []Message{
			{ID: "m1", Role: System, Parts: []Part{{Kind: Text, Data: []byte("be brief")}}},
			{ID: "m2", Role: User, Parts: []Part{{Kind: Text, Data: []byte("hé")}, {Kind: Extension, Name: "x/img", Data: []byte{0, 1}}}},
			{ID: "m3", Role: Assistant, Parts: []Part{{Kind: ToolCall, Call: "c1", Name: "search", Data: []byte("{}")}}},
			{ID: "m4", Role: Tool, Parts: []Part{{Kind: ToolResult, Call: "c1", Data: []byte("no"), Failed: true}}},
		},
	}
}

func mustNew(t testing.TB, s State) Snapshot {
	t.Helper()
	snap, err := New(s)
	if err != nil {
		t.Fatal(err)
	}
	return snap
}

// golden is the sample, field by field. A change here is a change of format.
var golden = strings.Join([]string{
	"00000014", hex.EncodeToString([]byte("tidemark.snapshot/v1")), // format
	"00000005", hex.EncodeToString([]byte("run-1")),
	"00000007", hex.EncodeToString([]byte("agent/1")),
	"00000007", hex.EncodeToString([]byte("model-x")),
	"00000008", "00000001", "000000000000002a", "00000001", // turn limit, turns, last sequence, lifecycle
	"00000002", // components, ascending
	"00000009", hex.EncodeToString([]byte("example/a")), "00000002", "7631", "00000005", hex.EncodeToString([]byte("sum-a")),
	"00000009", hex.EncodeToString([]byte("example/b")), "00000002", "7632", "00000005", hex.EncodeToString([]byte("sum-b")),
	"00000007", hex.EncodeToString([]byte("tools-1")),
	"00000008", hex.EncodeToString([]byte("compat-1")),
	"$FINGERPRINT",
	"00000002", "00000005", hex.EncodeToString([]byte("ask-1")), "00000005", hex.EncodeToString([]byte("ask-2")),
	"00000004",
	"00000002", "6d31", "01", "00000001", "01", "00000008", hex.EncodeToString([]byte("be brief")),
	"00000002", "6d32", "02", "00000002", "01", "00000003", "68c3a9", "04", "00000005", hex.EncodeToString([]byte("x/img")), "00000002", "0001",
	"00000002", "6d33", "03", "00000001", "02", "00000002", "6331", "00000006", hex.EncodeToString([]byte("search")), "00000002", "7b7d",
	"00000002", "6d34", "04", "00000001", "03", "00000002", "6331", "01", "00000002", "6e6f",
}, "")

// goldenFingerprint was computed without this package:
//
//	s(){ printf '%08x' ${#1}; printf %s "$1" | xxd -p | tr -d '\n'; }
//	{ s tidemark.snapshot-plan/v1; printf 00000002; s example/a; s v1; s sum-a
//	  s example/b; s v2; s sum-b; s tools-1; s compat-1; printf 00000001
//	  s search; s '{"q":"string"}'; } | xxd -r -p | openssl dgst -sha256
const goldenFingerprint = "223aa8905102c9a5076c0a581443a22f5b352564c67f2744b2c6d7bd5c6de1f1"

func TestR90_GoldenBytes(t *testing.T) {
	want, err := hex.DecodeString(strings.Replace(golden, "$FINGERPRINT", goldenFingerprint, 1))
	if err != nil {
		t.Fatal(err)
	}
	snap := mustNew(t, sample(t))
	if got := snap.Encoding(); !bytes.Equal(got, want) {
		t.Errorf("encoding\n got %x\nwant %x", got, want)
	}
	next := bytes.Replace(want, []byte("snapshot/v1"), []byte("snapshot/v2"), 1)
	if _, err := Decode(next); !errors.Is(err, ErrUnsupported) {
		t.Errorf("version + 1: %v", err)
	}
}

func TestR90_DecodeEncodeIsIdentity(t *testing.T) {
	snap := mustNew(t, sample(t))
	back, err := Decode(snap.Encoding())
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(back, snap) {
		t.Errorf("decoded %+v\nwant %+v", back, snap)
	}
	again := mustNew(t, back.State())
	if !bytes.Equal(again.Encoding(), snap.Encoding()) || again.Digest() != snap.Digest() {
		t.Error("a decoded state encodes differently")
	}
}

// Every refusal, each as the one change to a good state.
func TestR91_Refusals(t *testing.T) {
	part := func(s *State, m int, p Part) { s.Messages[m].Parts = append(s.Messages[m].Parts, p) }
	for name, c := range map[string]struct {
		change func(*State)
		want   error
	}{
		"active":                     {func(s *State) { s.Lifecycle = 0 }, ErrActive},
		"R92 pending interaction":    {func(s *State) { s.Pending = []string{"ask-3"} }, ErrActive},
		"R92 unresolved mutation":    {func(s *State) { s.Unresolved = []string{"c9"} }, ErrActive},
		"unknown lifecycle":          {func(s *State) { s.Lifecycle = 5 }, ErrInvalid},
		"no run":                     {func(s *State) { s.RunID = "" }, ErrInvalid},
		"run not trimmed":            {func(s *State) { s.RunID = " run" }, ErrInvalid},
		"run with control":           {func(s *State) { s.RunID = "a\nb" }, ErrInvalid},
		"run not UTF-8":              {func(s *State) { s.RunID = "a\xff" }, ErrInvalid},
		"run too long":               {func(s *State) { s.RunID = strings.Repeat("x", 129) }, ErrInvalid},
		"no definition":              {func(s *State) { s.Definition = "" }, ErrInvalid},
		"no model":                   {func(s *State) { s.Model = "" }, ErrInvalid},
		"no turn limit":              {func(s *State) { s.TurnLimit, s.Turns = 0, 0 }, ErrInvalid},
		"turns past limit":           {func(s *State) { s.Turns = 9 }, ErrInvalid},
		"no sequence":                {func(s *State) { s.LastSequence = 0 }, ErrInvalid},
		"no fingerprint":             {func(s *State) { s.Plan.Fingerprint = [32]byte{} }, ErrInvalid},
		"components unsorted":        {func(s *State) { slices.Reverse(s.Plan.Components) }, ErrInvalid},
		"component twice":            {func(s *State) { s.Plan.Components[1] = s.Plan.Components[0] }, ErrInvalid},
		"component without source":   {func(s *State) { s.Plan.Components[0].Source = "" }, ErrInvalid},
		"no tool plan":               {func(s *State) { s.Plan.ToolPlan = "" }, ErrInvalid},
		"interaction twice":          {func(s *State) { s.Interactions[1] = s.Interactions[0] }, ErrInvalid},
		"interaction empty":          {func(s *State) { s.Interactions[1] = "" }, ErrInvalid},
		"message twice":              {func(s *State) { s.Messages[1].ID = "m1" }, ErrInvalid},
		"message without identity":   {func(s *State) { s.Messages[1].ID = "" }, ErrInvalid},
		"message without parts":      {func(s *State) { s.Messages[1].Parts = nil }, ErrInvalid},
		"unknown role":               {func(s *State) { s.Messages[1].Role = 5 }, ErrInvalid},
		"no role":                    {func(s *State) { s.Messages[1].Role = 0 }, ErrInvalid},
		"call by user":               {func(s *State) { part(s, 1, Part{Kind: ToolCall, Call: "c2", Name: "x"}) }, ErrInvalid},
		"text by tool":               {func(s *State) { part(s, 3, Part{Kind: Text, Data: []byte("x")}) }, ErrInvalid},
		"unknown part":               {func(s *State) { part(s, 2, Part{Kind: 9}) }, ErrInvalid},
		"text not UTF-8":             {func(s *State) { part(s, 1, Part{Kind: Text, Data: []byte{0xff}}) }, ErrInvalid},
		"text with name":             {func(s *State) { part(s, 1, Part{Kind: Text, Name: "x"}) }, ErrInvalid},
		"text with call":             {func(s *State) { part(s, 1, Part{Kind: Text, Call: "x"}) }, ErrInvalid},
		"text failed":                {func(s *State) { part(s, 1, Part{Kind: Text, Failed: true}) }, ErrInvalid},
		"extension without name":     {func(s *State) { part(s, 1, Part{Kind: Extension}) }, ErrInvalid},
		"call without result":        {func(s *State) { part(s, 2, Part{Kind: ToolCall, Call: "c2", Name: "x"}) }, ErrInvalid},
		"call twice":                 {func(s *State) { part(s, 2, Part{Kind: ToolCall, Call: "c1", Name: "x"}) }, ErrInvalid},
		"call without name":          {func(s *State) { s.Messages[2].Parts[0].Name = "" }, ErrInvalid},
		"result without call":        {func(s *State) { part(s, 3, Part{Kind: ToolResult, Call: "c2"}) }, ErrInvalid},
		"result twice":               {func(s *State) { part(s, 3, Part{Kind: ToolResult, Call: "c1"}) }, ErrInvalid},
		"result before call":         {func(s *State) { s.Messages[2], s.Messages[3] = s.Messages[3], s.Messages[2] }, ErrInvalid},
		"too many parts":             {func(s *State) { s.Messages[0].Parts = make([]Part, maxParts+1) }, ErrTooLarge},
		"too many messages":          {func(s *State) { s.Messages = make([]Message, maxMessages+1) }, ErrTooLarge},
		"too many interactions":      {func(s *State) { s.Interactions = make([]string, maxInteractions+1) }, ErrTooLarge},
		"too many components":        {func(s *State) { s.Plan.Components = make([]Component, maxComponents+1) }, ErrTooLarge},
		"too large":                  {func(s *State) { s.Messages[0].Parts[0].Data = bytes.Repeat([]byte("x"), MaxSize) }, ErrTooLarge},
		"far too large, not encoded": {func(s *State) { s.Messages[0].Parts[0].Data = bytes.Repeat([]byte("x"), 2*MaxSize) }, ErrTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			s := sample(t)
			c.change(&s)
			if snap, err := New(s); !errors.Is(err, c.want) || snap.Size() != 0 {
				t.Fatalf("New: %v, want %v", err, c.want)
			}
			if c.want != ErrInvalid || strings.HasPrefix(name, "text ") || strings.HasPrefix(name, "unknown part") {
				return
			}
			// The same state in bytes is refused too: nothing relies on New.
			s.Interactions = slices.Sorted(slices.Values(s.Interactions))
			if _, err := Decode(s.encode()); err == nil {
				t.Error("Decode accepted its encoding")
			}
		})
	}
}

func TestR91_SizeLimitIsExact(t *testing.T) {
	s := sample(t)
	base := mustNew(t, s).Size() - len(s.Messages[0].Parts[0].Data)
	s.Messages[0].Parts[0].Data = bytes.Repeat([]byte("x"), MaxSize-base)
	snap := mustNew(t, s)
	if snap.Size() != MaxSize {
		t.Fatalf("size %d", snap.Size())
	}
	if _, err := Decode(snap.encoded); err != nil {
		t.Errorf("Decode of the largest: %v", err)
	}
	if _, err := Decode(append(snap.encoded, 0)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("one byte more: %v", err)
	}
}

func TestR90_EveryCutAndEveryTailRefused(t *testing.T) {
	good := mustNew(t, sample(t)).Encoding()
	for i := range good {
		if _, err := Decode(good[:i]); err == nil {
			t.Fatalf("cut at %d accepted", i)
		}
	}
	if _, err := Decode(append(slices.Clone(good), 0)); err == nil {
		t.Error("unknown field at the end accepted")
	}
}

// A flipped bit is another snapshot or none, never another spelling of this one.
func TestR90_EveryFlipIsAnotherValue(t *testing.T) {
	snap := mustNew(t, sample(t))
	good := snap.Encoding()
	for i := range good {
		for bit := range 8 {
			b := slices.Clone(good)
			b[i] ^= 1 << bit
			back, err := Decode(b)
			if err == nil && (reflect.DeepEqual(back.State(), snap.State()) || !bytes.Equal(back.state.encode(), b)) {
				t.Fatalf("byte %d bit %d: another spelling", i, bit)
			}
		}
	}
}

func TestR90_Immutable(t *testing.T) {
	s := sample(t)
	snap := mustNew(t, s)
	before := snap.Encoding()
	s.Messages[0].Parts[0].Data[0] = 'X'
	s.Plan.Components[0].Module = "changed"
	out := snap.State()
	out.Messages[1].Parts[1].Data[0] = 9
	out.Interactions[0] = "changed"
	snap.Encoding()[30] ^= 1
	snap.Plan().Components[0].Module = "changed"
	if !bytes.Equal(snap.Encoding(), before) || !bytes.Equal(snap.state.encode(), before) {
		t.Error("something outside is shared")
	}
}

// The types can hold plain values only: nothing that runs, points or connects.
func TestR90_TypeGraphHoldsValuesOnly(t *testing.T) {
	seen := map[reflect.Type]bool{}
	var visit func(at string, typ reflect.Type)
	visit = func(at string, typ reflect.Type) {
		if seen[typ] {
			return
		}
		seen[typ] = true
		switch typ.Kind() {
		case reflect.String, reflect.Bool, reflect.Uint8, reflect.Uint32, reflect.Uint64:
		case reflect.Slice, reflect.Array:
			visit(at+"[]", typ.Elem())
		case reflect.Struct:
			for f := range typ.Fields() {
				visit(at+"."+f.Name, f.Type)
			}
		default:
			t.Errorf("%s is a %s", at, typ.Kind())
		}
	}
	visit("Snapshot", reflect.TypeFor[Snapshot]())
	for _, want := range []reflect.Type{reflect.TypeFor[State](), reflect.TypeFor[Plan](), reflect.TypeFor[Part]()} {
		if !seen[want] {
			t.Errorf("%s was not reached", want)
		}
	}
}

func TestR93_PlanIdentity(t *testing.T) {
	parts := []Component{{"a", "1", "x"}, {"b", "1", "y"}}
	tools := []Definition{{"t1", []byte("one")}, {"t2", []byte("two")}}
	plan := func(c []Component, tool, compat string, d []Definition) Plan {
		p, err := NewPlan(c, tool, compat, d)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	base := plan(parts, "tools", "compat", tools)
	swapped := plan([]Component{parts[1], parts[0]}, "tools", "compat", []Definition{tools[1], tools[0]})
	if !base.Equal(swapped) {
		t.Error("order matters")
	}
	for name, other := range map[string]Plan{
		"component":     plan(parts[:1], "tools", "compat", tools),
		"tool plan":     plan(parts, "tools2", "compat", tools),
		"compatibility": plan(parts, "tools", "", tools),
		"contract":      plan(parts, "tools", "compat", []Definition{tools[0], {"t2", []byte("tw0")}}),
		"tool":          plan(parts, "tools", "compat", tools[:1]),
	} {
		if base.Equal(other) || base.Fingerprint == other.Fingerprint {
			t.Errorf("%s does not enter the fingerprint", name)
		}
	}
	if _, err := NewPlan(parts, "tools", "", append(tools, tools[0])); !errors.Is(err, ErrInvalid) {
		t.Errorf("a definition twice: %v", err)
	}
}

func TestR98_TerminalSnapshotsCanBeRead(t *testing.T) {
	for _, l := range []Lifecycle{Completed, Failed, Cancelled} {
		s := sample(t)
		s.Lifecycle = l
		back, err := Decode(mustNew(t, s).Encoding())
		if err != nil || back.Lifecycle() != l || !l.Terminal() {
			t.Errorf("%v: %v", l, err)
		}
	}
	if Suspended.Terminal() {
		t.Error("suspended is terminal")
	}
}

func TestR90_EqualValuesEncodeEqually(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := generated().Draw(t, "state")
		a, err := New(s)
		if err != nil {
			t.Skip(err)
		}
		slices.Reverse(s.Interactions)
		b, err := New(s)
		if err != nil || !bytes.Equal(a.encoded, b.encoded) {
			t.Fatalf("reversed set: %v", err)
		}
		back, err := Decode(a.encoded)
		if err != nil || !reflect.DeepEqual(back, a) {
			t.Fatalf("decode: %v", err)
		}
	})
}

// generated draws states that New accepts.
func generated() *rapid.Generator[State] {
	return rapid.Custom(func(t *rapid.T) State {
		id := rapid.StringMatching(`[a-z][a-z0-9/é-]{0,20}[a-z]`)
		plan, err := NewPlan(nil, id.Draw(t, "tools"), "", nil)
		if err != nil {
			t.Fatal(err)
		}
		s := State{
			RunID: id.Draw(t, "run"), Definition: id.Draw(t, "definition"), Model: id.Draw(t, "model"),
			TurnLimit: 100, Turns: rapid.Uint32Max(100).Draw(t, "turns"),
			LastSequence: rapid.Uint64Min(1).Draw(t, "sequence"),
			Lifecycle:    Lifecycle(rapid.Uint32Range(1, 4).Draw(t, "lifecycle")),
			Plan:         plan,
			Interactions: rapid.SliceOfNDistinct(id, 0, 5, rapid.ID).Draw(t, "interactions"),
		}
		for i := range rapid.IntRange(0, 6).Draw(t, "turns of talk") {
			data := rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(t, "data")
			s.Messages = append(s.Messages,
				Message{ID: fmt.Sprint("u", i), Role: User, Parts: []Part{{Kind: Extension, Name: "x", Data: data}}},
				Message{ID: fmt.Sprint("a", i), Role: Assistant, Parts: []Part{{Kind: ToolCall, Call: fmt.Sprint(i), Name: "n"}}},
				Message{ID: fmt.Sprint("t", i), Role: Tool, Parts: []Part{{Kind: ToolResult, Call: fmt.Sprint(i), Data: data}}})
		}
		return s
	})
}

// FuzzDecode: whatever decodes encodes to the same bytes; nothing panics.
func FuzzDecode(f *testing.F) {
	f.Add(mustNew(f, sample(f)).Encoding())
	s := sample(f)
	s.Messages, s.Lifecycle = nil, Completed
	f.Add(mustNew(f, s).Encoding())
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		snap, err := Decode(b)
		if err != nil {
			return
		}
		if !bytes.Equal(snap.state.encode(), b) {
			t.Fatal("decode then encode is not the identity")
		}
		if again, err := New(snap.State()); err != nil || !bytes.Equal(again.encoded, b) {
			t.Fatalf("New of a decoded state: %v", err)
		}
	})
}
