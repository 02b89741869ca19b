package pagelog

import (
	"errors"

	"github.com/tidemark-log/tidemark/frame"
)

// Taking up the index at opening: the runs that the newest checkpoint lists,
// and the keys of the commits since. A log that never had a key pays nothing.

// hasKeys reports whether a commit has keys.
func hasKeys(body []byte) bool {
	for record := range frame.Records(body) {
		if record.Kind == frame.KindIndexKey {
			return true
		}
	}
	return false
}

// findKeys takes up the index as it is at the head.
func (r *recovery) findKeys(at point) error {
	reader := &Reader{file: r.file, id: &r.head.id, geo: r.head.geo, begin: r.head.begin()}
	r.keyed = r.keyed || r.head.newest() == nil || len(r.checks.index.Runs) > 0 ||
		(r.head.newest().Features.Compat|r.checks.features.Compat)&frame.FeatureKeys != 0
	r.index = newIndex(reader, r.head, &r.checks, nil)
	if !r.keyed {
		r.index.through = at.rev
		return nil
	}
	own := *r.head // the reader reads it again where it meets damage
	reader.view.header = &own
	b := bounds{begin: reader.begin, stop: at, proven: r.proven}
	err := reader.catchUp(r.index, &b)
	if errors.Is(err, ErrCorrupt) { // older damage is for readers to find; the keys in it are not known
		r.index.table, r.index.lv.since, err = table{}, at.rev, nil
	}
	r.index.through = at.rev
	return err
}

// features returns the features of a log whose slots are both lost.
func (r *recovery) features() frame.Features {
	f := r.checks.features
	if r.keyed {
		f.Compat |= frame.FeatureKeys
	}
	return f
}

// named returns what a new slot may name as the newest checkpoint, where both
// slots are lost: it must be proven durable.
func (r *recovery) named() frame.Place {
	if r.checks.last.end == 0 || r.checks.last.end > r.proven {
		return frame.Place{}
	}
	return r.checks.last.group
}
