package securedir

import (
	"errors"
	"io"
	"os"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
)

// host is Windows. Names are opened relative to handles, and a reparse point is
// opened itself, never what it leads to. What owners and access control lists
// come to is decided by judge, which is ownership outside of tests.
type host struct {
	user    string // SID of the process's user, as text
	private [2]*windows.SECURITY_DESCRIPTOR
	judge   func(raw []byte, user string, dir bool) (uid, mode uint32)
}

// Host is the operating system's System.
func Host() (System, error) {
	h := &host{judge: ownership}
	user, err := windows.GetCurrentProcessToken().GetTokenUser()
	if err != nil {
		return nil, err
	}
	h.user = user.User.Sid.String()
	for i, dir := range []bool{false, true} {
		if h.private[i], err = windows.SecurityDescriptorFromString(privateSDDL(h.user, dir)); err != nil {
			return nil, err
		}
	}
	return h, nil
}

func (*host) UID() uint32 { return ownerUser }

func (*host) Split(path string) (root string, parts []string, err error) {
	return splitWindowsPath(path)
}

const (
	shareAll = windows.FILE_SHARE_READ | windows.FILE_SHARE_WRITE | windows.FILE_SHARE_DELETE

	walkAccess = windows.FILE_TRAVERSE | windows.FILE_READ_ATTRIBUTES | windows.READ_CONTROL
)

// Root refuses volumes that are not a disk of this machine.
func (*host) Root(root string) (FD, error) {
	p, err := windows.UTF16PtrFromString(root)
	if err != nil {
		return 0, ErrName
	}
	switch windows.GetDriveType(p) {
	case windows.DRIVE_FIXED, windows.DRIVE_REMOVABLE, windows.DRIVE_RAMDISK:
	default:
		return 0, ErrFileSystem
	}
	h, err := windows.CreateFile(p, walkAccess, shareAll, nil, windows.OPEN_EXISTING,
		windows.FILE_FLAG_BACKUP_SEMANTICS|windows.FILE_FLAG_OPEN_REPARSE_POINT, 0)
	return FD(h), err
}

// open opens or creates a name relative to a directory, and with the private
// descriptor if it creates.
func (s *host) open(dir FD, name string, access, disposition, options uint32) (FD, error) {
	n, err := windows.NewNTUnicodeString(name)
	if err != nil {
		return 0, ErrName
	}
	attributes := windows.OBJECT_ATTRIBUTES{
		RootDirectory: windows.Handle(dir), ObjectName: n, Attributes: windows.OBJ_CASE_INSENSITIVE,
	}
	attributes.Length = uint32(unsafe.Sizeof(attributes))
	if disposition == windows.FILE_CREATE {
		attributes.SecurityDescriptor = s.private[0]
		if options&windows.FILE_DIRECTORY_FILE != 0 {
			attributes.SecurityDescriptor = s.private[1]
		}
	}
	var h windows.Handle
	var status windows.IO_STATUS_BLOCK
	err = windows.NtCreateFile(&h, access|windows.SYNCHRONIZE, &attributes, &status, nil, windows.FILE_ATTRIBUTE_NORMAL,
		shareAll, disposition, options|windows.FILE_OPEN_REPARSE_POINT|windows.FILE_SYNCHRONOUS_IO_NONALERT, 0, 0)
	switch {
	case errors.Is(err, windows.STATUS_NOT_A_DIRECTORY), errors.Is(err, windows.STATUS_FILE_IS_A_DIRECTORY):
		return 0, ErrUnsafe
	case err != nil:
		return 0, errno(err)
	}
	return FD(h), nil
}

// errno turns a status of the native interface into an error that errors.Is
// understands.
func errno(err error) error {
	var status windows.NTStatus
	if errors.As(err, &status) {
		return status.Errno()
	}
	return err
}

func (s *host) Walk(dir FD, name string) (FD, error) {
	return s.open(dir, name, walkAccess, windows.FILE_OPEN, windows.FILE_DIRECTORY_FILE)
}

// Reopen asks for the right to add files, without which the system flushes no
// directory.
func (s *host) Reopen(dir FD) (FD, error) {
	const access = windows.FILE_GENERIC_READ | windows.FILE_GENERIC_WRITE | windows.FILE_TRAVERSE
	return s.open(dir, "", access, windows.FILE_OPEN, windows.FILE_DIRECTORY_FILE)
}

func (s *host) Mkdir(dir FD, name string) error {
	fd, err := s.open(dir, name, walkAccess, windows.FILE_CREATE, windows.FILE_DIRECTORY_FILE)
	if err != nil {
		return err
	}
	return s.Close(fd)
}

func (s *host) Open(dir FD, name string, how How) (FD, error) {
	access, disposition := uint32(windows.FILE_GENERIC_READ), uint32(windows.FILE_OPEN)
	switch how {
	case ReadWrite:
		access |= windows.FILE_GENERIC_WRITE
	case Exclusive:
		access |= windows.FILE_GENERIC_WRITE
		disposition = windows.FILE_CREATE
	case Read, NoReplace, ReplaceOld:
	}
	return s.open(dir, name, access, disposition, windows.FILE_NON_DIRECTORY_FILE)
}

func (s *host) Stat(fd FD) (Stat, error) {
	h := windows.Handle(fd)
	var info windows.ByHandleFileInformation
	if err := windows.GetFileInformationByHandle(h, &info); err != nil {
		return Stat{}, err
	}
	st := Stat{
		Device: uint64(info.VolumeSerialNumber),
		Inode:  uint64(info.FileIndexHigh)<<32 | uint64(info.FileIndexLow),
		Birth:  info.CreationTime.Nanoseconds(),
		Kind:   Regular,
		Links:  uint64(info.NumberOfLinks),
		Size:   int64(info.FileSizeHigh)<<32 | int64(info.FileSizeLow),
	}
	dir := info.FileAttributes&windows.FILE_ATTRIBUTE_DIRECTORY != 0
	switch {
	case info.FileAttributes&(windows.FILE_ATTRIBUTE_REPARSE_POINT|windows.FILE_ATTRIBUTE_DEVICE) != 0:
		st.Kind = Other
	case dir:
		st.Kind = Directory
	default:
		gone, err := deletePending(h)
		if err != nil {
			return Stat{}, err
		}
		if gone && st.Links > 0 {
			st.Links--
		}
	}
	raw, err := security(h)
	if err != nil {
		return Stat{}, err
	}
	st.UID, st.Mode = s.judge(raw, s.user, dir)
	return st, nil
}

// deletePending reports a file that loses its name with its last handle.
func deletePending(h windows.Handle) (bool, error) {
	var info struct { // FILE_STANDARD_INFO
		_                        [2]int64
		_                        uint32
		deletePending, directory bool
	}
	err := windows.GetFileInformationByHandleEx(h, windows.FileStandardInfo, (*byte)(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)))
	return info.deletePending, err
}

// security is the owner and the list of an object, as bytes.
func security(h windows.Handle) ([]byte, error) {
	d, err := windows.GetSecurityInfo(h, windows.SE_FILE_OBJECT, windows.OWNER_SECURITY_INFORMATION|windows.DACL_SECURITY_INFORMATION)
	if err != nil {
		return nil, err
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(d)), d.Length()), nil
}

func (s *host) StatAt(dir FD, name string) (Stat, error) {
	fd, err := s.open(dir, name, windows.FILE_READ_ATTRIBUTES|windows.READ_CONTROL, windows.FILE_OPEN, 0)
	if errors.Is(err, windows.ERROR_DELETE_PENDING) { // as good as gone
		err = windows.ERROR_FILE_NOT_FOUND
	}
	if err != nil {
		return Stat{}, err
	}
	st, err := s.Stat(fd)
	return st, errors.Join(err, s.Close(fd))
}

// FileSystem is the name of the volume's file system. Whether the volume is of
// this machine is asked once more of the handle: a drive letter may lead to a
// share.
func (*host) FileSystem(fd FD) (FileSystem, error) {
	var name [windows.MAX_PATH + 1]uint16
	err := windows.GetVolumeInformationByHandle(windows.Handle(fd), nil, 0, nil, nil, nil, &name[0], uint32(len(name)))
	if err != nil {
		return FileSystem{}, err
	}
	var remote [256]byte // FILE_REMOTE_PROTOCOL_INFO; the system has it for remote files only
	if windows.GetFileInformationByHandleEx(windows.Handle(fd), windows.FileRemoteProtocolInfo, &remote[0], uint32(len(remote))) == nil {
		return FileSystem{Name: "network"}, nil
	}
	return FileSystem{Name: windows.UTF16ToString(name[:])}, nil
}

// Chmod has nothing to set: what is created is private from its creation on.
// It proves so by the handle.
func (s *host) Chmod(fd FD, mode uint32) error {
	st, err := s.Stat(fd)
	if err == nil && (st.Mode != mode || st.UID != ownerUser) {
		err = ErrUnsafe
	}
	return err
}

func overlapped(off int64) *windows.Overlapped {
	return &windows.Overlapped{Offset: uint32(off), OffsetHigh: uint32(off >> 32)}
}

func (*host) ReadAt(fd FD, p []byte, off int64) (int, error) {
	n := uint32(0)
	err := windows.ReadFile(windows.Handle(fd), p, &n, overlapped(off))
	if errors.Is(err, windows.ERROR_HANDLE_EOF) || errors.Is(err, io.EOF) {
		return 0, nil
	}
	return int(n), err
}

func (*host) WriteAt(fd FD, p []byte, off int64) (int, error) {
	n := uint32(0)
	err := windows.WriteFile(windows.Handle(fd), p, &n, overlapped(off))
	return int(n), err
}

func (*host) Sync(fd FD) error { return windows.FlushFileBuffers(windows.Handle(fd)) }

func (s *host) DataSync(fd FD) error { return s.Sync(fd) }

// The information class that x/sys does not name.
const fileRenameInformationEx = 65

// Rename opens the old name with the right to rename it. Replacing has POSIX
// semantics where the system knows them, so that who has the old file open
// keeps it; elsewhere it fails while anybody has. The handle is never used to
// delete: once the file has been published its name is all that there is of it.
func (s *host) Rename(dir FD, from, to string, how How) error {
	name, err := windows.NewNTUnicodeString(to)
	if err != nil {
		return ErrName
	}
	return patiently(func() (err error) {
		fd, err := s.open(dir, from, windows.DELETE|windows.FILE_READ_ATTRIBUTES, windows.FILE_OPEN, 0)
		if err != nil {
			return err
		}
		h := windows.Handle(fd)
		defer func() { err = errors.Join(err, s.Close(fd)) }()
		if how == NoReplace {
			return errno(rename(h, windows.Handle(dir), name, windows.FileRenameInformation, 0))
		}
		const replace = windows.FILE_RENAME_REPLACE_IF_EXISTS
		err = rename(h, windows.Handle(dir), name, fileRenameInformationEx, replace|windows.FILE_RENAME_POSIX_SEMANTICS)
		if isUnknownClass(err) {
			err = rename(h, windows.Handle(dir), name, windows.FileRenameInformation, replace)
		}
		return errno(err)
	})
}

func rename(h, dir windows.Handle, to *windows.NTUnicodeString, class, flags uint32) error {
	var info struct { // FILE_RENAME_INFORMATION
		flags  uint32
		root   windows.Handle
		length uint32
		name   [windows.MAX_PATH]uint16
	}
	name := to.Slice()
	if len(name) > len(info.name) {
		return ErrName
	}
	info.flags, info.root, info.length = flags, dir, uint32(2*len(name))
	copy(info.name[:], name)
	return setInformation(h, (*byte)(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)), class)
}

func setInformation(h windows.Handle, info *byte, size, class uint32) error {
	var status windows.IO_STATUS_BLOCK
	return windows.NtSetInformationFile(h, &status, info, size, class)
}

// isUnknownClass reports that a file system does not know an information class.
func isUnknownClass(err error) bool {
	return errors.Is(err, windows.STATUS_INVALID_PARAMETER) || errors.Is(err, windows.STATUS_NOT_SUPPORTED) ||
		errors.Is(err, windows.STATUS_INVALID_INFO_CLASS) || errors.Is(err, windows.STATUS_NOT_IMPLEMENTED)
}

// patiently tries again what a scanner that has a file open is in the way of:
// nothing has changed then. Ten tries take about half a second.
func patiently(try func() error) error {
	for pause := time.Millisecond; ; pause *= 2 {
		err := try()
		held := errors.Is(err, windows.ERROR_SHARING_VIOLATION) || errors.Is(err, windows.ERROR_ACCESS_DENIED) ||
			errors.Is(err, windows.ERROR_USER_MAPPED_FILE)
		if !held || pause > 256*time.Millisecond {
			return err
		}
		<-time.After(pause)
	}
}

func (s *host) Unlink(dir FD, name string) error {
	return s.remove(dir, name, windows.FILE_NON_DIRECTORY_FILE)
}

func (s *host) Rmdir(dir FD, name string) error {
	return s.remove(dir, name, windows.FILE_DIRECTORY_FILE)
}

// remove unlinks at once where the system can, and with the last handle
// elsewhere.
func (s *host) remove(dir FD, name string, options uint32) error {
	return patiently(func() (err error) {
		fd, err := s.open(dir, name, windows.DELETE, windows.FILE_OPEN, options)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, s.Close(fd)) }()
		flags := uint32(windows.FILE_DISPOSITION_DELETE | windows.FILE_DISPOSITION_POSIX_SEMANTICS)
		err = setInformation(windows.Handle(fd), (*byte)(unsafe.Pointer(&flags)), 4, windows.FileDispositionInformationEx)
		if isUnknownClass(err) {
			yes := byte(1)
			err = setInformation(windows.Handle(fd), &yes, 1, windows.FileDispositionInformation)
		}
		return errno(err)
	})
}

// Names lists through a handle of its own, whose position nobody shares.
func (s *host) Names(dir FD) ([]string, error) {
	fd, err := s.open(dir, "", windows.FILE_LIST_DIRECTORY, windows.FILE_OPEN, windows.FILE_DIRECTORY_FILE)
	if err != nil {
		return nil, err
	}
	list := os.NewFile(uintptr(fd), "directory")
	names, err := list.Readdirnames(-1)
	return names, errors.Join(err, list.Close())
}

// Locks are mandatory here, so they lie where no data ever does. Offsets of range
// locks are 0 or odd, so the whole-file lock has a byte that is none of theirs.
const (
	firstRange = 1 << 62
	wholeFile  = firstRange + 2
)

func (s *host) Flock(fd FD, op Lock) error { return s.lockByte(fd, wholeFile, op) }

func (s *host) RangeLock(fd FD, off int64, op Lock) error { return s.lockByte(fd, firstRange+off, op) }

// lockByte works on one byte. A probe takes the byte shared for a moment, since
// the system cannot ask without taking: probes do not meet, but an exclusive
// lock that is tried in that moment is refused.
func (*host) lockByte(fd FD, off int64, op Lock) error {
	h := windows.Handle(fd)
	if op == Unlock {
		err := windows.UnlockFileEx(h, 0, 1, 0, overlapped(off))
		if errors.Is(err, windows.ERROR_NOT_LOCKED) {
			err = nil
		}
		return err
	}
	flags := uint32(windows.LOCKFILE_FAIL_IMMEDIATELY)
	if op == LockExclusive {
		flags |= windows.LOCKFILE_EXCLUSIVE_LOCK
	}
	err := windows.LockFileEx(h, flags, 0, 1, 0, overlapped(off))
	switch {
	case errors.Is(err, windows.ERROR_LOCK_VIOLATION), errors.Is(err, windows.ERROR_IO_PENDING):
		return ErrLocked
	case err == nil && op == LockProbe:
		return windows.UnlockFileEx(h, 0, 1, 0, overlapped(off))
	}
	return err
}

func (*host) Close(fd FD) error { return windows.CloseHandle(windows.Handle(fd)) }

// Bound compares with the path of the handle: a drive letter may stand for a
// directory elsewhere, and a name may have been one of two.
func (*host) Bound(fd FD, path string) error {
	var b [4096]uint16
	n, err := windows.GetFinalPathNameByHandle(windows.Handle(fd), &b[0], uint32(len(b)), 0)
	if err != nil {
		return err
	}
	final := windows.UTF16ToString(b[:min(int(n), len(b))])
	if !strings.EqualFold(strings.TrimPrefix(final, `\\?\`), path) {
		return ErrChanged
	}
	return nil
}
