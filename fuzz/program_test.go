package fuzz

import (
	"encoding/binary"
	"slices"

	"github.com/tidemark-log/tidemark/frame"
)

// A program is one byte that chooses an original, and then steps of eight
// bytes: what to do, where (a structure and a distance from it, or nothing in
// particular), with what.
const stepSize = 8

// class says what may be expected of an edited log.
type class int

const (
	accident class = iota // what disks and file systems do: the strictest promises hold
	mixed                 // whole groups of another history of the same log came in
	forged                // sums were made to hold: no promise but soundness of mind
)

// edited is a log after a program ran over it.
type edited struct {
	*original
	b     []byte
	class class
	low   int64 // the first byte that differs from the original, or its length
}

const maxSize = 96 << 10 // no program makes a log longer

// runProgram applies a program.
func runProgram(p []byte) *edited {
	if len(p) == 0 {
		p = []byte{0}
	}
	e := &edited{original: choose(p[0])}
	e.b = slices.Clone(e.original.b)
	for p = p[1:]; len(p) >= stepSize; p = p[stepSize:] {
		e.step(p[:stepSize])
	}
	e.low = int64(len(e.original.b))
	for i := range min(len(e.b), len(e.original.b)) {
		if e.b[i] != e.original.b[i] {
			e.low = int64(i)
			break
		}
	}
	if n := int64(len(e.b)); n < e.low {
		e.low = n
	}
	return e
}

// place turns two bytes into an offset: at a structure, or a little beside it.
func (e *edited) place(what, by byte) int64 {
	marks := []int64{frame.IdentityOffset, frame.IdentityCopyOffset, frame.SlotOffsetA, frame.SlotOffsetB, e.floor, int64(len(e.b))}
	for _, g := range e.groups {
		marks = append(marks, g.off, g.off+frame.GroupHeaderSize, g.end)
	}
	marks = append(marks, e.pages...)
	off := marks[int(what)%len(marks)] + int64(int8(by))*4
	return min(max(off, 0), int64(len(e.b)))
}

// cut returns up to n bytes of the log at off.
func (e *edited) cut(off int64, n int) []byte {
	size := int64(len(e.b))
	return e.b[min(off, size):min(off+int64(n), size)]
}

func (e *edited) step(s []byte) {
	at := e.place(s[1], s[2])
	n := int(binary.LittleEndian.Uint16(s[4:])) % (4096 + 1)
	steps := []func(){
		func() { e.flip(at, s) },
		func() { clear(e.cut(at, n)) },
		func() { // a sector that was lost, or is another's
			at &^= 511
			copy(e.cut(at, 512), slices.Clone(e.cut(e.place(s[6], s[7])&^511, 512)))
		},
		func() { copy(e.cut(at, n), slices.Clone(e.cut(e.place(s[6], s[7]), n))) },
		func() { e.b = e.b[:at] },
		func() { e.extend(n, s[6]) },
		func() { e.splice(s) },
		func() { e.sibling(s) },
		func() { e.forgeGroup(s) },
		func() { e.forgeSlot(s) },
		func() { e.forgePage(s) },
		func() { e.forgeIdentity(s) },
		func() { e.rechain(s) },
	}
	steps[int(s[0])%len(steps)]()
}

func (e *edited) flip(at int64, s []byte) {
	if b := e.cut(at+int64(s[4]&3), 1); len(b) > 0 {
		b[0] ^= max(1, s[6])
	}
}

func (e *edited) extend(n int, with byte) {
	n = min(n, maxSize-len(e.b))
	for i := range max(n, 0) {
		e.b = append(e.b, with*byte(i|1))
	}
}

// groupAt chooses a group.
func (e *edited) groupAt(which byte) (spot, bool) {
	if len(e.groups) == 0 {
		return spot{}, false
	}
	g := e.groups[int(which)%len(e.groups)]
	return g, g.off+frame.GroupHeaderSize <= int64(len(e.b))
}

// splice copies the bytes of one group over the place of another.
func (e *edited) splice(s []byte) {
	to, ok := e.groupAt(s[1])
	from, ok2 := e.groupAt(s[6])
	if ok && ok2 {
		copy(e.cut(to.off, int(from.end-from.off)), slices.Clone(e.cut(from.off, int(from.end-from.off))))
	}
}

// sibling copies a stretch from where it lies in another history of this log,
// as a restored copy or a misdirected write may.
func (e *edited) sibling(s []byte) {
	other := choose(s[3])
	from := e.place(s[1], s[2])
	to := min(e.place(s[6], s[7]), int64(len(other.b)))
	if from < to {
		copy(e.cut(from, int(to-from)), other.b[from:to])
		e.class = max(e.class, mixed)
	}
}

// forgeGroup changes a field of a group header and makes its sum hold.
func (e *edited) forgeGroup(s []byte) {
	g, ok := e.groupAt(s[1])
	if !ok {
		return
	}
	h, v := g.group, int64(int16(binary.LittleEndian.Uint16(s[4:])))
	switch s[2] % 9 {
	case 0:
		h.Flags ^= uint16(v)
	case 1:
		h.Count += uint32(v)
	case 2:
		h.Revision += uint64(v)
	case 3:
		h.Body += v * 8
	case 4:
		h.DurableEnd += v * 8
	case 5:
		h.Prev ^= uint64(v)
	case 6:
		h.Digest ^= uint64(v)
	case 7:
		h.Epoch += uint64(v)
	case 8:
		h.Body <<= s[4] % 64
	}
	e.geo.PutGroup(e.b[g.off:], g.off, &h)
	e.class = forged
}

// forgeSlot changes a field of a slot and makes its sum hold.
func (e *edited) forgeSlot(s []byte) {
	off := frame.SlotOffsets[s[1]%2]
	slot, err := e.geo.DecodeSlot(e.original.b[off:], off)
	if err != nil || off+frame.SlotSize > int64(len(e.b)) {
		return
	}
	v := int64(int16(binary.LittleEndian.Uint16(s[4:])))
	places := []*frame.Place{&slot.Durable, &slot.Floor, &slot.Check, &slot.Before}
	p := places[int(s[6])%len(places)]
	switch s[2] % 7 {
	case 0:
		slot.Number += uint64(v)
	case 1:
		slot.Epoch += uint64(v)
	case 2:
		p.Offset += v * 8
	case 3:
		p.Revision += uint64(v)
	case 4:
		p.Digest ^= uint64(v)
	case 5:
		slot.Features.Incompat ^= uint64(v)
	case 6:
		if g, ok := e.groupAt(s[7]); ok { // a place that exists, and is not meant
			*p = frame.Place{Offset: g.end, Revision: g.group.Revision, Digest: g.group.Digest}
		}
	}
	e.geo.PutSlot(e.b[off:], off, &slot)
	e.class = forged
}

// forgePage changes a page header and makes its sum hold.
func (e *edited) forgePage(s []byte) {
	if len(e.pages) == 0 {
		return
	}
	off := e.pages[int(s[1])%len(e.pages)]
	if off+frame.PageHeaderSize > int64(len(e.b)) {
		return
	}
	h, err := e.geo.DecodePage(e.original.b[off:], off)
	if err != nil {
		return
	}
	v := int16(binary.LittleEndian.Uint16(s[4:]))
	switch s[2] % 3 {
	case 0:
		h.First = uint32(int32(h.First) + int32(v)*8)
	case 1:
		h.Last += uint64(int64(v))
	case 2:
		h.Number += int64(v)
	}
	e.geo.PutPage(e.b[off:], off, h)
	e.class = forged
}

// forgeIdentity changes the limits and shape of the log and makes the sum hold.
func (e *edited) forgeIdentity(s []byte) {
	id, v := e.id, binary.LittleEndian.Uint16(s[4:])
	switch s[2] % 7 {
	case 0:
		id.PageSize = 1 << (v % 32)
	case 1:
		id.Align = []uint32{8, 512, 4096, uint32(v)}[v%4]
	case 2:
		id.MaxGroup = 1 << (v % 64)
	case 3:
		id.MaxRecord = 1 << (v % 64)
	case 4:
		id.Salt ^= uint64(v)
	case 5:
		id.Features.Incompat = uint64(v)
	case 6:
		id.Base = frame.Boundary{LogID: [16]byte{1}, Revision: uint64(v)}
	}
	b := id.Encode()
	for i, off := range []int64{frame.IdentityOffset, frame.IdentityCopyOffset} {
		if s[1]>>i&1 == 0 {
			copy(e.cut(off, len(b)), b)
		}
	}
	e.class = forged
}

// rechain changes a record of a group and makes every sum and the digest of
// that group hold: somebody wrote another history.
func (e *edited) rechain(s []byte) {
	g, ok := e.groupAt(s[1])
	if !ok || g.end > int64(len(e.b)) {
		return
	}
	h := g.group
	body, _ := e.geo.Gather(slices.Clone(e.original.b[g.off:g.end]), &h, g.off)
	var again []byte
	for r := range frame.Records(body) {
		r.Data = slices.Clone(r.Data)
		if len(r.Data) > 0 {
			r.Data[int(s[4])%len(r.Data)] ^= max(1, s[5])
		}
		if s[2]%2 == 0 {
			again = frame.AppendRecord(again, r.Kind+uint32(s[6]), r.Flags, frame.Plain, r.Data)
		} else {
			again = frame.AppendStored(again, r)
		}
	}
	h.Digest = h.ChainDigest(again)
	b := frame.NewBuilder(e.geo)
	b.Reset(g.from, g.last)
	if len(again) != len(body) {
		return
	}
	b.Add(&h, again)
	b.Seal(h.DurableEnd)
	copy(e.cut(b.Offset(), len(b.Bytes())), b.Bytes())
	e.class = forged
}
