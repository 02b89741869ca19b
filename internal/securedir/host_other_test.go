//go:build !windows

package securedir

import "testing"

func testHost(*testing.T) (System, error) { return Host() }
