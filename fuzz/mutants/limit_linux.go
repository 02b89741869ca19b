package main

import "golang.org/x/sys/unix"

// limitMemory keeps a mutant that allocates without end from taking the machine
// with it: this process and the tests it starts get no more than that many bytes
// of address space each.
func limitMemory(n uint64) error {
	return unix.Setrlimit(unix.RLIMIT_AS, &unix.Rlimit{Cur: n, Max: n})
}
