package simdisk

// Fault is a failure to inject.
type Fault struct {
	Kind    Kind   // operations that count
	Name    string // only on the file with this name; empty means any
	Nth     int    // which of them fails, counted from the injection; 0 means 1
	Err     error  // what it reports; nil means ErrIO
	Part    int    // OpWrite: bytes that are written before the failure
	Forever bool   // every later one fails as well
}

// armed is a fault with its countdown.
type armed struct {
	Fault
	left int
}

// Inject arms a fault. Several may be armed at a time; each counts for itself,
// and of those that strike together the first injected decides.
//
// A failing operation does nothing, with three exceptions: a write first writes
// Part bytes, a File.Sync leaves behind what rule 4 of the model says, and a
// Dir.Sync may have persisted any part.
func (s *FS) Inject(f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, &armed{Fault: f, left: max(1, f.Nth)})
}

// strike counts an operation against the armed faults and returns the one that
// strikes, or nil. The lock is held.
func (s *FS) strike(op Op) *Fault {
	var hit *Fault
	kept := s.faults[:0]
	for _, f := range s.faults {
		if f.Kind != op.Kind || (f.Name != "" && f.Name != op.Name) {
			kept = append(kept, f)
			continue
		}
		f.left--
		if f.left > 0 {
			kept = append(kept, f)
			continue
		}
		if hit == nil {
			hit = &f.Fault
		}
		if f.Forever {
			kept = append(kept, f)
		}
	}
	s.faults = kept
	return hit
}

// err returns what a striking fault reports, and nil if none strikes.
func (f *Fault) err() error {
	switch {
	case f == nil:
		return nil
	case f.Err == nil:
		return ErrIO
	}
	return f.Err
}
