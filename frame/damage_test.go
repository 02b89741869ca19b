package frame

import (
	"bytes"
	"encoding/binary"
	"math"
	"testing"

	"github.com/zeebo/xxh3"
)

func testSlot(g *Geometry) *Slot {
	start := g.HeaderArea() + PageHeaderSize
	return &Slot{
		Number: 7, Epoch: 3, Writer: [16]byte{0xB0, 0xB1, 0xB2, 15: 0xBF},
		Durable: Place{start + 4000, 12, 0xD1}, Floor: Place{g.HeaderArea(), 0, 0xD2},
		Check: Place{start + 1024, 9, 0xD3}, Before: Place{start, 4, 0xD4},
		Fence: 21, Run: [32]byte{0xC0, 0xC1, 31: 0xCF}, Generation: 2, Superseded: 5, Time: 1_700_000_000_000_000_001,
		Features: Features{Compat: 1, ReadOnly: 2},
	}
}

// TestIdentity_EveryBit and its siblings: L2, no single bit of a structure may
// change unseen.
func TestIdentity_EveryBit(t *testing.T) {
	id := testIdentity(4096, 8)
	id.Lineage = []Ancestor{{LogID: id.LogID, Salt: 9, End: 1 << 20, Revision: 8, Digest: 7}}
	b := id.Encode()
	flips(b, func(at string) {
		if _, err := DecodeIdentity(b); err == nil {
			t.Errorf("%s: unseen", at)
		}
	})
	if _, err := DecodeIdentity(b); err != nil {
		t.Error(err)
	}
}

func TestSlot_EveryBit(t *testing.T) {
	g := testGeometry(4096, 8)
	b := make([]byte, SlotSize)
	g.PutSlot(b, SlotOffsetA, testSlot(g))
	flips(b, func(at string) {
		if _, err := g.DecodeSlot(b, SlotOffsetA); err == nil {
			t.Errorf("%s: unseen", at)
		}
	})
	_, err := g.DecodeSlot(b, SlotOffsetB)
	wantErr(t, err, ErrSum)
}

func TestPage_EveryBit(t *testing.T) {
	g := testGeometry(4096, 8)
	b := make([]byte, PageHeaderSize)
	g.PutPage(b, 5*4096, PageHeader{Number: 5, First: 512, Last: 77})
	flips(b, func(at string) {
		if _, err := g.DecodePage(b, 5*4096); err == nil {
			t.Errorf("%s: unseen", at)
		}
	})
	_, err := g.DecodePage(b, 6*4096)
	wantErr(t, err, ErrField)
	_, err = g.DecodePage(b, 5*4096+8)
	wantErr(t, err, ErrField)
}

// TestGroup_EveryBit sweeps whole writes: padding before groups, group
// headers, page headers, record headers, payload, record padding. Only the
// zeros behind the last raw end belong to a group that is not there yet.
func TestGroup_EveryBit(t *testing.T) {
	for _, align := range aligns {
		g := testGeometry(4096, align)
		groups := []testGroup{commitOf(pattern(3, 1), nil, pattern(20, 2)), commitOf(pattern(90, 3))}
		groups[1].Flags = FlagDerived
		if align == 8 { // with a larger one the zeros between make the sweep long
			groups = append(groups, commitOf(pattern(3800, 4), pattern(13, 5)), commitOf(nil))
		}
		history(4, 99, groups...)
		b := NewBuilder(g)
		raw := layOut(b, g.HeaderArea(), 4, groups)
		raw = raw[:b.End()-b.Offset()]
		check := func() error {
			_, err := walk(g, raw, b.Offset(), g.HeaderArea(), groups[0], len(groups))
			return err
		}
		if err := check(); err != nil {
			t.Fatal(err)
		}
		flips(raw, func(at string) {
			if check() == nil {
				t.Errorf("align %d: %s: unseen", align, at)
			}
		})
	}
}

// TestGroup_CutAndGarbled: C14, a group over three pages whose middle page is
// zeros or garbage, or which is cut anywhere, gives nothing.
func TestGroup_CutAndGarbled(t *testing.T) {
	g := testGeometry(4096, 8)
	groups := history(0, 0, commitOf(pattern(3000, 1), pattern(3000, 2), pattern(3000, 3), pattern(10, 4)))
	b := NewBuilder(g)
	good := layOut(b, g.HeaderArea(), 0, groups)
	for name, page := range map[string][]byte{"zeros": make([]byte, 4096), "garbage": pattern(4096, 8)} {
		raw := bytes.Clone(good)
		copy(raw[4096:], page)
		if _, err := walk(g, raw, b.Offset(), g.HeaderArea(), groups[0], 1); err == nil {
			t.Errorf("%s in the middle page: unseen", name)
		}
	}
	for n := range len(good) {
		if _, err := walk(g, good[:n], b.Offset(), g.HeaderArea(), groups[0], 1); err == nil {
			t.Fatalf("cut to %d bytes: unseen", n)
		}
		raw := append(bytes.Clone(good[:n]), make([]byte, len(good)-n)...)
		if _, err := walk(g, raw, b.Offset(), g.HeaderArea(), groups[0], 1); err == nil && !IsZero(good[n:]) {
			t.Fatalf("zeros from byte %d on: unseen", n)
		}
		if n >= PageHeaderSize+GroupHeaderSize { // too few bytes are a wrong body, never a panic
			body, _ := g.Gather(bytes.Clone(good[PageHeaderSize:n]), &groups[0].GroupHeader, g.HeaderArea()+PageHeaderSize)
			if int64(len(body)) > groups[0].Body {
				t.Fatalf("cut to %d bytes: a body of %d", n, len(body))
			}
		}
	}
}

// TestPage_SoundButWrong: a page header under a good sum that says something
// else than the groups around it is a bad one.
func TestPage_SoundButWrong(t *testing.T) {
	g := testGeometry(4096, 8)
	groups := history(0, 0, commitOf(pattern(3900, 1), pattern(6000, 2)), commitOf(nil))
	b := NewBuilder(g)
	good := layOut(b, g.HeaderArea(), 0, groups)
	for page := g.HeaderArea(); page < b.End(); page += 4096 {
		h, err := g.DecodePage(good[page-b.Offset():], page)
		if err != nil {
			t.Fatal(err)
		}
		for _, wrong := range []PageHeader{{h.Number, 64, h.Last}, {h.Number, h.First, h.Last + 1}} {
			raw := bytes.Clone(good)
			g.PutPage(raw[page-b.Offset():], page, wrong)
			_, err := walk(g, raw, b.Offset(), g.HeaderArea(), groups[0], 2)
			wantErr(t, err, errPage)
		}
	}
}

// TestMagic: a good sum does not make another structure of it.
func TestMagic(t *testing.T) {
	g := testGeometry(4096, 8)
	salt, off := g.spanAt(0).salt, g.HeaderArea()+PageHeaderSize
	_, err := DecodeIdentity(reseal(make([]byte, IdentitySize), 0))
	wantErr(t, err, ErrMark)
	_, err = g.DecodeSlot(reseal(make([]byte, SlotSize), salt+SlotOffsetA), SlotOffsetA)
	wantErr(t, err, ErrMark)
	_, err = g.DecodePage(reseal(make([]byte, PageHeaderSize), salt), g.HeaderArea())
	wantErr(t, err, ErrMark)
	_, err = g.DecodeGroup(reseal(make([]byte, GroupHeaderSize), salt+uint64(off)), off)
	wantErr(t, err, ErrMark)
}

// TestZeroBytes: L3.
func TestZeroBytes(t *testing.T) {
	zeros := make([]byte, 1<<16)
	for n := range []int{0, 1, 7, 8, 24, 32, 79, 80, 512, 4096, len(zeros)} {
		b := zeros[:n]
		for _, page := range pageSizes {
			g := testGeometry(page, 8)
			off := g.HeaderArea()
			if _, err := DecodeIdentity(b); err != ErrMark {
				t.Errorf("%d zeros are an identity: %v", n, err)
			}
			if _, err := g.DecodeSlot(b, SlotOffsetA); err != ErrMark {
				t.Errorf("%d zeros are a slot: %v", n, err)
			}
			if _, err := g.DecodePage(b, off); err != ErrMark {
				t.Errorf("%d zeros are a page: %v", n, err)
			}
			if _, err := g.DecodeGroup(b, off+32); err != ErrMark || g.IsMark(b, off+32) {
				t.Errorf("%d zeros are a group: %v", n, err)
			}
		}
	}
	// As a body, zeros are records without payload, whose sum is not zero.
	h := GroupHeader{Count: 2}
	wantErr(t, h.Check(zeros[:48]), ErrSum)
}

// TestGroup_HostileFields: under a good sum, values that cannot be.
func TestGroup_HostileFields(t *testing.T) {
	g := testGeometry(4096, 8)
	off := g.HeaderArea() + 32
	good := history(0, 0, oneRecord(100))[0].GroupHeader
	for name, c := range map[string]struct {
		set  func(*GroupHeader)
		want error
	}{
		"sound":                {func(*GroupHeader) {}, nil},
		"derived, revision 0":  {func(h *GroupHeader) { h.Flags, h.Revision = FlagDerived, 0 }, nil},
		"revision 0":           {func(h *GroupHeader) { h.Revision = 0 }, ErrField},
		"epoch 2^63":           {func(h *GroupHeader) { h.Epoch = 1 << 63 }, ErrField},
		"revision 2^63":        {func(h *GroupHeader) { h.Revision = 1 << 63 }, ErrField},
		"no records":           {func(h *GroupHeader) { h.Count = 0 }, ErrField},
		"records over body":    {func(h *GroupHeader) { h.Count = uint32(h.Body/RecordHeaderSize) + 1 }, ErrField},
		"records over limit":   {func(h *GroupHeader) { h.Count, h.Body = MaxGroupRecords+1, 60<<20 }, ErrField},
		"negative body":        {func(h *GroupHeader) { h.Body = -8 }, ErrField},
		"least body":           {func(h *GroupHeader) { h.Body = math.MinInt64 }, ErrField},
		"largest body":         {func(h *GroupHeader) { h.Body = math.MaxInt64 &^ 7 }, ErrField},
		"body over limit":      {func(h *GroupHeader) { h.Body = 64<<20 + 8 }, ErrField},
		"body at limit":        {func(h *GroupHeader) { h.Body = 64 << 20 }, nil},
		"body of odd length":   {func(h *GroupHeader) { h.Body++ }, ErrField},
		"durable end ahead":    {func(h *GroupHeader) { h.DurableEnd = off + 8 }, ErrField},
		"durable end here":     {func(h *GroupHeader) { h.DurableEnd = off }, nil},
		"negative durable end": {func(h *GroupHeader) { h.DurableEnd = -1 }, ErrField},
		"unknown flag":         {func(h *GroupHeader) { h.Flags = 2 }, ErrUnsupported},
	} {
		h := good
		c.set(&h)
		b := make([]byte, GroupHeaderSize)
		g.PutGroup(b, off, &h)
		got, err := g.DecodeGroup(b, off)
		if err != c.want {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
		if err == nil && got != h {
			t.Errorf("%s: got %+v, want %+v", name, got, h)
		}
	}
	// A log with small limits still has room for the engine's own groups.
	id := testIdentity(4096, 8)
	id.MaxGroup = 64
	h := good
	for body, want := range map[int64]error{maxDerivedBody: nil, maxDerivedBody + 8: ErrField} {
		h.Body = body
		b := make([]byte, GroupHeaderSize)
		id.Geometry().PutGroup(b, off, &h)
		_, err := id.Geometry().DecodeGroup(b, off)
		wantErr(t, err, want)
	}
}

// TestGroup_ElsewhereIsNothing: C17 and C31, sound groups of another place,
// salt or time are not this one.
func TestGroup_ElsewhereIsNothing(t *testing.T) {
	g := testGeometry(4096, 8)
	off := g.HeaderArea() + 32
	h := history(0, 0, oneRecord(100))[0].GroupHeader
	b := make([]byte, GroupHeaderSize)
	g.PutGroup(b, off, &h)
	_, err := g.DecodeGroup(b, off+8)
	wantErr(t, err, ErrSum)
	other := testIdentity(4096, 8)
	other.Salt++
	_, err = other.Geometry().DecodeGroup(b, off)
	wantErr(t, err, ErrMark)
	_, err = g.DecodeGroup(b[:GroupHeaderSize-1], off)
	wantErr(t, err, ErrMark)
}

func TestPage_HostileFields(t *testing.T) {
	g := testGeometry(4096, 512)
	for name, c := range map[string]struct {
		h    PageHeader
		want error
	}{
		"none starts":           {PageHeader{5, 0, 1}, nil},
		"behind the header":     {PageHeader{5, 32, 1}, nil},
		"on the alignment":      {PageHeader{5, 512, 1}, nil},
		"between":               {PageHeader{5, 40, 1}, ErrField},
		"in the header":         {PageHeader{5, 8, 1}, ErrField},
		"no room left":          {PageHeader{5, 4096 - 72, 1}, ErrField},
		"in the next page":      {PageHeader{5, 4096 + 32, 1}, ErrField},
		"far away":              {PageHeader{5, math.MaxUint32 &^ 511, 1}, ErrField},
		"another page":          {PageHeader{6, 32, 1}, ErrField},
		"a negative page":       {PageHeader{-5, 32, 1}, ErrField},
		"page 5, the long way":  {PageHeader{math.MinInt64 + 5, 32, 1}, ErrField},
		"revision beyond range": {PageHeader{5, 32, 1 << 63}, ErrField},
	} {
		b := make([]byte, PageHeaderSize)
		g.PutPage(b, 5*4096, c.h)
		got, err := g.DecodePage(b, 5*4096)
		if err != c.want || err == nil && got != c.h {
			t.Errorf("%s: %+v, %v, want %v", name, got, err, c.want)
		}
	}
}

func TestSlot_HostileFields(t *testing.T) {
	g := testGeometry(4096, 8)
	for name, set := range map[string]func(*Slot){
		"durable end in the header area": func(s *Slot) { s.Durable.Offset = 8192; s.Floor.Offset = 8192 },
		"durable end in a page header":   func(s *Slot) { s.Durable.Offset = 1<<20 + 24 },
		"durable end off the grid":       func(s *Slot) { s.Durable.Offset++ },
		"epoch 2^63":                     func(s *Slot) { s.Epoch = 1 << 63 },
		"number 2^63":                    func(s *Slot) { s.Number = 1 << 63 },
		"durable end beyond all":         func(s *Slot) { s.Durable.Offset = math.MaxInt64 - 7 },
		"negative durable end":           func(s *Slot) { s.Durable.Offset = math.MinInt64 },
		"floor beyond the durable end":   func(s *Slot) { s.Floor.Offset = s.Durable.Offset + 8 },
		"negative floor":                 func(s *Slot) { s.Floor.Offset = -8 },
		"checkpoint beyond":              func(s *Slot) { s.Check.Offset = s.Durable.Offset + 8 },
		"checkpoint in the header area":  func(s *Slot) { s.Check.Offset = 8 },
		"negative checkpoint":            func(s *Slot) { s.Check.Offset = -8 },
		"earlier checkpoint beyond":      func(s *Slot) { s.Before.Offset = s.Durable.Offset + 8 },
		"revision beyond range":          func(s *Slot) { s.Durable.Revision = 1 << 63 },
	} {
		s := testSlot(g)
		set(s)
		b := make([]byte, SlotSize)
		g.PutSlot(b, SlotOffsetA, s)
		_, err := g.DecodeSlot(b, SlotOffsetA)
		if err != ErrField {
			t.Errorf("%s: %v", name, err)
		}
		s.Features.Incompat = 1 << 40
		g.PutSlot(b, SlotOffsetA, s)
		got, err := g.DecodeSlot(b, SlotOffsetA)
		if err != ErrUnsupported || got.Features.UnknownIncompat() != 1<<40 {
			t.Errorf("%s, with a feature: %v", name, err)
		}
	}
	b := make([]byte, SlotSize)
	s := testSlot(g)
	s.Check, s.Before = Place{}, Place{}
	g.PutSlot(b, SlotOffsetA, s)
	got, err := g.DecodeSlot(b, SlotOffsetA)
	if err != nil || got != *s {
		t.Errorf("without checkpoints: %+v, %v", got, err)
	}
	b[slotReserved] = 1
	_, err = g.DecodeSlot(reseal(b, g.spanAt(math.MaxInt64).salt+SlotOffsetA), SlotOffsetA)
	wantErr(t, err, ErrPadding)
	binary.LittleEndian.PutUint64(b[slotIncompat:], 2)
	got, err = g.DecodeSlot(reseal(b, g.spanAt(math.MaxInt64).salt+SlotOffsetA), SlotOffsetA)
	if err != nil || got.Features.UnknownIncompat() != 2 || got.Features.UnknownReadOnly() != 2 {
		t.Errorf("reserved bytes of a later version: %+v, %v", got.Features, err)
	}
}

func TestIdentity_HostileFields(t *testing.T) {
	for name, set := range map[string]func(*Identity){
		"page size 0":           func(id *Identity) { id.PageSize = 0 },
		"page size too small":   func(id *Identity) { id.PageSize = 2048 },
		"page size too large":   func(id *Identity) { id.PageSize = 2 << 20 },
		"page size no power":    func(id *Identity) { id.PageSize = 4096 + 512 },
		"alignment 0":           func(id *Identity) { id.Align = 0 },
		"alignment 16":          func(id *Identity) { id.Align = 16 },
		"no salt":               func(id *Identity) { id.Salt = 0 },
		"no log ID":             func(id *Identity) { id.LogID = [16]byte{} },
		"no record fits":        func(id *Identity) { id.MaxRecord = 0 },
		"record limit too high": func(id *Identity) { id.MaxRecord = MaxRecordBytes + 1 },
		"no group fits":         func(id *Identity) { id.MaxGroup = RecordHeaderSize },
		"group limit too high":  func(id *Identity) { id.MaxGroup = MaxGroupBytes + 1 },
		"no records":            func(id *Identity) { id.MaxRecords = 0 },
		"too many records":      func(id *Identity) { id.MaxRecords = MaxGroupRecords + 1 },
		"size beyond range":     func(id *Identity) { id.MaxSize = 1 << 63 },
		"base beyond range":     func(id *Identity) { id.Base = Boundary{id.LogID, math.MaxInt64, 1} },
		"base without a log":    func(id *Identity) { id.Base.Revision = 1 },
		"ancestor in header":    func(id *Identity) { id.Lineage = []Ancestor{{id.LogID, 1, 8192, 1, 1}} },
		"ancestor off the grid": func(id *Identity) { id.Lineage = []Ancestor{{id.LogID, 1, 1<<20 + 1, 1, 1}} },
		"ancestor beyond all":   func(id *Identity) { id.Lineage = []Ancestor{{id.LogID, 1, math.MaxInt64, 1, 1}} },
		"ancestor without salt": func(id *Identity) { id.Lineage = []Ancestor{{id.LogID, 0, 1 << 20, 1, 1}} },
		"ancestor without ID":   func(id *Identity) { id.Lineage = []Ancestor{{Salt: 1, End: 1 << 20}} },
		"ancestor beyond range": func(id *Identity) { id.Lineage = []Ancestor{{id.LogID, 1, 1 << 20, 1 << 63, 1}} },
		"ancestors disordered": func(id *Identity) {
			id.Lineage = []Ancestor{{id.LogID, 1, 2 << 20, 1, 1}, {id.LogID, 1, 1 << 20, 1, 1}}
		},
	} {
		id := testIdentity(4096, 8)
		set(id)
		if _, err := DecodeIdentity(id.Encode()); err != ErrField || id.Validate() != ErrField {
			t.Errorf("%s: %v", name, err)
		}
		id.Features.Incompat = 4
		got, err := DecodeIdentity(id.Encode())
		if err != ErrUnsupported || got.Features.UnknownIncompat() != 4 {
			t.Errorf("%s, with a feature: %v", name, err)
		}
	}
	patch := func(off int, v uint32) error {
		b := testIdentity(4096, 8).Encode()
		binary.LittleEndian.PutUint32(b[off:], v)
		binary.LittleEndian.PutUint64(b[idSum:], xxh3.Hash(b[:idSum]))
		_, err := DecodeIdentity(b)
		return err
	}
	wantErr(t, patch(idLineage, MaxLineage+1), ErrField)
	wantErr(t, patch(idLineage, math.MaxUint32), ErrField)
	wantErr(t, patch(idSize, 8192), ErrField)
	wantErr(t, patch(idVersion, Version+1), ErrUnsupported)
	wantErr(t, patch(idReserved, 1), ErrPadding)
	wantErr(t, patch(idEntries, 1), ErrPadding)
	wantErr(t, patch(idReserved2, 1), ErrPadding)
	b := testIdentity(4096, 8).Encode()
	b[idReserved], b[idIncompat] = 1, 1
	got, err := DecodeIdentity(reseal(b, 0))
	if err != nil || got.Features.UnknownIncompat() != 1 {
		t.Errorf("reserved bytes of a later version: %+v, %v", got.Features, err)
	}
	full := testIdentity(4096, 8)
	for i := range MaxLineage {
		full.Lineage = append(full.Lineage, Ancestor{full.LogID, uint64(i + 1), int64(i+1) << 20, 1, 1})
	}
	b = full.Encode()
	if got, err := DecodeIdentity(b); err != nil || len(got.Lineage) != MaxLineage {
		t.Errorf("a full lineage: %d entries, %v", len(got.Lineage), err)
	}
	b[idLineage]++
	_, err = DecodeIdentity(reseal(b, 0))
	wantErr(t, err, ErrField)
	_, err = DecodeIdentity(testIdentity(4096, 8).Encode()[:IdentitySize-1])
	wantErr(t, err, ErrMark)
}

// TestPayload_CopiesOfStructures: C34, payload that is a byte-exact copy of
// structures of this file, at this very offset too, stays payload.
func TestPayload_CopiesOfStructures(t *testing.T) {
	id := testIdentity(4096, 8)
	g := id.Geometry()
	forged := history(1, 5, oneRecord(64))[0]
	var copies []byte
	for off := g.HeaderArea() + 32; off < g.HeaderArea()+3*4096; off += GroupHeaderSize {
		b := make([]byte, PageHeaderSize)
		g.PutPage(b, g.PageStart(off)+4096, PageHeader{Number: g.Page(off) + 1, First: 32, Last: 1})
		copies = append(copies, b...)
	}
	slot := make([]byte, SlotSize)
	g.PutSlot(slot, SlotOffsetA, testSlot(g))
	copies = append(append(copies, slot...), id.Encode()...)
	groups := history(0, 0, commitOf(copies, nil), oneRecord(8))
	start := g.HeaderArea() + PageHeaderSize
	// A group, sealed for the very place where it will lie.
	at := start + GroupHeaderSize + RecordHeaderSize + 1024
	g.PutGroup(groups[0].body[RecordHeaderSize+1024:], at, &forged.GroupHeader)
	copy(copies, groups[0].body[RecordHeaderSize:])
	groups = history(0, 0, commitOf(copies, nil), oneRecord(8))

	b := NewBuilder(g)
	raw := layOut(b, g.HeaderArea(), 0, groups)
	if _, err := g.DecodeGroup(raw[at-b.Offset():], at); err != nil {
		t.Fatalf("the forgery is not one: %v", err)
	}
	got, err := walk(g, raw, b.Offset(), g.HeaderArea(), groups[0], 2)
	if err != nil {
		t.Fatal(err)
	}
	for r := range Records(got[0].body) {
		if len(r.Data) > 0 && !bytes.Equal(r.Data, copies) {
			t.Error("payload changed")
		}
	}
	for page := g.HeaderArea(); page < b.End(); page += 4096 {
		h, err := g.DecodePage(raw[page-b.Offset():], page)
		if err != nil || page > g.HeaderArea() && h.First == 32 {
			t.Errorf("page at %d: %+v, %v: payload lies where a page header belongs", page, h, err)
		}
	}
}

// The last value of every field that a log can have is one that it can have.
func TestIdentity_Extremes(t *testing.T) {
	for name, set := range map[string]func(*Identity){
		"smallest page":   func(id *Identity) { id.PageSize = MinPageSize },
		"largest page":    func(id *Identity) { id.PageSize = MaxPageSize },
		"smallest record": func(id *Identity) { id.MaxRecord = 1 },
		"largest record":  func(id *Identity) { id.MaxRecord = MaxRecordBytes },
		"smallest group":  func(id *Identity) { id.MaxGroup = RecordHeaderSize + 8 },
		"largest group":   func(id *Identity) { id.MaxGroup = MaxGroupBytes },
		"one record":      func(id *Identity) { id.MaxRecords = 1 },
		"most records":    func(id *Identity) { id.MaxRecords = MaxGroupRecords },
		"largest size":    func(id *Identity) { id.MaxSize = math.MaxInt64 },
		"last base":       func(id *Identity) { id.Base = Boundary{id.LogID, math.MaxInt64 - 1, 1} },
	} {
		id := testIdentity(4096, 8)
		set(id)
		if err := id.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
