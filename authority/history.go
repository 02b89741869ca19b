package authority

// judgeState finds and judges the newest record of a state file: canonical, in
// its own slot, signed, of this run, and chained to the sector before it. It
// does not go back past a record that fails: that would be a rollback.
func (r *ring) judgeState(file []byte, name runName) (rec record, s []byte, ok bool) {
	slot, s := newest(file)
	if slot < 0 {
		return record{}, nil, false
	}
	rec, ok = parseRecord(s)
	if !ok || int(rec.slot) != slot || !r.believes(&rec, s) || nameOf(rec.runID) != name {
		return record{}, nil, false
	}
	if slot > 0 && !equal(rec.previous, macOf(file[(slot-1)*sectorSize:slot*sectorSize])) {
		return record{}, nil, false
	}
	return rec, s, true
}

// judgeHistory says whether the sectors before the newest record are the chain
// that led to it. A generation that has been retired since leaves the chain of
// MACs to vouch for its records.
func (r *ring) judgeHistory(file []byte, last *record) bool {
	next := *last
	for slot := int(last.slot) - 1; slot >= 0; slot-- {
		s := file[slot*sectorSize : (slot+1)*sectorSize]
		rec, ok := parseRecord(s)
		if !ok || int(rec.slot) != slot || rec.sequence+1 != next.sequence || rec.runID != next.runID ||
			rec.nonce != next.nonce || rec.transition > next.transition || !equal(rec.scope, r.scope) ||
			!equal(next.previous, macOf(s)) {
			return false
		}
		if _, known := r.key(rec.generation); known && !r.believes(&rec, s) {
			return false
		}
		next = rec
	}
	return true
}
