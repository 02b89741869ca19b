//go:build !linux && !darwin && !windows

package securedir

// Host fails closed: nothing here is known to hold on this system.
func Host() (System, error) { return nil, ErrUnsupported }
