package disk

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// fileSystems names the ones whose nature matters, by the magic number that
// statfs reports.
var fileSystems = map[uint32]FileSystem{
	0xEF53:     {Name: "ext4"}, // ext2 and ext3 as well
	0x58465342: {Name: "xfs"},
	0xF2F52010: {Name: "f2fs"},
	0x3153464A: {Name: "jfs"},
	0x52654973: {Name: "reiserfs"},
	0x01021994: {Name: "tmpfs"},
	0x858458F6: {Name: "ramfs"},
	0x794C7630: {Name: "overlay"},
	0x4D44:     {Name: "vfat"},
	0x2011BAB0: {Name: "exfat"},
	0x7366746E: {Name: "ntfs3"},
	0xF15F:     {Name: "ecryptfs"},

	0x9123683E: {Name: "btrfs", CopyOnWrite: true},
	0x2FC12FC1: {Name: "zfs", CopyOnWrite: true},
	0xCA451A4E: {Name: "bcachefs", CopyOnWrite: true},
	0x3434:     {Name: "nilfs2", CopyOnWrite: true},

	0x6969:     {Name: "nfs", Network: true},
	0x517B:     {Name: "smb", Network: true},
	0xFF534D42: {Name: "cifs", Network: true},
	0xFE534D42: {Name: "smb2", Network: true},
	0x01021997: {Name: "9p", Network: true},
	0x65735546: {Name: "fuse", Network: true}, // virtiofs as well
	0x00C36400: {Name: "ceph", Network: true},
	0x5346414F: {Name: "openafs", Network: true},
	0x6B414653: {Name: "afs", Network: true},
	0x01161970: {Name: "gfs2", Network: true},
	0x0BD00BD0: {Name: "lustre", Network: true},
	0x7461636F: {Name: "ocfs2", Network: true},
	0x73757245: {Name: "coda", Network: true},
	0x564C:     {Name: "ncp", Network: true},
	0x47504653: {Name: "gpfs", Network: true},
	0x19830326: {Name: "beegfs", Network: true},
	0x20030528: {Name: "orangefs", Network: true},
	0xAAD7AAEA: {Name: "panfs", Network: true},
	0x786F4256: {Name: "vboxsf", Network: true},
	0xBACBACBC: {Name: "vmhgfs", Network: true},
}

func fileSystemOf(fd handle) (FileSystem, error) {
	var st unix.Statfs_t
	if err := retry(func() error { return unix.Fstatfs(fd, &st) }); err != nil {
		return FileSystem{}, err
	}
	return fileSystemByMagic(uint32(st.Type)), nil
}

func fileSystemByMagic(magic uint32) FileSystem {
	if known, ok := fileSystems[magic]; ok {
		return known
	}
	return FileSystem{Name: fmt.Sprintf("file system 0x%x", magic)}
}
