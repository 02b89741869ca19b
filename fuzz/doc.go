// Package fuzz attacks whole files.
//
// The fuzzer does not write files: nearly all of them would fail at the first
// sum. It writes small programs of edits (program_test.go), which are run over
// logs that the engine itself wrote (logs_test.go): bits flipped, stretches
// zeroed or copied, groups of other epochs and other logs spliced in, slots and
// headers changed and given sums that hold again. What the engine makes of the
// result is held against what was known of the log before (examine_test.go).
//
// The package has no code of its own besides its tests; the command mutants
// below it proves the tests of the whole module.
package fuzz
