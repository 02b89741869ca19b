//go:build !windows

package securedir

import "testing"

func underWine() bool { return false }

func testHost(*testing.T) (System, error) { return Host() }
