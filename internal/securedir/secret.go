package securedir

import "sync"

// Secret is a fixed stretch of memory for keys: outside the collected heap,
// locked and kept out of core dumps where the system can, and cleared by
// Destroy. It prints as nothing.
type Secret struct {
	bytes []byte
	free  func()
	once  sync.Once
}

// NewSecret holds n zero bytes.
func NewSecret(n int) *Secret {
	b, free := secretMemory(n)
	return &Secret{bytes: b, free: free}
}

// Bytes is the memory itself; it must not be used after Destroy.
func (s *Secret) Bytes() []byte { return s.bytes }

// Destroy clears the memory and gives it back. It is idempotent.
func (s *Secret) Destroy() {
	s.once.Do(func() {
		clear(s.bytes)
		s.bytes = nil
		s.free()
	})
}

// String and GoString redact.
func (s *Secret) String() string { return "[secret]" }

// GoString redacts.
func (s *Secret) GoString() string { return "[secret]" }
