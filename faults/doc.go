// Package faults holds the proof on real kernels, real file systems and real
// processes: the unmodified tidemark program, and a small program that uses the
// engine as a host does, run while system calls fail, processes are killed,
// power is cut, disks are full and other users interfere. What was acknowledged
// is read by another process and compared with what the log then holds.
//
// It is a module of its own, so that what it needs never reaches the product.
//
//	go test ./...                              a small share, under 3 minutes
//	FAULTS=gate REQUIRE_FAULTS=1 go test ./... everything; a skip is a failure
//
// A layer whose means are missing is skipped with a reason and counted. The
// summary at the end ('go test -v', or the file that FAULTS_SUMMARY names) says
// how much was done. README.md says what each layer can and cannot find.
package faults
