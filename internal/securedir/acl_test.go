package securedir

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
	"testing"
)

const (
	myself   = "S-1-5-21-1-2-3-1001"
	outsider = "S-1-5-21-1-2-3-1002"
)

// sidAliases are the two letters that SDDL has for well-known identifiers.
var sidAliases = map[string]string{
	"SY": "S-1-5-18", "BA": "S-1-5-32-544", "BU": "S-1-5-32-545", "WD": "S-1-1-0", "AU": "S-1-5-11", "CO": "S-1-3-0", "OW": ownerRightsSID,
	"TI": "S-1-5-80-956008885-3418522649-1831038044-1853292631-2271478464", "ME": myself, "XX": outsider,
}

var sddlKinds = map[string]byte{"A": 0, "D": 1, "OA": 5, "XA": 9, "??": 77}

var sddlFlags = map[string]byte{"OI": 1, "CI": 2, "NP": 4, "IO": 8, "ID": 16}

var sddlRights = map[string]uint32{
	"FA": rightsOfFile, "FR": 0x120089, "FW": 0x120116, "FX": 0x1200a0, "GA": rightGenericAll, "GW": 0x40000000, "GR": 0x80000000,
	"SD": rightDelete, "WD": rightWriteDAC, "WO": rightWriteOwner, "DT": rightDeleteChild, "MA": rightMaximum, "LC": 4, "DC": 2,
}

// fromSDDL builds a self-relative descriptor from the text form of it, as far as
// tests need that.
func fromSDDL(t testing.TB, text string) []byte {
	t.Helper()
	owner, list, hasList := strings.Cut(strings.TrimPrefix(text, "O:"), "D:")
	control := uint16(0x8000)
	var acl []byte
	if hasList {
		control |= 4
		if rest, ok := strings.CutPrefix(list, "P"); ok {
			control |= 0x1000
			list = rest
		}
		count := 0
		for _, e := range strings.Split(list, "(")[1:] {
			f := strings.Split(strings.TrimSuffix(e, ")"), ";")
			if len(f) != 6 {
				t.Fatalf("entry %q", e)
			}
			var flags byte
			for i := 0; i < len(f[1]); i += 2 {
				flags |= sddlFlags[f[1][i:i+2]]
			}
			mask := uint32(0)
			for i := 0; i < len(f[2]); i += 2 {
				mask |= sddlRights[f[2][i:i+2]]
			}
			s := sidBytes(t, f[5])
			acl = append(acl, sddlKinds[f[0]], flags)
			acl = binary.LittleEndian.AppendUint16(acl, uint16(8+len(s)))
			acl = append(binary.LittleEndian.AppendUint32(acl, mask), s...)
			count++
		}
		head := []byte{2, 0}
		head = binary.LittleEndian.AppendUint16(head, uint16(8+len(acl)))
		head = binary.LittleEndian.AppendUint16(head, uint16(count))
		acl = append(append(head, 0, 0), acl...)
	}
	o := sidBytes(t, owner)
	b := binary.LittleEndian.AppendUint16([]byte{1, 0}, control)
	b = binary.LittleEndian.AppendUint32(b, 20)
	b = binary.LittleEndian.AppendUint64(b, 0)
	dacl := uint32(0)
	if hasList {
		dacl = uint32(20 + len(o))
	}
	b = binary.LittleEndian.AppendUint32(b, dacl)
	return append(append(b, o...), acl...)
}

func sidBytes(t testing.TB, text string) []byte {
	t.Helper()
	if s, ok := sidAliases[text]; ok {
		text = s
	}
	parts := strings.Split(text, "-")
	if len(parts) < 3 {
		t.Fatalf("identifier %q", text)
	}
	b := []byte{1, byte(len(parts) - 3), 0, 0, 0, 0, 0, 0}
	for i, p := range parts[2:] {
		n, err := strconv.ParseUint(p, 10, 32)
		must(t, err)
		if i == 0 {
			binary.BigEndian.PutUint32(b[4:], uint32(n))
		} else {
			b = binary.LittleEndian.AppendUint32(b, uint32(n))
		}
	}
	return b
}

// R18, R19, R20, R21: what descriptors come to, from their text form.
func TestR18_R19_R20_R21_Descriptors(t *testing.T) {
	for _, tc := range []struct {
		sddl string
		dir  bool
		uid  uint32
		mode uint32
	}{
		// Private is exactly what this package makes.
		{privateSDDL("ME", true), true, ownerUser, 0o700},
		{privateSDDL("ME", false), false, ownerUser, 0o600},
		{"O:MED:(A;OICI;FA;;;ME)", true, ownerUser, 0o755},                  // not protected: inherits
		{"O:MED:P(A;OICI;FA;;;ME)(A;;FR;;;BU)", true, ownerUser, 0o755},     // others read
		{"O:MED:P(A;OICI;FA;;;ME)(A;OICI;FA;;;SY)", true, ownerUser, 0o755}, // not the list we make
		{"O:MED:P(A;OICIIO;FA;;;ME)", true, ownerUser, 0o755},               // for children only
		{"O:MED:P(A;OICINP;FA;;;ME)", true, ownerUser, 0o755},
		{"O:MED:P(A;OICIID;FA;;;ME)", true, ownerUser, 0o755},
		{"O:MED:P(A;;FR;;;ME)", false, ownerUser, 0o755},
		{"O:MED:P(D;;FA;;;ME)", false, ownerUser, 0o755},
		{"O:MED:P(A;OICI;FA;;;XX)", true, ownerUser, 0o777},
		{"O:MED:P", true, ownerUser, 0o755}, // nobody may do anything
		{"O:XXD:P(A;OICI;FA;;;ME)", true, ownerOther, 0o700},
		// Owners.
		{"O:SYD:(A;;FA;;;SY)", true, ownerSystem, 0o755},
		{"O:BAD:(A;;FA;;;BA)", true, ownerSystem, 0o755},
		{"O:TID:(A;;FA;;;TI)", true, ownerSystem, 0o755},
		{"O:BUD:(A;;FA;;;BA)", true, ownerOther, 0o755},
		{"O:WDD:(A;;FA;;;BA)", true, ownerOther, 0o755},
		// The usual root of a volume, and a user's profile.
		{"O:TID:P(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)(A;OICI;FRFX;;;BU)(A;CI;LC;;;AU)(A;OICIIO;GA;;;CO)", true, ownerSystem, 0o755},
		{"O:SYD:P(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)(A;OICI;FA;;;ME)", true, ownerSystem, 0o755},
		// One right too many for somebody else.
		{"O:SYD:(A;;SD;;;AU)", true, ownerSystem, 0o777},
		{"O:SYD:(A;;DT;;;AU)", true, ownerSystem, 0o777},
		{"O:SYD:(A;;WD;;;AU)", true, ownerSystem, 0o777},
		{"O:SYD:(A;;WO;;;AU)", true, ownerSystem, 0o777},
		{"O:SYD:(A;;GA;;;AU)", true, ownerSystem, 0o777},
		{"O:SYD:(A;;MA;;;AU)", true, ownerSystem, 0o777},
		{"O:SYD:(A;;FA;;;WD)", true, ownerSystem, 0o777},
		{"O:SYD:(A;;FA;;;CO)", true, ownerSystem, 0o777},
		{"O:SYD:(A;ID;FA;;;XX)", true, ownerSystem, 0o777},
		{"O:SYD:(D;;FA;;;XX)(A;;FA;;;XX)", true, ownerSystem, 0o777}, // who is denied what is not computed
		// No right at all to replace.
		{"O:SYD:(A;;FRFWFX;;;AU)(A;;GW;;;WD)", true, ownerSystem, 0o755},
		{"O:SYD:(A;OICIIO;FA;;;XX)", true, ownerSystem, 0o755},
		{"O:SYD:(D;;FA;;;XX)", true, ownerSystem, 0o755},
		{"O:MED:(A;;FA;;;OW)", true, ownerUser, 0o755},
		// Forms that are not plain, and no list.
		{"O:SYD:(OA;;FR;;;AU)", true, ownerSystem, 0o777},
		{"O:SYD:(XA;;FR;;;AU)", true, ownerSystem, 0o777},
		{"O:SYD:(??;;FR;;;ME)", true, ownerSystem, 0o777},
		{"O:SYD:(OA;IO;FR;;;AU)", true, ownerSystem, 0o777}, // unknown, flags and all
		{"O:MED:P(??;;FA;;;ME)", true, ownerUser, 0o777},
		{"O:ME", true, ownerUser, 0o777},
	} {
		uid, mode := ownership(fromSDDL(t, tc.sddl), myself, tc.dir)
		if uid != tc.uid || mode != tc.mode {
			t.Errorf("%s: owner %d, mode %o, want %d, %o", tc.sddl, uid, mode, tc.uid, tc.mode)
		}
	}
	if uid, mode := ownership(fromSDDL(t, privateSDDL("ME", true)), "", true); uid != ownerOther || mode != 0o777 {
		t.Errorf("without a user: %d, %o", uid, mode)
	}
	if uid, mode := ownership(nil, myself, true); uid != ownerOther || mode != 0o777 {
		t.Errorf("nothing: %d, %o", uid, mode)
	}
}

// R19: the verdicts of the lists are those that judge.go acts upon.
func TestR19_VerdictsAreActedUpon(t *testing.T) {
	at := func(sddl string) Stat {
		st := Stat{Kind: Directory}
		st.UID, st.Mode = ownership(fromSDDL(t, sddl), myself, true)
		return st
	}
	safe, private := at("O:SYD:(A;;FA;;;SY)(A;;FR;;;WD)"), at(privateSDDL("ME", true))
	must(t, judgeStep(safe, private, ownerUser))
	must(t, judgeLeaf(private, ownerUser))
	for _, unsafe := range []string{"O:SYD:(A;;DT;;;AU)", "O:XXD:(A;;FA;;;SY)", "O:SY", "O:SYD:(OA;;FR;;;AU)"} {
		wantErr(t, judgeStep(at(unsafe), private, ownerUser), ErrUnsafe)
	}
	wantErr(t, judgeLeaf(at("O:MED:P(A;OICI;FA;;;ME)(A;;FR;;;SY)"), ownerUser), ErrUnsafe)
	wantErr(t, judgeLeaf(at("O:BAD:P(A;OICI;FA;;;ME)"), ownerUser), ErrUnsafe)
}

// R20: a descriptor cut anywhere, or with lengths that do not fit, is nobody's.
func TestR20_DescriptorsCutShort(t *testing.T) {
	whole := fromSDDL(t, "O:MED:P(A;OICI;FA;;;ME)(A;;FR;;;BU)")
	for n := range whole {
		if uid, mode := ownership(whole[:n:n], myself, true); uid != ownerOther || mode != 0o777 {
			t.Errorf("%d bytes of %d: %d, %o", n, len(whole), uid, mode)
		}
	}
	owner := len(sidBytes(t, "ME"))
	for _, at := range []int{0, 4, 16, 20, 21, 20 + owner, 20 + owner + 2, 20 + owner + 4, 20 + owner + 10} {
		b := bytes.Clone(whole)
		b[at] += 200
		if _, mode := ownership(b, myself, true); mode != 0o777 {
			t.Errorf("byte %d: mode %o", at, mode)
		}
	}
}

// FuzzDescriptor: no bytes crash the judge, and what it calls private or safe is
// so by a count of its own: no entry of a outsider has a right to replace.
func FuzzDescriptor(f *testing.F) {
	for _, s := range []string{privateSDDL("ME", true), "O:SYD:(A;;FA;;;SY)(OA;;FR;;;AU)", "O:ME", "O:SYD:(A;OICIIO;GA;;;CO)"} {
		f.Add(fromSDDL(f, s), true)
	}
	f.Fuzz(func(t *testing.T, raw []byte, dir bool) {
		uid, mode := ownership(raw, myself, dir)
		d, ok := parseDescriptor(raw)
		if !ok {
			if uid != ownerOther || mode != 0o777 {
				t.Fatalf("unreadable, and %d %o", uid, mode)
			}
			return
		}
		if mode != 0o777 {
			for _, e := range d.entries {
				if e.odd || !e.deny && e.flags&inheritOnly == 0 && e.mask&rightsToReplace != 0 &&
					e.who != myself && e.who != ownerRightsSID && !trustedSIDs[e.who] {
					t.Fatalf("mode %o with %+v", mode, e)
				}
			}
		}
		if (mode == 0o700 || mode == 0o600) && (len(d.entries) != 1 || !d.protected || d.entries[0].who != myself) {
			t.Fatalf("private: %+v", d)
		}
		if d.owner == outsider && uid != ownerOther {
			t.Fatal("a outsider's")
		}
	})
}

// filesec builds an extended list as macOS gives it.
func filesec(entries ...[2]uint32) []byte {
	b := binary.LittleEndian.AppendUint32(nil, filesecMagic)
	b = append(b, make([]byte, 32)...)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(entries)))
	b = binary.LittleEndian.AppendUint32(b, 0)
	for _, e := range entries {
		b = append(b, make([]byte, 16)...)
		b = binary.LittleEndian.AppendUint32(b, e[0])
		b = binary.LittleEndian.AppendUint32(b, e[1])
	}
	return b
}

// R6, R9: what an extended list of macOS adds to a mode.
func TestR9_ExtendedLists(t *testing.T) {
	none := filesec()
	binary.LittleEndian.PutUint32(none[36:], filesecNoList)
	broken := filesec([2]uint32{kindDenies, 1 << 4})
	for name, tc := range map[string]struct {
		list []byte
		mode uint32
		want uint32
	}{
		"no list":                         {nil, 0o700, 0o700},
		"no list, said so":                {none, 0o700, 0o700},
		"empty":                           {filesec(), 0o700, 0o700},
		"everyone denied to delete":       {filesec([2]uint32{kindDenies, 1 << 4}), 0o755, 0o755},
		"permits to read":                 {filesec([2]uint32{kindPermits, 1 << 1}), 0o700, 0o755},
		"permits to add":                  {filesec([2]uint32{kindPermits, 1 << 2}), 0o755, 0o777},
		"permits to delete":               {filesec([2]uint32{kindDenies, 1}, [2]uint32{kindPermits, 1 << 4}), 0o755, 0o777},
		"permits to delete what is in it": {filesec([2]uint32{kindPermits, 1 << 6}), 0o755, 0o777},
		"permits to change the list":      {filesec([2]uint32{kindPermits, 1 << 12}), 0o755, 0o777},
		"permits to take":                 {filesec([2]uint32{kindPermits, 1 << 13}), 0o755, 0o777},
		"permits all":                     {filesec([2]uint32{kindPermits, 1 << 21}), 0o755, 0o777},
		"sticky helps nothing":            {filesec([2]uint32{kindPermits, 1 << 6}), 0o1777, 0o777},
		"for children only":               {filesec([2]uint32{kindPermits | filesecInheritOnly, 1 << 6}), 0o755, 0o755},
		"audit":                           {filesec([2]uint32{3, 1 << 1}), 0o755, 0o777},
		"cut short":                       {broken[:len(broken)-1], 0o700, 0o777},
		"not a list":                      {make([]byte, 80), 0o700, 0o777},
		"a few bytes":                     {[]byte{1}, 0o700, 0o777},
	} {
		if got := widened(tc.mode, tc.list); got != tc.want {
			t.Errorf("%s: %o became %o, want %o", name, tc.mode, got, tc.want)
		}
	}
	many := filesec()
	binary.LittleEndian.PutUint32(many[36:], filesecMost+1)
	if got := widened(0o700, append(many, make([]byte, 10000)...)); got != 0o777 {
		t.Errorf("too many entries: %o", got)
	}
}

// R9: the list is found in an answer of the system, and an answer that does not
// fit together is a list that cannot be read.
func TestR9_ExtendedListIsFound(t *testing.T) {
	list := filesec([2]uint32{kindPermits, 1 << 6})
	answer := func(total, off, n int, rest []byte) []byte {
		b := binary.LittleEndian.AppendUint32(nil, uint32(total))
		b = binary.LittleEndian.AppendUint32(b, uint32(off))
		b = append(binary.LittleEndian.AppendUint32(b, uint32(n)), rest...)
		return append(b, make([]byte, 64)...)
	}
	if got := attribute(answer(12+len(list), 8, len(list), list)); !bytes.Equal(got, list) {
		t.Errorf("found %x", got)
	}
	for _, none := range [][]byte{answer(12, 8, 0, nil), answer(4, 0, 0, nil)} {
		if got := attribute(none); got != nil {
			t.Errorf("found %x where there is none", got)
		}
	}
	for _, bad := range [][]byte{
		answer(12+len(list), -4, len(list), list), answer(12+len(list), 8, len(list)+1, list),
		answer(1<<20, 8, len(list), list), answer(12+len(list), 4, len(list), list), answer(12+len(list), 1<<30, len(list), list),
	} {
		if got := widened(0o700, attribute(bad)); got != 0o777 {
			t.Errorf("%x: mode %o", bad[:12], got)
		}
	}
}

// FuzzExtendedList: no bytes crash it, and no list ever narrows a mode.
func FuzzExtendedList(f *testing.F) {
	f.Add(uint32(0o700), filesec([2]uint32{kindPermits, 1 << 6}))
	f.Add(uint32(0o755), filesec())
	f.Fuzz(func(t *testing.T, mode uint32, list []byte) {
		mode &= 0o7777
		got := widened(mode, list)
		if got&0o777&mode != mode&0o777 || got&^(mode|0o077) != 0 {
			t.Fatalf("%o became %o", mode, got)
		}
		if len(list) > 0 && len(list) < filesecFixed && got&0o022 == 0 {
			t.Fatal("unreadable, and safe")
		}
	})
}

// R22, T1: paths of Windows are taken only as they are written.
func TestR22_T01_WindowsPaths(t *testing.T) {
	volume, parts, err := splitWindowsPath(`C:\Users\me\AppData`)
	if err != nil || volume != `C:\` || fmt.Sprint(parts) != "[Users me AppData]" {
		t.Error(volume, parts, err)
	}
	for _, p := range []string{
		"", `C:`, `C:\`, `C:x`, `C:/x`, `\\server\share\x`, `\\?\C:\x`, `\\.\C:\x`, `\x`, `/x`, `x`, `1:\x`,
		`C:\x\`, `C:\\x`, `C:\x\\y`, `C:\.`, `C:\x\..`, `C:\x\..\y`, `C:\x.`, `C:\x \y`, `C:\x:stream`, `C:\x::$DATA`,
		`C:\PROGRA~1`, `C:\x*`, `C:\x?`, `C:\x"`, `C:\x|y`, `C:\x<`, "C:\\x\x00y", "C:\\x\ny", `C:\x/y`, `C:\` + strings.Repeat("x", 4000),
	} {
		if _, parts, err := splitWindowsPath(p); err == nil {
			t.Errorf("%q gave %q", p, parts)
		}
	}
}
