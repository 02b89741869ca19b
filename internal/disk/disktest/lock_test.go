package disktest_test

import (
	"testing"

	"github.com/tidemark-log/tidemark/internal/disk"
)

var lockBehaviours = []behaviour{
	{"Lock/ExcludesOthers", func(t *testing.T, dir opener) {
		d := dir()
		f := create(t, d, "log", "tide")
		same, other := open(t, d, "log", disk.ReadWrite), open(t, dir(), "log", disk.ReadWrite)
		need(t, f.Lock())
		refuse(t, "Lock through the same directory", same.Lock(), disk.ErrLocked)
		refuse(t, "Lock through another", other.Lock(), disk.ErrLocked)
		need(t, f.Lock()) // its own lock is not in its way
		need(t, f.Close())
		need(t, other.Lock())
		refuse(t, "Lock after the change of hands", same.Lock(), disk.ErrLocked)
	}},
	{"Lock/ReadersGoOn", func(t *testing.T, dir opener) {
		d := dir()
		f := create(t, d, "log", "tide")
		need(t, f.Lock())
		put(t, f, "mark", 4)
		holds(t, open(t, dir(), "log", disk.ReadOnly), "tidemark")
	}},
	{"Lock/OtherCloseKeepsIt", func(t *testing.T, dir opener) {
		d := dir()
		f := create(t, d, "log", "tide")
		need(t, f.Lock())
		other := open(t, d, "log", disk.ReadWrite)
		refuse(t, "Lock", other.Lock(), disk.ErrLocked)
		need(t, other.Close(), open(t, d, "log", disk.ReadOnly).Close())
		refuse(t, "Lock after closing another handle", open(t, d, "log", disk.ReadWrite).Lock(), disk.ErrLocked)
	}},
	{"Lock/StaysWithTheFile", func(t *testing.T, dir opener) {
		d := dir()
		needUnlink(t, d)
		f := create(t, d, "tmp", "tide")
		need(t, f.Lock(), d.Publish(f, "log"))
		refuse(t, "Lock under the new name", open(t, d, "log", disk.ReadWrite).Lock(), disk.ErrLocked)
		need(t, d.Remove("log"))
		need(t, create(t, d, "log", "another").Lock())
	}},
	{"Lock/EachFileItsOwn", func(t *testing.T, dir opener) {
		d := dir()
		need(t, create(t, d, "a", "").Lock(), create(t, d, "b", "").Lock())
	}},
}
