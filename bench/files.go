package bench

import (
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Record fills b with bytes that no compressor shortens, different for every
// seed; the first eight are the seed itself, so that a reader can tell which
// record it got. It returns b.
func Record(b []byte, seed uint64) []byte {
	x := seed*0x9E3779B97F4A7C15 + 0xD1B54A32D192ED03
	for i := range b {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		b[i] = byte(x >> 24)
	}
	if len(b) >= 8 {
		binary.LittleEndian.PutUint64(b, seed)
	}
	return b
}

// syncTree makes every file under dir durable, for peers that have no call to
// do it themselves once their own syncing is switched off.
func syncTree(dir string) error {
	return filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // the peer removed it meanwhile
		}
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		f, err := os.OpenFile(name, os.O_RDWR, 0)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		return closeWith(unix.Fdatasync(int(f.Fd())), f)
	})
}

// closeWith closes all and joins what goes wrong to err.
func closeWith(err error, all ...io.Closer) error {
	for _, c := range all {
		err = errors.Join(err, c.Close())
	}
	return err
}

// roundUp returns the smallest multiple of unit not below n.
func roundUp(n, unit int64) int64 { return (n + unit - 1) / unit * unit }

// grow returns a slice of n bytes, in b's memory if it is large enough.
func grow(b []byte, n int) []byte {
	if cap(b) < n {
		return make([]byte, n)
	}
	return b[:n]
}

// key is a record's number as a key that sorts by number.
func key(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }
