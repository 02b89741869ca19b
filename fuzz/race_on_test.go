//go:build race

package fuzz

// raceFactor is how much more a build with the race detector may allocate.
const raceFactor = 16
