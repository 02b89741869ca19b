//go:build race

package pagelog

// raceEnabled says that this build looks for data races, and is slow: what runs
// in one goroutine can be left to the other builds.
const raceEnabled = true
