package disktest_test

import (
	"io/fs"
	"slices"
	"testing"

	"github.com/tidemark-log/tidemark/internal/disk"
	"github.com/tidemark-log/tidemark/internal/simdisk"
)

var dirBehaviours = []behaviour{
	{"Open/Missing", func(t *testing.T, dir opener) {
		_, err := dir().Open("absent", disk.ReadOnly)
		refuse(t, "Open", err, fs.ErrNotExist)
	}},
	{"Open/Existing", func(t *testing.T, dir opener) {
		d := dir()
		create(t, d, "log", "tide")
		holds(t, open(t, d, "log", disk.ReadOnly), "tide")
		f := open(t, dir(), "log", disk.ReadWrite)
		put(t, f, "mark", 4)
		holds(t, open(t, d, "log", disk.ReadOnly), "tidemark")
	}},
	{"Open/ReadOnlyWritesNothing", func(t *testing.T, dir opener) {
		d := dir()
		create(t, d, "log", "tide")
		f := open(t, d, "log", disk.ReadOnly)
		if n, err := f.WriteAt([]byte("x"), 0); err == nil || n != 0 {
			t.Errorf("WriteAt = %d, %v", n, err)
		}
		for what, err := range map[string]error{
			"Truncate": f.Truncate(0), "Allocate": f.Allocate(0, 100), "Punch": f.Punch(0, 4),
		} {
			if err == nil {
				t.Errorf("%s succeeded", what)
			}
		}
		holds(t, f, "tide")
	}},
	{"Create/Taken", func(t *testing.T, dir opener) {
		d := dir()
		f := create(t, d, "log", "tide")
		_, err := dir().Create("log")
		refuse(t, "Create", err, fs.ErrExist)
		holds(t, f, "tide")
	}},
	{"Create/EmptyAndReadable", func(t *testing.T, dir opener) {
		f := create(t, dir(), "log", "")
		holds(t, f, "")
		put(t, f, "tide", 0)
		holds(t, f, "tide")
		isNamed(t, f, true, 1)
	}},
	{"Names/ThatAreNone", func(t *testing.T, dir opener) {
		d := dir()
		f := create(t, d, "log", "")
		for _, name := range []string{"", ".", "..", "a/b", "../log", "/log", "a\\b", "a\x00", "c:log"} {
			_, err := d.Open(name, disk.ReadOnly)
			refuse(t, "Open "+name, err, fs.ErrInvalid)
			_, err = d.Create(name)
			refuse(t, "Create "+name, err, fs.ErrInvalid)
			refuse(t, "Publish "+name, d.Publish(f, name), fs.ErrInvalid)
			refuse(t, "Replace "+name, d.Replace(f, name), fs.ErrInvalid)
			refuse(t, "Remove "+name, d.Remove(name), fs.ErrInvalid)
		}
		isNamed(t, f, true, 1)
	}},
	{"Publish/Free", func(t *testing.T, dir opener) {
		d := dir()
		f := create(t, d, "tmp", "tide")
		need(t, d.Publish(f, "log"))
		isNamed(t, f, true, 1)
		holds(t, open(t, d, "log", disk.ReadOnly), "tide")
		_, err := d.Open("tmp", disk.ReadOnly)
		refuse(t, "Open of the old name", err, fs.ErrNotExist)
	}},
	{"Publish/Taken", func(t *testing.T, dir opener) {
		d := dir()
		old, f := create(t, d, "log", "old"), create(t, d, "tmp", "new")
		refuse(t, "Publish", d.Publish(f, "log"), fs.ErrExist)
		isNamed(t, f, true, 1)
		isNamed(t, old, true, 1)
		holds(t, open(t, d, "log", disk.ReadOnly), "old")
		holds(t, open(t, d, "tmp", disk.ReadOnly), "new")
	}},
	{"Publish/NameLost", func(t *testing.T, dir opener) {
		d := dir()
		needUnlink(t, d)
		f := create(t, d, "tmp", "mine")
		need(t, d.Remove("tmp"))
		create(t, d, "tmp", "another's")
		refuse(t, "Publish", d.Publish(f, "log"), fs.ErrNotExist)
		_, err := d.Open("log", disk.ReadOnly)
		refuse(t, "Open", err, fs.ErrNotExist)
	}},
	{"Publish/ForeignFile", func(t *testing.T, dir opener) {
		d := dir()
		foreign := create(t, simdisk.New().Dir(), "tmp", "")
		refuse(t, "Publish", d.Publish(foreign, "log"), fs.ErrInvalid)
		refuse(t, "Replace", d.Replace(foreign, "log"), fs.ErrInvalid)
	}},
	{"Publish/ClosedFile", func(t *testing.T, dir opener) {
		d := dir()
		f := create(t, d, "tmp", "")
		need(t, f.Close())
		refuse(t, "Publish", d.Publish(f, "log"), fs.ErrClosed)
	}},
	{"Replace/Existing", func(t *testing.T, dir opener) {
		d := dir()
		needUnlink(t, d)
		old, f := create(t, d, "log", "old"), create(t, d, "tmp", "new")
		need(t, d.Replace(f, "log"))
		isNamed(t, f, true, 1)
		isNamed(t, old, false, 0)
		holds(t, old, "old")
		holds(t, open(t, d, "log", disk.ReadOnly), "new")
		names, err := d.Names()
		if err != nil || !slices.Equal(names, []string{"log"}) {
			t.Errorf("Names = %q, %v", names, err)
		}
	}},
	{"Replace/ClosedExisting", func(t *testing.T, dir opener) {
		d := dir()
		need(t, create(t, d, "log", "old").Close())
		f := create(t, d, "tmp", "new")
		need(t, f.Lock(), d.Replace(f, "log"), d.Sync())
		isNamed(t, f, true, 1)
		holds(t, open(t, d, "log", disk.ReadOnly), "new")
	}},
	{"Replace/Missing", func(t *testing.T, dir opener) {
		d := dir()
		f := create(t, d, "tmp", "new")
		need(t, d.Replace(f, "log"))
		holds(t, open(t, d, "log", disk.ReadOnly), "new")
	}},
	{"Remove", func(t *testing.T, dir opener) {
		d := dir()
		needUnlink(t, d)
		f := create(t, d, "log", "tide")
		need(t, d.Remove("log"))
		isNamed(t, f, false, 0)
		put(t, f, "mark", 4)
		holds(t, f, "tidemark")
		need(t, f.Sync())
		refuse(t, "second Remove", d.Remove("log"), fs.ErrNotExist)
		create(t, d, "log", "another")
		isNamed(t, f, false, 0)
	}},
	{"Names", func(t *testing.T, dir opener) {
		d, all := dir(), []string{"a", "b", "c"}
		for _, name := range all {
			create(t, d, name, "")
		}
		for range 2 { // the listing has no position that a first one would leave behind
			names, err := d.Names()
			need(t, err)
			slices.Sort(names)
			if !slices.Equal(names, all) {
				t.Errorf("Names = %q, want %q", names, all)
			}
		}
	}},
	{"Sync", func(t *testing.T, dir opener) {
		d := dir()
		create(t, d, "log", "")
		need(t, d.Sync())
	}},
	{"FileSystem", func(t *testing.T, dir opener) {
		where, err := dir().FileSystem()
		if err != nil || where.Name == "" {
			t.Errorf("FileSystem = %+v, %v", where, err)
		}
	}},
	{"Close/FilesStayUsable", func(t *testing.T, dir opener) {
		d := dir()
		f := create(t, d, "log", "tide")
		need(t, f.Lock(), d.Close())
		put(t, f, "mark", 4)
		holds(t, f, "tidemark")
		isNamed(t, f, true, 1)
		need(t, f.Sync(), f.Close())
	}},
	{"Close/EndsTheHandle", func(t *testing.T, dir opener) {
		d := dir()
		f := create(t, d, "log", "")
		need(t, d.Close())
		_, err := d.Open("log", disk.ReadOnly)
		refuse(t, "Open", err, fs.ErrClosed)
		_, err = d.Create("tmp")
		refuse(t, "Create", err, fs.ErrClosed)
		refuse(t, "Publish", d.Publish(f, "x"), fs.ErrClosed)
		refuse(t, "Replace", d.Replace(f, "x"), fs.ErrClosed)
		refuse(t, "Remove", d.Remove("log"), fs.ErrClosed)
		_, err = d.Names()
		refuse(t, "Names", err, fs.ErrClosed)
		refuse(t, "Sync", d.Sync(), fs.ErrClosed)
		_, err = d.FileSystem()
		refuse(t, "FileSystem", err, fs.ErrClosed)
		refuse(t, "second Close", d.Close(), fs.ErrClosed)
	}},
}
