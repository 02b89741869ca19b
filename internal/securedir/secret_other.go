//go:build !linux && !darwin

package securedir

func secretMemory(n int) ([]byte, func()) { return make([]byte, n), func() {} }
