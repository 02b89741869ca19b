//go:build !linux && !darwin && !windows

package securedir

func secretMemory(n int) ([]byte, func()) { return make([]byte, n), func() {} }
