// Package snapshot is the state of a run at a moment when nothing of it is in
// motion: suspended at a completed turn boundary, or over. It is deterministic
// (one encoding per value), immutable (nothing it returns is shared), bounded
// (MaxSize) and closed: anything the format does not name is refused.
//
// A snapshot holds plain values only. There is no field a provider, client,
// secret, function, process or registry could be put in; a test walks the types
// to keep it so. The conversation in it is application data: whoever stores a
// snapshot protects it accordingly.
//
// The package knows bytes and no files, and establishes no authority: that a
// snapshot decodes says nothing about who wrote it. See package authority.
package snapshot

import (
	"crypto/sha256"
	"errors"
	"slices"
)

const (
	// Format names the encoding; it is the first field of every snapshot.
	Format = "tidemark.snapshot/v1"
	// MaxSize bounds an encoded snapshot, in bytes.
	MaxSize = 16 << 20
)

// Errors. Each refusal is one of these, wrapped with what was refused, never
// with content.
var (
	// ErrInvalid means the value or the bytes are not a snapshot.
	ErrInvalid = errors.New("snapshot: invalid")
	// ErrUnsupported means the bytes name another version of the format.
	ErrUnsupported = errors.New("snapshot: unsupported version")
	// ErrTooLarge means the encoding would pass MaxSize.
	ErrTooLarge = errors.New("snapshot: too large")
	// ErrActive means the run is not at a place where it can be put down: it is
	// active, waits for an interaction, or a mutation's outcome is unknown.
	ErrActive = errors.New("snapshot: run is not at rest")
)

// Lifecycle says what may become of the run. Zero is an active run, which has
// no snapshot.
type Lifecycle uint32

// The lifecycles; the numbers are on the wire.
const (
	Suspended Lifecycle = 1 // may be resumed
	Completed Lifecycle = 2
	Failed    Lifecycle = 3
	Cancelled Lifecycle = 4
)

// Terminal reports whether the run is over: inspectable, never resumable.
func (l Lifecycle) Terminal() bool { return l >= Completed && l <= Cancelled }

// String is the lifecycle's name.
func (l Lifecycle) String() string {
	names := []string{"active", "suspended", "completed", "failed", "cancelled"}
	if int64(l) < int64(len(names)) {
		return names[l]
	}
	return "unknown"
}

// Role says who speaks in a message.
type Role uint8

// The roles; the numbers are on the wire.
const (
	System    Role = 1 // text only
	User      Role = 2 // text and extensions
	Assistant Role = 3 // text, tool calls and extensions
	Tool      Role = 4 // tool results only
)

// PartKind says what a part of a message is.
type PartKind uint8

// The kinds of part; the numbers are on the wire.
const (
	Text       PartKind = 1 // Data: UTF-8
	ToolCall   PartKind = 2 // Call, Name, Data: the arguments
	ToolResult PartKind = 3 // Call, Failed, Data: what came back
	Extension  PartKind = 4 // Name, Data: opaque
)

// Part is a piece of a message. Fields its kind does not name are zero.
type Part struct {
	Kind   PartKind
	Call   string // identity of a tool call, unique in the run
	Name   string // of the tool or the extension
	Data   []byte
	Failed bool // the tool reported an error
}

// Message is one entry of the history, in no provider's own shape.
type Message struct {
	ID    string // unique in the run
	Role  Role
	Parts []Part // at least one
}

// State is the content of a snapshot. Strings that identify something are 1 to
// 128 bytes of trimmed UTF-8 without controls.
type State struct {
	RunID        string
	Definition   string // identity of what is run
	Model        string
	TurnLimit    uint32 // turns; at least 1
	Turns        uint32 // completed turns; at most TurnLimit
	LastSequence uint64 // last committed event of the run; at least 1
	Lifecycle    Lifecycle
	Plan         Plan
	Interactions []string // identities already used; New sorts them
	Messages     []Message

	// Pending and Unresolved are interactions nobody answered yet and mutations
	// whose outcome is unknown. New refuses both with ErrActive; they are asked
	// for so that no caller can forget them, and have no encoding.
	Pending    []string
	Unresolved []string
}

// Snapshot is a validated state and its one encoding. The zero value is no
// snapshot and is refused wherever one is asked for. It may be used
// concurrently.
type Snapshot struct {
	state   State
	encoded []byte
	digest  [sha256.Size]byte
}

// New validates a state, copies it and encodes it.
func New(state State) (Snapshot, error) {
	if len(state.Pending) > 0 || len(state.Unresolved) > 0 {
		return Snapshot{}, ErrActive
	}
	s := state.clone()
	slices.Sort(s.Interactions)
	if err := s.check(); err != nil {
		return Snapshot{}, err
	}
	if s.size() > MaxSize+MaxSize/2 { // an upper bound: refused before it is built
		return Snapshot{}, ErrTooLarge
	}
	encoded := s.encode()
	if len(encoded) > MaxSize {
		return Snapshot{}, ErrTooLarge
	}
	return Snapshot{state: s, encoded: encoded, digest: sha256.Sum256(encoded)}, nil
}

// Decode reads an encoding; Encoding of the result is the same bytes. It keeps
// nothing of b.
func Decode(b []byte) (Snapshot, error) {
	if len(b) > MaxSize {
		return Snapshot{}, ErrTooLarge
	}
	s, err := decodeState(b)
	if err != nil {
		return Snapshot{}, err
	}
	if err := s.check(); err != nil {
		return Snapshot{}, err
	}
	return Snapshot{state: s, encoded: slices.Clone(b), digest: sha256.Sum256(b)}, nil
}

// Encoding is a copy of the encoded bytes; nil for the zero value.
func (s Snapshot) Encoding() []byte { return slices.Clone(s.encoded) }

// Size is the length of the encoding in bytes; 0 for the zero value.
func (s Snapshot) Size() int { return len(s.encoded) }

// Digest is the SHA-256 of the encoding. It is no proof of origin.
func (s Snapshot) Digest() [sha256.Size]byte { return s.digest }

// RunID is the run's identity.
func (s Snapshot) RunID() string { return s.state.RunID }

// LastSequence is the run's last committed event.
func (s Snapshot) LastSequence() uint64 { return s.state.LastSequence }

// Lifecycle is what may become of the run.
func (s Snapshot) Lifecycle() Lifecycle { return s.state.Lifecycle }

// Plan is the plan's identity; the caller owns it.
func (s Snapshot) Plan() Plan { return s.state.Plan.clone() }

// State is the content; the caller owns it.
func (s Snapshot) State() State { return s.state.clone() }

// clone copies everything that can be shared, and makes empty slices nil, so
// that equal states are deeply equal.
func (s State) clone() State {
	s.Plan = s.Plan.clone()
	s.Interactions = cloned(s.Interactions)
	s.Messages = cloned(s.Messages)
	for i := range s.Messages {
		m := &s.Messages[i]
		m.Parts = cloned(m.Parts)
		for j := range m.Parts {
			m.Parts[j].Data = cloned(m.Parts[j].Data)
		}
	}
	s.Pending, s.Unresolved = nil, nil
	return s
}

func cloned[T any](s []T) []T {
	if len(s) == 0 {
		return nil
	}
	return slices.Clone(s)
}
