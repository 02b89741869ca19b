package snapshot

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"slices"
)

// Component is the compiled identity of one part of the host that a run
// executes with.
type Component struct {
	Module  string
	Version string
	Source  string
}

func (c Component) compare(o Component) int {
	return cmp.Or(cmp.Compare(c.Module, o.Module), cmp.Compare(c.Version, o.Version), cmp.Compare(c.Source, o.Source))
}

// Definition is a tool as it was leased: what the fingerprint covers.
type Definition struct {
	Name     string
	Contract []byte // the exact schema bytes
}

// Plan is the combined identity of everything a run executes with. It is an
// identity, not a handle: resuming needs a live lease of the same plan.
type Plan struct {
	Components    []Component // sorted, no two equal
	ToolPlan      string      // exact identity of the tool plan
	Compatibility string      // explicit identity; empty: never imported elsewhere
	Fingerprint   [sha256.Size]byte
}

// NewPlan computes the identity. The order of components and definitions does
// not matter; a component or a definition's name given twice is refused.
func NewPlan(components []Component, toolPlan, compatibility string, leased []Definition) (Plan, error) {
	p := Plan{Components: cloned(components), ToolPlan: toolPlan, Compatibility: compatibility}
	slices.SortFunc(p.Components, Component.compare)
	if err := p.checkParts(); err != nil {
		return Plan{}, err
	}
	leased = slices.Clone(leased)
	slices.SortFunc(leased, func(a, b Definition) int { return cmp.Compare(a.Name, b.Name) })
	w := writer{}
	w.string("tidemark.snapshot-plan/v1")
	p.encodeParts(&w)
	w.uint32(uint32(len(leased)))
	for i, d := range leased {
		if !identity(d.Name) || (i > 0 && leased[i-1].Name == d.Name) {
			return Plan{}, invalid("tool definition")
		}
		if len(d.Contract) > MaxSize {
			return Plan{}, ErrTooLarge
		}
		w.string(d.Name)
		w.bytes(d.Contract)
	}
	p.Fingerprint = sha256.Sum256(w.b)
	return p, nil
}

// Equal reports whether two identities are the same in every part.
func (p Plan) Equal(o Plan) bool {
	a, b := writer{}, writer{}
	p.encode(&a)
	o.encode(&b)
	return bytes.Equal(a.b, b.b)
}

func (p Plan) clone() Plan {
	p.Components = cloned(p.Components)
	return p
}

func (p *Plan) check() error {
	if p.Fingerprint == [sha256.Size]byte{} {
		return invalid("plan fingerprint")
	}
	return p.checkParts()
}

func (p *Plan) checkParts() error {
	if len(p.Components) > maxComponents {
		return ErrTooLarge
	}
	for i, c := range p.Components {
		if !identity(c.Module) || !identity(c.Version) || !identity(c.Source) {
			return invalid("component")
		}
		if i > 0 && p.Components[i-1].compare(c) >= 0 {
			return invalid("order of components")
		}
	}
	if !identity(p.ToolPlan) {
		return invalid("tool plan")
	}
	if p.Compatibility != "" && !identity(p.Compatibility) {
		return invalid("compatibility")
	}
	return nil
}
