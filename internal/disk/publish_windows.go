package disk

import (
	"errors"
	"io/fs"
	"unsafe"

	"golang.org/x/sys/windows"
)

// The information classes that x/sys does not name, and their flags.
const fileRenameInformationEx = 65

// publishAt renames without replacing.
func publishAt(dir, file handle, from, to sysName) error {
	return throughName(dir, file, from, func(h handle) error {
		return rename(h, dir, to, windows.FileRenameInformation, 0)
	})
}

// replaceAt renames with POSIX semantics, under which readers of the old file
// keep it, or in the older way, which fails while anybody has it open.
func replaceAt(dir, file handle, from, to sysName) error {
	return throughName(dir, file, from, func(h handle) error {
		const replace = windows.FILE_RENAME_REPLACE_IF_EXISTS
		err := rename(h, dir, to, fileRenameInformationEx, replace|windows.FILE_RENAME_POSIX_SEMANTICS)
		if isUnknownClass(err) {
			err = rename(h, dir, to, windows.FileRenameInformation, replace)
		}
		return err
	})
}

// removeAt unlinks at once where the system can, and with the last handle
// elsewhere.
func removeAt(dir handle, name sysName) (err error) {
	h, err := openFileAt(dir, name, windows.DELETE, windows.FILE_OPEN)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, windows.CloseHandle(h)) }()
	flags := uint32(windows.FILE_DISPOSITION_DELETE | windows.FILE_DISPOSITION_POSIX_SEMANTICS)
	err = setInformation(h, (*byte)(unsafe.Pointer(&flags)), 4, windows.FileDispositionInformationEx)
	if isUnknownClass(err) {
		yes := byte(1)
		err = setInformation(h, &yes, 1, windows.FileDispositionInformation)
	}
	return errno(err)
}

// throughName opens the old name with the right to rename it, which the file's
// own handle need not have, and makes sure that it is the same file.
func throughName(dir, file handle, from sysName, do func(handle) error) (err error) {
	h, err := openFileAt(dir, from, windows.DELETE|windows.FILE_READ_ATTRIBUTES, windows.FILE_OPEN)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, windows.CloseHandle(h)) }()
	want, err := regularIdentity(file)
	if err != nil {
		return err
	}
	if got, err := regularIdentity(h); err != nil {
		return err
	} else if got != want {
		return fs.ErrNotExist
	}
	return errno(do(h))
}

// rename gives the file behind h the name to in the directory.
func rename(h, dir handle, to sysName, class, flags uint32) error {
	var info struct { // FILE_RENAME_INFORMATION
		flags  uint32
		root   handle
		length uint32
		name   [windows.MAX_PATH]uint16
	}
	name := to.Slice()
	if len(name) > len(info.name) {
		return windows.STATUS_OBJECT_NAME_INVALID
	}
	info.flags, info.root, info.length = flags, dir, uint32(2*len(name))
	copy(info.name[:], name)
	return setInformation(h, (*byte)(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)), class)
}

func setInformation(h handle, info *byte, size, class uint32) error {
	var status windows.IO_STATUS_BLOCK
	return windows.NtSetInformationFile(h, &status, info, size, class)
}

// isUnknownClass reports whether the file system does not know an information
// class.
func isUnknownClass(err error) bool {
	return errors.Is(err, windows.STATUS_INVALID_PARAMETER) || errors.Is(err, windows.STATUS_NOT_SUPPORTED) ||
		errors.Is(err, windows.STATUS_INVALID_INFO_CLASS) || errors.Is(err, windows.STATUS_NOT_IMPLEMENTED)
}
