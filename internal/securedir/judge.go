package securedir

import (
	"errors"
	"io"
	"io/fs"
	"path"
	"strings"
	"syscall"
)

// The judgements. All of them are pure: values in, verdict out.

const (
	dirMode  = 0o700
	fileMode = 0o600

	groupOtherWrite = 0o022
	sticky          = 0o1000
)

// trusted reports whether an owner is root or the user.
func trusted(owner, uid uint32) bool { return owner == 0 || owner == uid }

// judgeAncestor says whether what lies below dir is safe from other users who
// may rename or replace it, as far as dir alone can tell: dir is a directory of
// root or the user that only they can write, or one that is sticky.
func judgeAncestor(dir Stat, uid uint32) error {
	switch {
	case dir.Kind != Directory:
		return ErrUnsafe
	case !trusted(dir.UID, uid):
		return ErrUnsafe
	case dir.Mode&groupOtherWrite != 0 && dir.Mode&sticky == 0:
		return ErrUnsafe
	}
	return nil
}

// judgeStep says whether the step from an ancestor to its child is safe: a
// sticky directory protects the name of the child only from those who do not
// own the child.
func judgeStep(dir, child Stat, uid uint32) error {
	if err := judgeAncestor(dir, uid); err != nil {
		return err
	}
	if child.Kind != Directory {
		return ErrUnsafe
	}
	if dir.Mode&groupOtherWrite != 0 && !trusted(child.UID, uid) {
		return ErrUnsafe
	}
	return nil
}

// judgeLeaf says whether a directory is private: the user's own and exactly
// 0700, all twelve mode bits compared.
func judgeLeaf(leaf Stat, uid uint32) error {
	if leaf.Kind != Directory || leaf.UID != uid || leaf.Mode != dirMode {
		return ErrUnsafe
	}
	return nil
}

// judgeFile says whether an opened file is ours alone: regular, the user's own,
// exactly 0600, and with one name. A file that has lost its name is gone
// rather than unsafe.
func judgeFile(file Stat, uid uint32) error {
	switch {
	case file.Kind != Regular, file.UID != uid, file.Mode != fileMode, file.Links > 1:
		return ErrUnsafe
	case file.Links == 0:
		return ErrChanged
	}
	return nil
}

// FileSystem is a system's number for a type of file system, or its name where
// the system has names.
type FileSystem struct {
	Magic uint32
	Name  string
}

// localMagic lists the Linux file systems whose locks, renames and syncs are
// local and hold; everything else, unknown ones included, is refused.
var localMagic = map[uint32]string{
	0xef53:     "ext4", // and ext2, ext3
	0x58465342: "xfs",
	0x9123683e: "btrfs",
	0x01021994: "tmpfs",
	0xf2f52010: "f2fs",
	0x2fc12fc1: "zfs",
	0xca451a4e: "bcachefs",
	0x794c7630: "overlay",
}

// localName lists the same for systems that name them.
var localName = map[string]bool{"apfs": true, "hfs": true, "NTFS": true, "ReFS": true}

// judgeFileSystem refuses network, user-space and unknown file systems.
func judgeFileSystem(f FileSystem) error {
	if _, ok := localMagic[f.Magic]; (ok && f.Name == "") || localName[f.Name] {
		return nil
	}
	return ErrFileSystem
}

// maxName bounds a file name in a private directory, in bytes.
const maxName = 100

// judgeName refuses every name this package would not have chosen itself:
// lower-case letters, digits, dots and dashes, no two dots in a row, not
// beginning or ending with a dot. That leaves no separator, no parent, no NUL,
// no alternate stream, no short name and no device.
func judgeName(name string) error {
	if name == "" || len(name) > maxName || strings.Contains(name, "..") {
		return ErrName
	}
	for i := range len(name) {
		c := name[i]
		edge := i == 0 || i == len(name)-1
		switch {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9':
		case (c == '-' || c == '.') && !edge:
		default:
			return ErrName
		}
	}
	return nil
}

// splitPath cuts an absolute, clean path into its components. A path with a
// trailing slash, a dot component, an empty component or a NUL is refused: what
// the caller wrote and what would be opened must be the same thing.
func splitPath(p string) (root string, parts []string, err error) {
	if len(p) < 2 || p[0] != '/' || path.Clean(p) != p || strings.ContainsRune(p, 0) || len(p) > 4000 {
		return "", nil, ErrName
	}
	return "/", strings.Split(p[1:], "/"), nil
}

// Class sorts what a system said into what its user can do about it. It names
// no path and no number, so it may travel in messages.
func Class(err error) string {
	for _, c := range append(systemClasses, classes...) {
		if errors.Is(err, c.err) {
			return c.class
		}
	}
	return "input/output"
}

// class is what an error of the system means.
type class struct {
	err   error
	class string
}

var classes = []class{
	{ErrUnsafe, "unsafe"},
	{ErrChanged, "replaced"},
	{ErrName, "name"},
	{ErrFileSystem, "file system"},
	{ErrUnsupported, "unsupported"},
	{ErrLocked, "busy"},
	{syscall.ENOSPC, "full"},
	{syscall.EDQUOT, "full"},
	{syscall.EFBIG, "full"},
	{syscall.EMFILE, "too many files"},
	{syscall.ENFILE, "too many files"},
	{syscall.EROFS, "read-only"},
	{syscall.ENOMEM, "memory"},
	{syscall.ELOOP, "unsafe"}, // a symbolic link in the way
	{syscall.ENOTDIR, "unsafe"},
	{syscall.ENXIO, "unsafe"}, // a FIFO or a socket
	{fs.ErrPermission, "permission"},
	{fs.ErrExist, "exists"},
	{fs.ErrNotExist, "missing"},
	{io.ErrUnexpectedEOF, "short"},
}
