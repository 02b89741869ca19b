package faults_test

import (
	"bytes"
	"encoding/binary"
	"os"
)

// A library for Wine 8, which lacks the one from which the Go runtime draws
// random bytes. It has no code: its only export leads to a function that Wine
// has.
const (
	dllName    = "bcryptprimitives.dll"
	dllExport  = "ProcessPrng"
	dllForward = "advapi32.SystemFunction036"

	sectionAddress = 0x1000
	fileUnit       = 0x200
)

// writeRandomDLL writes the library.
func writeRandomDLL(path string) error {
	var b bytes.Buffer
	put := func(fields ...any) {
		for _, f := range fields {
			if err := binary.Write(&b, binary.LittleEndian, f); err != nil {
				panic("internal error: " + err.Error())
			}
		}
	}
	// The stub of the old system, of which only the first and last field count.
	stub := make([]byte, 64)
	copy(stub, "MZ")
	stub[60] = 64
	put(stub, []byte("PE\x00\x00"))
	// File header: AMD64, one section, no symbols; a library for 64 bits.
	put(uint16(0x8664), uint16(1), uint32(0), uint32(0), uint32(0), uint16(240), uint16(0x2022))
	// Optional header: PE32+, no code, no entry.
	put(uint16(0x20b), uint16(0), uint32(0), uint32(fileUnit), uint32(0), uint32(0), uint32(sectionAddress))
	put(uint64(0x180000000), uint32(0x1000), uint32(fileUnit))
	put(uint16(6), uint16(0), uint16(0), uint16(0), uint16(6), uint16(0), uint32(0))
	put(uint32(2*sectionAddress), uint32(fileUnit), uint32(0), uint16(3), uint16(0x160))
	put(uint64(0x100000), uint64(0x1000), uint64(0x100000), uint64(0x1000), uint32(0), uint32(16))
	// Directories: the first of 16 is that of exports.
	put(uint32(sectionAddress), uint32(fileUnit), make([]byte, 15*8))
	// The one section: initialised data that may be read.
	name := make([]byte, 8)
	copy(name, ".rdata")
	put(name, uint32(fileUnit), uint32(sectionAddress), uint32(fileUnit), uint32(fileUnit))
	put(make([]byte, 12), uint32(0x40000040))
	b.Write(make([]byte, fileUnit-b.Len()))
	b.Write(exportSection())
	return os.WriteFile(path, b.Bytes(), 0o644)
}

// exportSection is the directory of exports with the strings it names. An
// address that lies within it is the name of a function elsewhere.
func exportSection() []byte {
	const functions, names, ordinals, texts = 0x28, 0x2c, 0x30, 0x60
	s := make([]byte, fileUnit)
	at := texts
	text := func(t string) uint32 {
		start := at
		at += copy(s[at:], t+"\x00")
		return uint32(sectionAddress + start)
	}
	put := func(off int, v uint32) { binary.LittleEndian.PutUint32(s[off:], v) }
	put(12, text(dllName))
	put(names, text(dllExport))
	put(functions, text(dllForward))
	for i, v := range []uint32{1, 1, 1, sectionAddress + functions, sectionAddress + names, sectionAddress + ordinals} {
		put(16+4*i, v) // ordinal base, counts, and where the tables are
	}
	return s
}
