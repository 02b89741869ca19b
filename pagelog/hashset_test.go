package pagelog

import "sync"

// hashSet is a set of 64-bit hashes that any number of goroutines use. It takes
// 8 bytes an entry at best and 16 at worst, so that tens of millions fit.
type hashSet struct {
	mu    sync.Mutex
	slots []uint64
	n     int
}

// add puts h into the set and reports whether it was new.
func (s *hashSet) add(h uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if 2*s.n >= len(s.slots) {
		old := s.slots
		s.slots = make([]uint64, max(1<<12, 2*len(old)))
		s.n = 0
		for _, h := range old {
			if h != 0 {
				s.insert(h)
			}
		}
	}
	return s.insert(max(h, 1))
}

func (s *hashSet) insert(h uint64) bool {
	mask := uint64(len(s.slots) - 1)
	for i := h * 0x9E3779B97F4A7C15 >> 20 & mask; ; i = (i + 1) & mask {
		switch s.slots[i] {
		case h:
			return false
		case 0:
			s.slots[i] = h
			s.n++
			return true
		}
	}
}

func (s *hashSet) len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.n
}
