//go:build invariants

package invariant

// Enabled is true in builds with the invariants tag.
const Enabled = true
