// Package lossyfs is a file system in memory, of one folder, that loses on
// command what was not synced: data and names, each for itself. It is stricter
// than any real file system: syncing a file does not save its name.
package lossyfs

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"

	"github.com/tidemark-log/tidemark/faults/internal/unsynced"
)

// Mode is what becomes of what was not synced.
type Mode string

// The modes.
const (
	Drop    Mode = "drop"    // nothing of it is left
	Keep    Mode = "keep"    // everything is
	Journal Mode = "journal" // the names up to some moment are, and any sectors
	Strict  Mode = "strict"  // any names and any sectors are
)

// log is everything that happened, from which any loss can be rebuilt.
type log struct{ ops []op }

// op is one thing that happened. Which fields are used depends on the kind.
type op struct {
	kind kind
	file int    // number of the file
	data []byte // written at off
	off  int64  // or the size
	add  string // name that now leads to file
	del  string // name that is gone
}

type kind int

const (
	opWrite kind = iota
	opResize
	opSync
	opFailedSync // what was pending is clean in memory and never gets to the disk
	opName
	opSyncNames
)

func (l *log) note(o op) { l.ops = append(l.ops, o) }

// disk is what was replayed of a log.
type disk struct {
	files   map[int]*unsynced.File
	names   map[string]int // durable
	pending []op           // changes of names
}

// replay returns the disk after the first cut operations.
func (l *log) replay(cut int) *disk {
	d := &disk{files: map[int]*unsynced.File{}, names: map[string]int{}}
	for _, o := range l.ops[:cut] {
		if d.files[o.file] == nil {
			d.files[o.file] = &unsynced.File{}
		}
		f := d.files[o.file]
		switch o.kind {
		case opWrite:
			f.Write(o.data, o.off)
		case opResize:
			f.Resize(o.off)
		case opSync:
			f.Sync()
		case opFailedSync:
			f.FailSync()
		case opName:
			d.pending = append(d.pending, o)
		case opSyncNames:
			for _, o := range d.pending {
				o.rename(d.names)
			}
			d.pending = nil
		}
	}
	return d
}

// rename makes the change of names that o is.
func (o op) rename(names map[string]int) {
	if o.del != "" {
		delete(names, o.del)
	}
	if o.add != "" {
		names[o.add] = o.file
	}
}

// image writes what a loss after cut operations leaves into the new folder to.
func (l *log) image(cut int, seed uint64, mode Mode, to string) error {
	if cut < 0 || cut > len(l.ops) {
		return fmt.Errorf("no operation %d, there are %d", cut, len(l.ops))
	}
	r := rand.New(rand.NewPCG(seed, uint64(cut)))
	d := l.replay(cut)
	d.settleNames(mode, r)
	if err := os.Mkdir(to, 0o700); err != nil {
		return err
	}
	// In the order of the names, so that a seed says it all.
	for _, name := range slices.Sorted(maps.Keys(d.names)) {
		if err := os.WriteFile(filepath.Join(to, name), d.contents(d.names[name], mode, r), 0o600); err != nil {
			return err
		}
	}
	return nil
}

func (d *disk) settleNames(mode Mode, r *rand.Rand) {
	upTo := len(d.pending)
	switch mode {
	case Drop:
		upTo = 0
	case Journal:
		upTo = r.IntN(upTo + 1)
	}
	for _, o := range d.pending[:upTo] {
		if mode != Strict || r.IntN(2) == 0 {
			o.rename(d.names)
		}
	}
}

func (d *disk) contents(file int, mode Mode, r *rand.Rand) []byte {
	switch mode {
	case Drop:
		return d.files[file].Drop()
	case Keep:
		return d.files[file].Keep()
	}
	return d.files[file].Some(r)
}
