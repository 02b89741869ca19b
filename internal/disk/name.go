package disk

import (
	"io/fs"
	"strings"
)

// CheckName returns fs.ErrInvalid for a name that is not one plain component
// of a path on every system: empty, ".", "..", or holding a separator, a
// colon (a drive or a stream on Windows) or a NUL byte. Every method that
// takes a name checks it, so no name leads out of its directory.
func CheckName(name string) error {
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\\:\x00") {
		return fs.ErrInvalid
	}
	return nil
}
