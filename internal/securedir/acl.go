package securedir

import (
	"encoding/binary"
	"strconv"
	"strings"
)

// What access control lists come to, as pure functions over the bytes that the
// system gives: no system is needed to test them. Their verdict is an owner and
// a mode, so that one set of judgements (judge.go) holds everywhere: private is
// 0700 or 0600, safe from others 0755, and anything else 0777.

// Owners as they come out of a security descriptor.
const (
	ownerSystem uint32 = 0 // as good as root
	ownerUser   uint32 = 1
	ownerOther  uint32 = 2
)

// trustedSIDs own the volume and the system's own directories.
var trustedSIDs = map[string]bool{
	"S-1-5-18":     true, // SYSTEM
	"S-1-5-32-544": true, // Administrators
	"S-1-5-80-956008885-3418522649-1831038044-1853292631-2271478464": true, // TrustedInstaller
}

const ownerRightsSID = "S-1-3-4" // whoever owns the object

// Rights and flags of a Windows access control entry.
const (
	rightDeleteChild = 0x40
	rightDelete      = 0x10000
	rightWriteDAC    = 0x40000
	rightWriteOwner  = 0x80000
	rightMaximum     = 0x2000000
	rightGenericAll  = 0x10000000
	rightsOfFile     = 0x1f01ff // all there are

	// rightsToReplace let their holder put something else in a name's place,
	// or give himself the right to.
	rightsToReplace = rightDeleteChild | rightDelete | rightWriteDAC | rightWriteOwner | rightMaximum | rightGenericAll

	inheritFlags = 0x3 // by files and directories below
	inheritOnly  = 0x8

	entryAllows = 0
	entryDenies = 1
)

// descriptor is a parsed security descriptor.
type descriptor struct {
	owner     string // SID as text
	protected bool   // inherits nothing from above
	null      bool   // no list at all: everything is allowed to everyone
	entries   []entry
}

// entry is one entry of a list, of one of the two plain kinds. odd is any other
// kind: object, callback, compound, and what is not known yet.
type entry struct {
	odd   bool
	deny  bool
	flags byte
	mask  uint32
	who   string
}

// parseDescriptor reads a self-relative security descriptor. What does not fit
// together in any way is refused.
func parseDescriptor(b []byte) (d descriptor, ok bool) {
	const selfRelative, daclPresent, daclProtected = 0x8000, 0x4, 0x1000
	if len(b) < 20 || b[0] != 1 {
		return d, false
	}
	control := binary.LittleEndian.Uint16(b[2:])
	owner, dacl := binary.LittleEndian.Uint32(b[4:]), binary.LittleEndian.Uint32(b[16:])
	if control&selfRelative == 0 || int64(owner) >= int64(len(b)) || int64(dacl) >= int64(len(b)) || owner < 20 {
		return d, false
	}
	if d.owner, ok = parseSID(b[owner:]); !ok {
		return d, false
	}
	d.protected = control&daclProtected != 0
	if control&daclPresent == 0 || dacl == 0 {
		d.null = true
		return d, true
	}
	if dacl < 20 {
		return d, false
	}
	d.entries, ok = parseList(b[dacl:])
	return d, ok
}

func parseList(b []byte) ([]entry, bool) {
	if len(b) < 8 || (b[0] != 2 && b[0] != 4) {
		return nil, false
	}
	size, count := int(binary.LittleEndian.Uint16(b[2:])), int(binary.LittleEndian.Uint16(b[4:]))
	if size < 8 || size > len(b) {
		return nil, false
	}
	b = b[8:size]
	var entries []entry
	for range count {
		if len(b) < 4 {
			return nil, false
		}
		n := int(binary.LittleEndian.Uint16(b[2:]))
		if n < 4 || n > len(b) {
			return nil, false
		}
		e, ok := parseEntry(b[:n])
		if !ok {
			return nil, false
		}
		entries, b = append(entries, e), b[n:]
	}
	return entries, true
}

func parseEntry(b []byte) (e entry, ok bool) {
	e.flags = b[1]
	if b[0] != entryAllows && b[0] != entryDenies {
		e.odd = true
		return e, true
	}
	if len(b) < 8 {
		return e, false
	}
	e.deny, e.mask = b[0] == entryDenies, binary.LittleEndian.Uint32(b[4:])
	e.who, ok = parseSID(b[8:])
	return e, ok
}

// parseSID gives the security identifier that b begins with as text.
func parseSID(b []byte) (text string, ok bool) {
	if len(b) < 8 || b[0] != 1 || b[1] > 15 || len(b) < 8+4*int(b[1]) {
		return "", false
	}
	authority := uint64(0)
	for _, c := range b[2:8] {
		authority = authority<<8 | uint64(c)
	}
	var s strings.Builder
	s.WriteString("S-1-" + strconv.FormatUint(authority, 10))
	for at := 8; at < 8+4*int(b[1]); at += 4 {
		s.WriteString("-" + strconv.FormatUint(uint64(binary.LittleEndian.Uint32(b[at:])), 10))
	}
	return s.String(), true
}

// ownership is the verdict on a descriptor: whose the object is, and the mode
// its list comes to for the user. nil and unreadable bytes are everybody's.
func ownership(raw []byte, user string, dir bool) (uid, mode uint32) {
	d, ok := parseDescriptor(raw)
	if !ok || user == "" {
		return ownerOther, 0o777
	}
	switch {
	case d.owner == user:
		uid = ownerUser
	case trustedSIDs[d.owner]:
		uid = ownerSystem
	default:
		uid = ownerOther
	}
	switch {
	case d.private(user) && dir:
		return uid, dirMode
	case d.private(user):
		return uid, fileMode
	case d.replaceable(user):
		return uid, 0o777
	}
	return uid, 0o755
}

// private reports whether the list is exactly the one that this package makes:
// protected, and everything to the user and to nobody else.
func (d *descriptor) private(user string) bool {
	if d.null || !d.protected || len(d.entries) != 1 {
		return false
	}
	e := d.entries[0]
	return !e.odd && !e.deny && e.who == user && e.mask == rightsOfFile && e.flags&^inheritFlags == 0
}

// replaceable reports whether anybody but the user and the system's own may
// delete, replace or take the object or what is in it. An entry that denies
// takes nothing away here: whom it concerns is not computed. An entry that only
// children inherit says nothing of the object.
func (d *descriptor) replaceable(user string) bool {
	if d.null {
		return true
	}
	for _, e := range d.entries {
		switch {
		case e.odd:
			return true
		case e.flags&inheritOnly != 0, e.deny, e.who == user, e.who == ownerRightsSID, trustedSIDs[e.who]:
		case e.mask&rightsToReplace != 0:
			return true
		}
	}
	return false
}

// privateSDDL is the descriptor of what this package creates.
func privateSDDL(user string, dir bool) string {
	flags := ""
	if dir {
		flags = "OICI"
	}
	return "O:" + user + "D:P(A;" + flags + ";FA;;;" + user + ")"
}

// Extended access control lists of macOS, as getattrlist gives them.
const (
	filesecMagic  = 0x012cc16d
	filesecFixed  = 4 + 16 + 16 + 4 + 4
	filesecNoList = 0xffffffff
	filesecEntry  = 16 + 4 + 4
	filesecMost   = 128

	kindPermits = 1
	kindDenies  = 2

	filesecInheritOnly = 1 << 8

	// Writing, deleting, and changing who may do that.
	filesecRights = 1<<2 | 1<<4 | 1<<5 | 1<<6 | 1<<12 | 1<<13 | 1<<21 | 1<<23
)

// widened is a mode with what an extended list adds to it: a list that permits
// anybody to read shows as readable, one that permits to write or replace as
// writable by all, and without the stickiness that might excuse that. A list
// that cannot be read counts as the latter. Entries that deny add nothing.
func widened(mode uint32, filesec []byte) uint32 {
	if len(filesec) == 0 {
		return mode
	}
	const everybody = 0o077
	if len(filesec) < filesecFixed || binary.LittleEndian.Uint32(filesec) != filesecMagic {
		return mode&^sticky | everybody
	}
	count := binary.LittleEndian.Uint32(filesec[36:])
	if count == filesecNoList {
		return mode
	}
	if count > filesecMost || len(filesec) < filesecFixed+int(count)*filesecEntry {
		return mode&^sticky | everybody
	}
	for i := range int(count) {
		e := filesec[filesecFixed+i*filesecEntry:]
		flags, rights := binary.LittleEndian.Uint32(e[16:]), binary.LittleEndian.Uint32(e[20:])
		switch {
		case flags&0xf == kindDenies, flags&filesecInheritOnly != 0 && flags&0xf == kindPermits:
		case flags&0xf != kindPermits, rights&filesecRights != 0:
			return mode&^sticky | everybody
		default:
			mode |= 0o055
		}
	}
	return mode
}

// attribute finds the extended list in an answer of getattrlist: the length of
// it all, then a reference that counts from itself. Without one it is nil.
func attribute(room []byte) []byte {
	unreadable := []byte{0}
	total := binary.LittleEndian.Uint32(room)
	off, n := int64(int32(binary.LittleEndian.Uint32(room[4:]))), int64(binary.LittleEndian.Uint32(room[8:]))
	switch {
	case total < 12, n == 0:
		return nil
	case int64(total) > int64(len(room)), off < 8, 4+off+n > int64(total):
		return unreadable
	}
	return room[4+off : 4+off+n]
}

// splitWindowsPath is splitPath for an absolute path on a lettered volume.
// Devices, shares, streams, parents and names that the system would change
// (trailing dots and blanks, short names) are refused.
func splitWindowsPath(p string) (volume string, parts []string, err error) {
	if len(p) < 4 || len(p) > 4000 || p[1] != ':' || p[2] != '\\' || !isLetter(p[0]) {
		return "", nil, ErrName
	}
	parts = strings.Split(p[3:], `\`)
	for _, part := range parts {
		last := byte('.')
		if part != "" {
			last = part[len(part)-1]
		}
		if last == '.' || last == ' ' || strings.ContainsAny(part, `/:*?"<>|~`) || strings.ContainsFunc(part, isControl) {
			return "", nil, ErrName
		}
	}
	return p[:3], parts, nil
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

func isControl(r rune) bool { return r < 0x20 }
