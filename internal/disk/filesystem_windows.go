package disk

import (
	"unsafe"

	"golang.org/x/sys/windows"
)

// fileSystemOf asks the volume for its name. Only a remote file can name the
// protocol it is remote through. ReFS writes metadata elsewhere each time, and
// data too where integrity streams are on.
func fileSystemOf(h handle) (FileSystem, error) {
	var name [windows.MAX_PATH + 1]uint16
	err := windows.GetVolumeInformationByHandle(h, nil, 0, nil, nil, nil, &name[0], uint32(len(name)))
	if err != nil {
		return FileSystem{}, err
	}
	var protocol [128]byte // FILE_REMOTE_PROTOCOL_INFO is 116 bytes long
	remote := windows.GetFileInformationByHandleEx(h, windows.FileRemoteProtocolInfo,
		(*byte)(unsafe.Pointer(&protocol)), uint32(len(protocol))) == nil
	text := windows.UTF16ToString(name[:])
	return FileSystem{Name: text, Network: remote, CopyOnWrite: text == "ReFS"}, nil
}
