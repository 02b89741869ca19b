// Package invariant switches on checks that are too dear for production. Build
// with -tags=invariants to get them; the constant lets the compiler drop the
// rest.
package invariant

import "fmt"

// Check panics with "internal error" when ok is false in an invariants build.
// A violation is always our own bug, never the fault of a file or a caller.
func Check(ok bool, format string, args ...any) {
	if Enabled && !ok {
		panic("internal error: " + fmt.Sprintf(format, args...))
	}
}

// Poison overwrites b in an invariants build, so that a caller who kept a
// slice beyond its documented lifetime reads nonsense instead of luck.
func Poison(b []byte) {
	if !Enabled {
		return
	}
	for i := range b {
		b[i] = 0xDB
	}
}
