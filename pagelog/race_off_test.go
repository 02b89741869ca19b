//go:build !race

package pagelog

const raceEnabled = false
