// Package simdisk is a directory in memory that can lose power. It implements
// disk.Dir and disk.File, remembers what no sync has covered yet, and builds
// every state a disk may be in after a power cut, each as a directory of its
// own in which recovery runs and may lose power again.
//
// The rules of the model:
//
//  1. Durable is what a Sync that returned nil covers, in a file whose name a
//     Dir.Sync that returned nil covers.
//  2. Of the 512-byte sectors that are in flight any subset may land, each as
//     its old content, its new one, or any version written in between.
//  3. File sizes and names are atoms of their own. Mode Strict lets any subset
//     of them land; Mode Journal lets a prefix of the metadata operations land,
//     as a journaling file system does.
//  4. A failed File.Sync may have persisted any part of what it should have
//     covered and marks all of it clean: the running system still sees it, no
//     later sync persists it, and it stays uncertain until it is written again
//     and synced. A failed Dir.Sync changes nothing.
//  5. With Garbage, a sector in flight that the caller does not declare to
//     hold acknowledged bytes may also end as noise or as zeros.
//  6. A sync covers the writes that returned before it began. There is a crash
//     point before every operation that changes something, and another inside
//     every sync.
//  7. A size may land without its data: the gap reads as zeros (with Garbage,
//     as stale noise).
//
// Everything is deterministic: no clock, no random source without a seed, no
// iteration over a map. A run that issues the same operations in the same order
// has the same crash points, images and image numbers.
package simdisk
