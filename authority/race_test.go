//go:build race

package authority

import "time"

// timingBound is meaningless under the race detector; it only catches hangs.
const timingBound = time.Millisecond
