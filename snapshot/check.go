package snapshot

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits on counts; each is checked before anything is allocated for it.
const (
	maxID           = 128 // bytes
	maxComponents   = 1 << 12
	maxInteractions = 1 << 16
	maxMessages     = 1 << 16
	maxParts        = 1 << 10 // of one message
)

func invalid(what string) error { return fmt.Errorf("%w: %s", ErrInvalid, what) }

// CheckRunID refuses what cannot identify a run: an empty or long one, one that
// is not UTF-8, one with control characters or with space at an end.
func CheckRunID(id string) error {
	if !identity(id) {
		return invalid("run identity")
	}
	return nil
}

func identity(id string) bool {
	if id == "" || len(id) > maxID || !utf8.ValidString(id) || strings.TrimSpace(id) != id {
		return false
	}
	return !strings.ContainsFunc(id, func(r rune) bool { return unicode.IsControl(r) || r == utf8.RuneError })
}

// check is every rule of a snapshot but its size.
func (s *State) check() error {
	switch {
	case s.Lifecycle == 0:
		return ErrActive
	case s.Lifecycle > Cancelled:
		return invalid("lifecycle")
	case !identity(s.RunID):
		return invalid("run identity")
	case !identity(s.Definition):
		return invalid("definition")
	case !identity(s.Model):
		return invalid("model")
	case s.TurnLimit == 0 || s.Turns > s.TurnLimit:
		return invalid("turns")
	case s.LastSequence == 0:
		return invalid("last sequence")
	}
	if err := s.Plan.check(); err != nil {
		return err
	}
	if len(s.Interactions) > maxInteractions {
		return ErrTooLarge
	}
	for i, id := range s.Interactions {
		if !identity(id) || (i > 0 && s.Interactions[i-1] >= id) {
			return invalid("interactions")
		}
	}
	return checkHistory(s.Messages)
}

// checkHistory refuses repeated identities, calls without a result and results
// without a call.
func checkHistory(messages []Message) error {
	if len(messages) > maxMessages {
		return ErrTooLarge
	}
	ids := make(map[string]bool, len(messages))
	open := map[string]bool{} // calls seen; true until answered
	for i := range messages {
		m := &messages[i]
		if !identity(m.ID) || ids[m.ID] {
			return invalid("message identity")
		}
		ids[m.ID] = true
		if len(m.Parts) > maxParts {
			return ErrTooLarge
		}
		if len(m.Parts) == 0 {
			return invalid("message without parts")
		}
		for j := range m.Parts {
			if err := checkPart(m.Role, &m.Parts[j], open); err != nil {
				return err
			}
		}
	}
	for _, unanswered := range open {
		if unanswered {
			return invalid("tool call without result")
		}
	}
	return nil
}

// allowed says which parts a role may have.
var allowed = map[Role][]PartKind{
	System:    {Text},
	User:      {Text, Extension},
	Assistant: {Text, ToolCall, Extension},
	Tool:      {ToolResult},
}

func checkPart(role Role, p *Part, open map[string]bool) error {
	fits := false
	for _, kind := range allowed[role] {
		fits = fits || kind == p.Kind
	}
	if !fits {
		return invalid("role")
	}
	hasCall := p.Kind == ToolCall || p.Kind == ToolResult
	hasName := p.Kind == ToolCall || p.Kind == Extension
	switch {
	case hasCall != (p.Call != "") || (hasCall && !identity(p.Call)):
		return invalid("call identity")
	case hasName != (p.Name != "") || (hasName && !identity(p.Name)):
		return invalid("part name")
	case p.Failed && p.Kind != ToolResult:
		return invalid("failure mark")
	case p.Kind == Text && !utf8.Valid(p.Data):
		return invalid("text")
	}
	return match(p, open)
}

func match(p *Part, open map[string]bool) error {
	unanswered, seen := open[p.Call]
	switch p.Kind {
	case ToolCall:
		if seen {
			return invalid("repeated call")
		}
		open[p.Call] = true
	case ToolResult:
		if !unanswered {
			return invalid("result without call")
		}
		open[p.Call] = false
	case Text, Extension:
	}
	return nil
}
