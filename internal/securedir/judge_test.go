package securedir

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"
)

const me = 1000

// R8, R9, R10: every owner, every mode and every kind, against the rule as the
// requirement words it.
func TestR8_R9_R10_AncestryExhaustively(t *testing.T) {
	verdicts := map[bool]int{}
	for _, owner := range []uint32{0, me, 1001} {
		for mode := range uint32(0o10000) {
			dir := Stat{Kind: Directory, UID: owner, Mode: mode}
			for _, childOwner := range []uint32{0, me, 1001} {
				child := Stat{Kind: Directory, UID: childOwner, Mode: 0o755}
				safe := owner != 1001
				if mode&0o020 != 0 || mode&0o002 != 0 {
					safe = safe && mode&0o1000 != 0 && childOwner != 1001
				}
				if got := judgeStep(dir, child, me) == nil; got != safe {
					t.Fatalf("owner %d mode %o child %d: %v", owner, mode, childOwner, got)
				}
				verdicts[safe]++
			}
			created := owner != 1001 && (mode&0o022 == 0 || mode&0o1000 != 0)
			if got := judgeAncestor(dir, me) == nil; got != created {
				t.Fatalf("owner %d mode %o: %v", owner, mode, got)
			}
		}
	}
	if verdicts[true] == 0 || verdicts[false] == 0 {
		t.Error("one verdict only")
	}
	good := Stat{Kind: Directory, UID: 0, Mode: 0o755}
	for _, k := range []Kind{Other, Regular} {
		if judgeStep(Stat{Kind: k, UID: 0, Mode: 0o755}, good, me) == nil || judgeStep(good, Stat{Kind: k, UID: me}, me) == nil {
			t.Errorf("kind %d accepted", k)
		}
	}
}

// R6, R7, trap 19: exactly 0700 of all twelve bits, and ours, not even root's.
func TestR6_R7_LeafExhaustively(t *testing.T) {
	for mode := range uint32(0o10000) {
		for _, owner := range []uint32{0, me, 1001} {
			for _, k := range []Kind{Other, Directory, Regular} {
				want := mode == 0o700 && owner == me && k == Directory
				if got := judgeLeaf(Stat{Kind: k, UID: owner, Mode: mode}, me) == nil; got != want {
					t.Fatalf("kind %d owner %d mode %o: %v", k, owner, mode, got)
				}
			}
		}
	}
}

// R16, R17: exactly 0600, ours, regular, one name.
func TestR16_R17_FileExhaustively(t *testing.T) {
	for mode := range uint32(0o10000) {
		for _, owner := range []uint32{0, me} {
			for links := range uint64(4) {
				for _, k := range []Kind{Other, Directory, Regular} {
					want := mode == 0o600 && owner == me && links == 1 && k == Regular
					err := judgeFile(Stat{Kind: k, UID: owner, Mode: mode, Links: links}, me)
					if (err == nil) != want {
						t.Fatalf("kind %d owner %d mode %o links %d: %v", k, owner, mode, links, err)
					}
					if gone := mode == 0o600 && owner == me && links == 0 && k == Regular; gone != errors.Is(err, ErrChanged) {
						t.Fatalf("links %d: %v", links, err)
					}
				}
			}
		}
	}
}

func TestT10_FileSystems(t *testing.T) {
	for magic := range localMagic {
		if err := judgeFileSystem(FileSystem{Magic: magic}); err != nil {
			t.Errorf("%x: %v", magic, err)
		}
		if judgeFileSystem(FileSystem{Magic: magic, Name: "nfs"}) == nil {
			t.Errorf("%x with a name that says otherwise", magic)
		}
	}
	for name, magic := range map[string]uint32{
		"nfs": 0x6969, "smb": 0x517b, "smb2": 0xfe534d42, "cifs": 0xff534d42, "fuse": 0x65735546,
		"9p": 0x01021997, "ceph": 0x00c36400, "afs": 0x5346414f, "vfat": 0x4d44, "none": 0,
	} {
		if judgeFileSystem(FileSystem{Magic: magic}) == nil || judgeFileSystem(FileSystem{Name: name}) == nil {
			t.Errorf("%s accepted", name)
		}
	}
	if judgeFileSystem(FileSystem{Name: "apfs"}) != nil {
		t.Error("apfs refused")
	}
}

// T1: names.
func TestT01_Names(t *testing.T) {
	for _, name := range []string{
		"", ".", "..", "a/", "/a", "a/b", "a..b", "a\x00", "a:b", "a:$DATA", "PROGRA~1", "a~1", "A", "a ", " a", "a.",
		".a", "-a", "a-", "a\\b", "a\n", "é", "con:", "a\u200b", strings.Repeat("a", maxName+1),
	} {
		if judgeName(name) == nil {
			t.Errorf("%q accepted", name)
		}
	}
	for _, name := range []string{"a", "authority.lock", "run-" + strings.Repeat("0f", 32) + ".state", "tmp-1"} {
		if err := judgeName(name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	// No call is made for a refused name.
	s := NewSim()
	p := s.Process(0, 0)
	d := &Dir{sys: p}
	for _, try := range []func() error{
		func() error { _, err := d.Open("../x", Read); return err },
		func() error { _, err := d.Lookup("a/b"); return err },
		func() error { return (&File{dir: d, name: "a"}).Publish("a:b") },
	} {
		if err := try(); !errors.Is(err, ErrName) {
			t.Errorf("%v", err)
		}
	}
	if p.Calls() != 0 {
		t.Errorf("%d calls", p.Calls())
	}
}

func TestT01_Paths(t *testing.T) {
	for _, path := range []string{"", "/", "a", "./a", "/a/", "/a//b", "/a/../b", "/a/.", "/a\x00", "//a", "/" + strings.Repeat("a/", 2000) + "b"} {
		if _, parts, err := splitPath(path); err == nil {
			t.Errorf("%q: %v", path, parts)
		}
	}
	_, parts, err := splitPath("/a/b c/..d")
	if err != nil || fmt.Sprint(parts) != "[a b c ..d]" {
		t.Errorf("%v %v", parts, err)
	}
}

func TestR87_Classes(t *testing.T) {
	for err, want := range map[error]string{
		syscall.ENOSPC: "full", syscall.EDQUOT: "full", syscall.EFBIG: "full", syscall.EMFILE: "too many files",
		syscall.ENFILE: "too many files", syscall.EROFS: "read-only", syscall.EACCES: "permission", syscall.EPERM: "permission",
		syscall.ELOOP: "unsafe", syscall.ENOENT: "missing", syscall.EEXIST: "exists", syscall.EIO: "input/output",
		ErrUnsafe: "unsafe", ErrLocked: "busy", ErrChanged: "replaced", ErrUnsupported: "unsupported",
		errors.New("x"): "input/output", &fs.PathError{Err: syscall.ENOSPC}: "full",
	} {
		if got := Class(err); got != want {
			t.Errorf("%v: %q, want %q", err, got, want)
		}
	}
}

func TestR83_SecretIsCleared(t *testing.T) {
	b := []byte("key")
	freed := false
	s := &Secret{bytes: b, free: func() { freed = true }}
	s.Destroy()
	s.Destroy()
	if string(b) != "\x00\x00\x00" || !freed || s.Bytes() != nil {
		t.Errorf("%q %v", b, freed)
	}
	real := NewSecret(100)
	copy(real.Bytes(), "key")
	if fmt.Sprintf("%v %+v %#v %s", real, real, real, real) != "[secret] [secret] [secret] [secret]" {
		t.Error("prints")
	}
	real.Destroy()
}
