package frame

// This file is the wire format, version 1, as a table: where each field lies
// in its structure and how many bytes it takes. docs/FORMAT.md shows the same
// tables and TestLayout_MatchesFormat fails when the two differ. The comment
// behind each constant begins with the field's size in bytes. All integers are
// little-endian. Nothing outside this package does arithmetic on these.

// Version is the format version this package writes.
const Version = 1

// Sizes of the fixed structures, in bytes.
const (
	IdentitySize     = 4096
	SlotSize         = 512
	PageHeaderSize   = 32
	GroupHeaderSize  = 80
	RecordHeaderSize = 24
	lineageSize      = 48
)

// Places in the header area, in bytes from the start of the file.
const (
	IdentityOffset     = 0         // first copy of the identity
	SlotOffsetA        = 4 * 1024  // slot 0
	SlotOffsetB        = 8 * 1024  // slot 1
	IdentityCopyOffset = 12 * 1024 // second copy of the identity
	minHeaderArea      = 16 * 1024 // the header area is at least this large
)

// Bounds that hold whatever a file says.
const (
	MinPageSize     = 4 * 1024
	MaxPageSize     = 1024 * 1024
	MaxRecordBytes  = 1 << 30 // one stored or raw record
	MaxGroupBytes   = 1 << 31 // the body of one group
	MaxGroupRecords = 1 << 20
	MaxLineage      = 48

	maxDerivedBody = 17 << 20 // body of a derived group, if the log's own limit is lower
	maxOffset      = 1 << 60  // of anything: sums of offsets and lengths stay far from overflow
)

// Identity: written once at creation, twice, each copy with its own sum.
const (
	idMagic      = 0    // 8 magic "TIDEMARK"
	idVersion    = 8    // 4 format version
	idSize       = 12   // 4 size of the identity, 4096
	idCompat     = 16   // 8 features at creation: compatible
	idReadOnly   = 24   // 8 features at creation: read-only-compatible
	idIncompat   = 32   // 8 features at creation: incompatible
	idPageSize   = 40   // 4 page size
	idAlign      = 44   // 4 alignment of writes: 8, 512 or 4096
	idLogID      = 48   // 16 log ID
	idSalt       = 64   // 8 salt
	idApp        = 72   // 8 application ID
	idMaxRecord  = 80   // 8 limit: bytes of a record
	idMaxGroup   = 88   // 8 limit: bytes of a group's body
	idMaxRecords = 96   // 4 limit: records of a group
	idLineage    = 100  // 4 entries of the lineage
	idMaxSize    = 104  // 8 limit: bytes of the file, 0 for none
	idIndexKey   = 112  // 16 key of the index hash
	idBaseLog    = 128  // 16 base: log ID, zero for none
	idBaseRev    = 144  // 8 base: revision
	idBaseDigest = 152  // 8 base: digest
	idCreated    = 160  // 8 wall time of creation, nanoseconds since 1970, advisory
	idReserved   = 168  // 88 zero
	idEntries    = 256  // 2304 lineage, 48 entries of 48 bytes
	idReserved2  = 2560 // 1528 zero
	idSum        = 4088 // 8 sum of all before it, unseeded
)

// Lineage entry: one ancestor of a fork, oldest first.
const (
	linLogID    = 0  // 16 log ID of the ancestor
	linSalt     = 16 // 8 salt of the ancestor
	linEnd      = 24 // 8 end offset: what starts below it keeps this salt
	linRevision = 32 // 8 revision of the boundary
	linDigest   = 40 // 8 digest of the boundary
)

// Slot: the writer's durable state, one sector, newest valid of two wins.
const (
	slotMagic      = 0   // 8 magic "TIDESLOT"
	slotNumber     = 8   // 8 slot number, +1 at each slot write
	slotEpoch      = 16  // 8 epoch of the writer
	slotWriter     = 24  // 16 random incarnation of the writer
	slotEnd        = 40  // 8 durable: end offset
	slotRevision   = 48  // 8 durable: revision
	slotDigest     = 56  // 8 durable: digest
	slotFloor      = 64  // 8 retention floor: offset
	slotFloorRev   = 72  // 8 retention floor: revision of the last dropped commit
	slotFloorDig   = 80  // 8 retention floor: digest of that commit
	slotCheck      = 88  // 8 newest checkpoint: offset of its group, 0 for none
	slotCheckRev   = 96  // 8 newest checkpoint: revision
	slotCheckDig   = 104 // 8 newest checkpoint: digest of its group
	slotBefore     = 112 // 8 checkpoint before it: offset, 0 for none
	slotBeforeRev  = 120 // 8 checkpoint before it: revision
	slotBeforeDig  = 128 // 8 checkpoint before it: digest of its group
	slotFence      = 136 // 8 fencing token
	slotRun        = 144 // 32 hash of the run the log belongs to
	slotGeneration = 176 // 8 file generation
	slotSuperseded = 184 // 8 file generation that supersedes this file, 0 for none
	slotCompat     = 192 // 8 later features: compatible
	slotReadOnly   = 200 // 8 later features: read-only-compatible
	slotIncompat   = 208 // 8 later features: incompatible
	slotTime       = 216 // 8 wall time, nanoseconds since 1970, advisory
	slotReserved   = 224 // 280 zero
	slotSum        = 504 // 8 sum of all before it, seeded with salt + own offset
)

// Page header: at the start of every page after the header area.
const (
	pageMagic  = 0  // 4 magic "TPGE"
	pageFirst  = 4  // 4 first start: where in the page the first group starts, 0 for none
	pageNumber = 8  // 8 page number: offset / page size
	pageLast   = 16 // 8 last data revision begun before the page's first byte
	pageSum    = 24 // 8 sum of all before it, seeded with the salt
)

// Group header: one per group, never across a page boundary.
const (
	groupMark    = 0  // 8 mark: xxh3-64 of "TIDEMARK GROUP" seeded with the salt
	groupVersion = 8  // 2 format version
	groupFlags   = 10 // 2 flags: bit 0 derived
	groupCount   = 12 // 4 record count
	groupRev     = 16 // 8 revision
	groupBody    = 24 // 8 body length, without page headers
	groupDurable = 32 // 8 durable end
	groupPrev    = 40 // 8 previous digest
	groupDigest  = 48 // 8 digest
	groupEpoch   = 56 // 8 epoch
	groupTime    = 64 // 8 wall time, nanoseconds since 1970, advisory
	groupSum     = 72 // 8 sum of all before it, seeded with salt + own offset
)

// Record header: before each payload, which is followed by zeros to 8.
const (
	recordLength = 0  // 4 stored length
	recordRaw    = 4  // 4 raw length if compressed, else 0
	recordKind   = 8  // 4 kind
	recordFlags  = 12 // 4 flags: bit 0 required, bits 8 to 15 codec
	recordSum    = 16 // 8 sum of the stored bytes, unseeded
)

const (
	identityMagic = "TIDEMARK"
	slotMagicText = "TIDESLOT"
	pageMagicText = "TPGE"
	groupMarkText = "TIDEMARK GROUP"
)
