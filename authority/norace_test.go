//go:build !race

package authority

import "time"

// timingBound is how far the medians of failures may lie apart.
const timingBound = 5 * time.Microsecond
