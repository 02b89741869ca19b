//go:build !linux

package disk

func watch(File) (<-chan struct{}, func(), error) { return nil, nil, ErrNoWatch }
