package observer

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/tidemark-log/tidemark/pagelog"
)

// pager cuts what a baseline shows into pages within its limits, and yields them
// as long as all of it is read from one file.
type pager struct {
	sub   *Subscription
	b     *baseline
	yield func(Page, error) bool
	page  Page
	size  int64
	over  bool // nothing more is to be yielded
}

// begin begins an empty page.
func (p *pager) begin() {
	p.page, p.size = Page{At: p.b.at}, 0
	if p.b.entries {
		p.page.Oldest = p.b.after + 1
	}
}

// flush yields the page, unless it is empty or what is in it may be of another
// file than what was yielded before. The reader never goes back to an earlier
// file: if it is at the baseline's now, all that was read so far is of that.
func (p *pager) flush() {
	if p.over || len(p.page.Commits)+len(p.page.Entries) == 0 {
		return
	}
	if p.sub.hub.reader.Generation() != p.b.generation {
		p.fail(fmt.Errorf("%w: it was compacted since the baseline at revision %d was begun; begin another", pagelog.ErrReplaced, p.b.at.Revision))
		return
	}
	p.over = !p.yield(p.page, nil)
	p.begin()
}

// fail ends the baseline.
func (p *pager) fail(err error) {
	if !p.over {
		p.over = true
		p.yield(Page{At: p.b.at}, err)
	}
}

// room yields the page if so many bytes more have no room in it.
func (p *pager) room(size int64) {
	if n := len(p.page.Commits) + len(p.page.Entries); n >= p.b.items || n > 0 && p.size+size > p.b.bytes {
		p.flush()
	}
	p.size += size
}

// put adds commits that were read.
func (p *pager) put(read []*Commit) error {
	for _, c := range read {
		if p.over {
			return nil
		}
		if p.b.entries {
			if err := p.entries(c); err != nil {
				return err
			}
		} else if shown := p.sub.view.through(c); shown != nil {
			p.room(c.size)
			p.page.Commits = append(p.page.Commits, shown)
		}
	}
	return nil
}

// entries adds the keys of a commit that lead to it at the baseline's revision.
func (p *pager) entries(c *Commit) error {
	shown := p.sub.view.through(c)
	if shown == nil {
		return nil
	}
	put := map[Key]bool{}          // a key may be given to a record twice
	for _, k := range shown.Keys { // in the order of their records, as Batch.Key adds them
		if v := p.sub.view.Namespace; put[k] || v != "" && k.Namespace != v {
			continue
		}
		put[k] = true
		revision, record, err := p.sub.hub.reader.LookupAt(p.b.at.Revision, []byte(k.Namespace), []byte(k.Key))
		if err != nil {
			return fmt.Errorf("namespace %q, key %q: %w", k.Namespace, k.Key, err)
		}
		if revision != c.Revision || record != k.Record {
			continue // it was used again
		}
		r := shown.record(k.Record)
		p.room(overhead + int64(len(k.Namespace)+len(k.Key)+len(r.Data)))
		if p.over {
			return nil
		}
		p.page.Entries = append(p.page.Entries, Entry{k.Namespace, k.Key, c.Revision, r})
	}
	return nil
}

// record returns a record by its index in the commit.
func (c *Commit) record(index uint32) Record {
	i, ok := slices.BinarySearchFunc(c.Records, index, func(r Record, index uint32) int { return cmp.Compare(r.Index, index) })
	if !ok { // no writer of this engine's adds such a key
		return Record{Index: index, Err: fmt.Errorf("%w: a key of revision %d leads to record %d, which is none", pagelog.ErrCorrupt, c.Revision, index)}
	}
	return c.Records[i]
}
