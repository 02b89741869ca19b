//go:build !linux

package disk

func share(File, File, int64, int64) error { return ErrNoClone }

func transfer(File, File, int64, int64) (int64, error) { return 0, ErrNoClone }

func nextData(File, int64) (int64, int64, error) { return 0, 0, ErrNoClone }
