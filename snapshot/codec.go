package snapshot

import (
	"encoding/binary"
	"strings"
)

// The encoding. Numbers are big-endian; a string or byte string is its length
// (u32) and its bytes; a list is its count (u32) and its items:
//
//	string  format, run, definition, model
//	u32     turn limit, turns
//	u64     last sequence
//	u32     lifecycle
//	plan    list of {string module, version, source}; string tool plan,
//	        compatibility; 32 bytes fingerprint
//	list    of string interactions, ascending
//	list    of {string id; u8 role; list of parts}
//	part    u8 kind, then text: string · call: string call, name, data ·
//	        result: string call, u8 failed, string data · extension: string
//	        name, data
//
// Nothing follows. Every value has one encoding because every field is written
// always, in this order, and lists that are sets are strictly ascending.

type writer struct{ b []byte }

func (w *writer) uint8(v uint8)   { w.b = append(w.b, v) }
func (w *writer) uint32(v uint32) { w.b = binary.BigEndian.AppendUint32(w.b, v) }
func (w *writer) uint64(v uint64) { w.b = binary.BigEndian.AppendUint64(w.b, v) }

func (w *writer) string(s string) {
	w.uint32(uint32(len(s)))
	w.b = append(w.b, s...)
}

func (w *writer) bytes(p []byte) {
	w.uint32(uint32(len(p)))
	w.b = append(w.b, p...)
}

// size bounds the encoding from above, closely.
func (s *State) size() int {
	n := 1024
	for _, c := range s.Plan.Components {
		n += 12 + len(c.Module) + len(c.Version) + len(c.Source)
	}
	for _, id := range s.Interactions {
		n += 4 + len(id)
	}
	for i := range s.Messages {
		n += 9 + len(s.Messages[i].ID)
		for j := range s.Messages[i].Parts {
			p := &s.Messages[i].Parts[j]
			n += 14 + len(p.Call) + len(p.Name) + len(p.Data)
		}
	}
	return n
}

func (s *State) encode() []byte {
	w := writer{b: make([]byte, 0, s.size())}
	w.string(Format)
	w.string(s.RunID)
	w.string(s.Definition)
	w.string(s.Model)
	w.uint32(s.TurnLimit)
	w.uint32(s.Turns)
	w.uint64(s.LastSequence)
	w.uint32(uint32(s.Lifecycle))
	s.Plan.encode(&w)
	w.uint32(uint32(len(s.Interactions)))
	for _, id := range s.Interactions {
		w.string(id)
	}
	w.uint32(uint32(len(s.Messages)))
	for i := range s.Messages {
		m := &s.Messages[i]
		w.string(m.ID)
		w.uint8(uint8(m.Role))
		w.uint32(uint32(len(m.Parts)))
		for j := range m.Parts {
			m.Parts[j].encode(&w)
		}
	}
	return w.b
}

func (p *Plan) encode(w *writer) {
	p.encodeParts(w)
	w.b = append(w.b, p.Fingerprint[:]...)
}

func (p *Plan) encodeParts(w *writer) {
	w.uint32(uint32(len(p.Components)))
	for _, c := range p.Components {
		w.string(c.Module)
		w.string(c.Version)
		w.string(c.Source)
	}
	w.string(p.ToolPlan)
	w.string(p.Compatibility)
}

func (p *Part) encode(w *writer) {
	w.uint8(uint8(p.Kind))
	if p.Kind == ToolCall || p.Kind == ToolResult {
		w.string(p.Call)
	}
	if p.Kind == ToolCall || p.Kind == Extension {
		w.string(p.Name)
	}
	if p.Kind == ToolResult {
		failed := uint8(0)
		if p.Failed {
			failed = 1
		}
		w.uint8(failed)
	}
	w.bytes(p.Data)
}

// reader consumes an encoding; after the first fault it only returns zeros.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) take(n int) []byte {
	if n < 0 || n > len(r.b) {
		r.bad, r.b = true, nil
		return nil
	}
	p := r.b[:n]
	r.b = r.b[n:]
	return p
}

func (r *reader) uint8() uint8 {
	p := r.take(1)
	if r.bad {
		return 0
	}
	return p[0]
}

func (r *reader) uint32() uint32 {
	p := r.take(4)
	if r.bad {
		return 0
	}
	return binary.BigEndian.Uint32(p)
}

func (r *reader) uint64() uint64 {
	p := r.take(8)
	if r.bad {
		return 0
	}
	return binary.BigEndian.Uint64(p)
}

// slice is a byte string inside the input.
func (r *reader) slice() []byte {
	n := r.uint32()
	if uint64(n) > uint64(len(r.b)) {
		r.bad, r.b = true, nil
		return nil
	}
	return r.take(int(n))
}

func (r *reader) string() string { return string(r.slice()) }

// count is the length of a list whose items take at least least bytes each, so
// that no count makes more room than the input could fill.
func (r *reader) count(limit, least int) int {
	n := r.uint32()
	if uint64(n) > uint64(limit) || uint64(n)*uint64(least) > uint64(len(r.b)) {
		r.bad, r.b = true, nil
		return 0
	}
	return int(n)
}

func decodeState(b []byte) (State, error) {
	r := &reader{b: b}
	if format := r.string(); r.bad || format != Format {
		if strings.HasPrefix(format, "tidemark.snapshot/v") {
			return State{}, ErrUnsupported
		}
		return State{}, invalid("format")
	}
	s := State{
		RunID:        r.string(),
		Definition:   r.string(),
		Model:        r.string(),
		TurnLimit:    r.uint32(),
		Turns:        r.uint32(),
		LastSequence: r.uint64(),
		Lifecycle:    Lifecycle(r.uint32()),
	}
	s.Plan.decode(r)
	for range r.count(maxInteractions, 5) {
		s.Interactions = append(s.Interactions, r.string())
	}
	for range r.count(maxMessages, 10) {
		s.Messages = append(s.Messages, decodeMessage(r))
	}
	if r.bad || len(r.b) != 0 {
		return State{}, invalid("encoding")
	}
	return s, nil
}

func (p *Plan) decode(r *reader) {
	for range r.count(maxComponents, 15) {
		p.Components = append(p.Components, Component{Module: r.string(), Version: r.string(), Source: r.string()})
	}
	p.ToolPlan = r.string()
	p.Compatibility = r.string()
	copy(p.Fingerprint[:], r.take(len(p.Fingerprint)))
}

func decodeMessage(r *reader) Message {
	m := Message{ID: r.string(), Role: Role(r.uint8())}
	for range r.count(maxParts, 5) {
		m.Parts = append(m.Parts, decodePart(r))
	}
	return m
}

func decodePart(r *reader) Part {
	p := Part{Kind: PartKind(r.uint8())}
	if p.Kind == ToolCall || p.Kind == ToolResult {
		p.Call = r.string()
	}
	if p.Kind == ToolCall || p.Kind == Extension {
		p.Name = r.string()
	}
	if p.Kind == ToolResult {
		failed := r.uint8()
		r.bad = r.bad || failed > 1
		p.Failed = failed == 1
	}
	p.Data = cloned(r.slice())
	return p
}
