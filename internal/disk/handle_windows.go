package disk

import (
	"errors"
	"os"
	"unsafe"

	"golang.org/x/sys/windows"
)

// handle is a Windows handle, never inherited by child processes.
type handle = windows.Handle

// sysName is a name as the system takes it.
type sysName = *windows.NTUnicodeString

func encodeName(name string) (sysName, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	return windows.NewNTUnicodeString(name)
}

// identity tells files apart. It is unique as long as a handle is open.
type identity struct {
	volume uint32
	index  uint64
}

const shareAll = windows.FILE_SHARE_READ | windows.FILE_SHARE_WRITE | windows.FILE_SHARE_DELETE

// openDirectory asks for write access, without which the system flushes no
// directory, and does without where only reading is allowed.
func openDirectory(path string) (handle, error) {
	p, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return windows.InvalidHandle, err
	}
	open := func(access uint32) (handle, error) {
		return windows.CreateFile(p, access, shareAll, nil, windows.OPEN_EXISTING,
			windows.FILE_FLAG_BACKUP_SEMANTICS, 0)
	}
	h, err := open(windows.GENERIC_READ | windows.GENERIC_WRITE)
	if errors.Is(err, windows.ERROR_ACCESS_DENIED) {
		h, err = open(windows.GENERIC_READ)
	}
	if err != nil {
		return windows.InvalidHandle, err
	}
	var info windows.ByHandleFileInformation
	if err = windows.GetFileInformationByHandle(h, &info); err == nil &&
		info.FileAttributes&windows.FILE_ATTRIBUTE_DIRECTORY == 0 {
		err = windows.ERROR_DIRECTORY
	}
	if err != nil {
		return windows.InvalidHandle, errors.Join(err, windows.CloseHandle(h))
	}
	return h, nil
}

// openAt opens or creates a name relative to the directory. A reparse point is
// opened itself, not what it leads to, so that it can be recognised.
func openAt(dir handle, name sysName, access, disposition, options uint32) (handle, error) {
	attributes := windows.OBJECT_ATTRIBUTES{
		RootDirectory: dir,
		ObjectName:    name,
		Attributes:    windows.OBJ_CASE_INSENSITIVE,
	}
	attributes.Length = uint32(unsafe.Sizeof(attributes))
	var h handle
	var status windows.IO_STATUS_BLOCK
	err := windows.NtCreateFile(&h, access|windows.SYNCHRONIZE, &attributes, &status, nil,
		windows.FILE_ATTRIBUTE_NORMAL, shareAll, disposition,
		options|windows.FILE_OPEN_REPARSE_POINT|windows.FILE_SYNCHRONOUS_IO_NONALERT, 0, 0)
	if err != nil {
		return windows.InvalidHandle, err
	}
	return h, nil
}

// errno turns a status of the native interface into an error of the kind that
// everything else returns and errors.Is understands.
func errno(err error) error {
	var status windows.NTStatus
	if errors.As(err, &status) {
		return status.Errno()
	}
	return err
}

func openRegular(dir handle, name sysName, access Access) (handle, error) {
	want := uint32(windows.FILE_GENERIC_READ)
	if access == ReadWrite {
		want |= windows.FILE_GENERIC_WRITE
	}
	return openFileAt(dir, name, want, windows.FILE_OPEN)
}

func createRegular(dir handle, name sysName) (handle, error) {
	const want = windows.FILE_GENERIC_READ | windows.FILE_GENERIC_WRITE
	return openFileAt(dir, name, want, windows.FILE_CREATE)
}

// openFileAt opens a name that must not be a directory.
func openFileAt(dir handle, name sysName, access, disposition uint32) (handle, error) {
	h, err := openAt(dir, name, access, disposition, windows.FILE_NON_DIRECTORY_FILE)
	if errors.Is(err, windows.STATUS_FILE_IS_A_DIRECTORY) {
		return h, notRegular("directory")
	}
	return h, errno(err)
}

// regularIdentity refuses everything but a regular file.
func regularIdentity(h handle) (identity, error) {
	kind, err := windows.GetFileType(h)
	if err != nil {
		return identity{}, err
	}
	if kind != windows.FILE_TYPE_DISK {
		return identity{}, notRegular("device or pipe")
	}
	var info windows.ByHandleFileInformation
	if err := windows.GetFileInformationByHandle(h, &info); err != nil {
		return identity{}, err
	}
	return identityOf(&info), checkRegular(info.FileAttributes)
}

// directoryIdentity tells one directory from another.
func directoryIdentity(h handle) (identity, error) {
	var info windows.ByHandleFileInformation
	if err := windows.GetFileInformationByHandle(h, &info); err != nil {
		return identity{}, err
	}
	return identityOf(&info), nil
}

func identityOf(info *windows.ByHandleFileInformation) identity {
	index := uint64(info.FileIndexHigh)<<32 | uint64(info.FileIndexLow)
	return identity{volume: info.VolumeSerialNumber, index: index}
}

// checkRegular names what the attributes say instead of "regular file". Every
// reparse point is refused: a symbolic link, a junction, and also the ones of
// cloud storage, behind which no file need be.
func checkRegular(attributes uint32) error {
	switch {
	case attributes&windows.FILE_ATTRIBUTE_REPARSE_POINT != 0:
		return notRegular("symbolic link or other reparse point")
	case attributes&windows.FILE_ATTRIBUTE_DIRECTORY != 0:
		return notRegular("directory")
	case attributes&windows.FILE_ATTRIBUTE_DEVICE != 0:
		return notRegular("device")
	}
	return nil
}

// statHandle reports no links for a file that is about to be deleted, which
// happens when its last handle is closed.
func statHandle(h handle) (Info, error) {
	var info struct { // FILE_STANDARD_INFO
		allocationSize, endOfFile int64
		links                     uint32
		deletePending, directory  bool
	}
	err := windows.GetFileInformationByHandleEx(h, windows.FileStandardInfo,
		(*byte)(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)))
	if err != nil {
		return Info{}, err
	}
	if info.deletePending && info.links > 0 {
		info.links--
	}
	return Info{Size: info.endOfFile, Links: uint64(info.links)}, nil
}

func truncate(h handle, size int64) error { return windows.Ftruncate(h, size) }

// namesIn lists through a handle of its own, whose position nobody shares.
func namesIn(dir handle, path string) ([]string, error) {
	h, err := openAt(dir, &windows.NTUnicodeString{}, windows.FILE_LIST_DIRECTORY,
		windows.FILE_OPEN, windows.FILE_DIRECTORY_FILE)
	if err != nil {
		return nil, errno(err)
	}
	list := os.NewFile(uintptr(h), path)
	names, err := list.Readdirnames(-1)
	return names, errors.Join(err, list.Close())
}

func closeHandle(h handle) error { return windows.CloseHandle(h) }

// isNoSpace reports whether a system error means that space, quota or the file
// size limit is exhausted.
func isNoSpace(err error) bool {
	return errors.Is(err, windows.ERROR_DISK_FULL) || errors.Is(err, windows.ERROR_HANDLE_DISK_FULL) ||
		errors.Is(err, windows.ERROR_DISK_QUOTA_EXCEEDED) || errors.Is(err, windows.ERROR_FILE_TOO_LARGE)
}
