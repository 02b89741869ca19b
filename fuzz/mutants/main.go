// Command mutants proves the tests: it breaks the engine in one line at a time
// and asks which test notices.
//
//	go run ./fuzz/mutants                     the named mutants of table.go
//	go run ./fuzz/mutants -name torn          those whose name matches
//	go run ./fuzz/mutants -general 300        so many general ones, drawn by -seed
//
// It copies the module once, so that what others do to the tree meanwhile does
// not matter, and gives each mutant to the compiler as an overlay of that copy:
// nothing that is built for one mutant and the same for the next is built twice.
// First the tests must be green without any mutant.
//
// It exits with 1 if a named mutant survives, does not compile, or names a text
// that is no longer in the code exactly once. General mutants are counted, and
// those that survive are listed; -least makes a share of them a condition.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"time"
)

// errSurvived is the answer no test gave.
var errSurvived = errors.New("not every mutant is killed")

type flags struct {
	name     string
	general  int
	seed     uint64
	least    float64
	parallel int
	keep     bool
	dry      bool
}

func main() {
	var f flags
	flag.StringVar(&f.name, "name", "", "only mutants whose names match this `pattern`")
	flag.IntVar(&f.general, "general", 0, "so many general mutants instead of the named ones")
	flag.Uint64Var(&f.seed, "seed", 1, "of the general mutants")
	flag.Float64Var(&f.least, "least", 0, "share of the general mutants that must be killed")
	flag.IntVar(&f.parallel, "parallel", 2, "mutants tried at a time")
	flag.BoolVar(&f.keep, "keep-going", false, "try on where the tests are red without a mutant")
	flag.BoolVar(&f.dry, "n", false, "only list the mutants, and check that each has its place")
	flag.Parse()
	if err := run(f, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

// mostMemory is enough for the compiler and every test.
const mostMemory = 8 << 30

func run(f flags, out io.Writer) error {
	began := time.Now()
	if err := limitMemory(mostMemory); err != nil {
		return err
	}
	root, err := moduleRoot()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "tidemark-mutants-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	c := &checker{root: dir, out: out}
	if err := copyModule(root, dir); err != nil {
		return err
	}
	list, err := c.choose(f)
	if err != nil {
		return err
	}
	if f.dry {
		for _, m := range list {
			fmt.Fprintf(out, "%-50s %s\n", m.name, m.file)
		}
		return nil
	}
	if err := c.baseline(list); err != nil && !f.keep {
		return err
	}
	c.all(list, f.parallel)
	return c.report(f, time.Since(began))
}

// choose returns the mutants that were asked for.
func (c *checker) choose(f flags) ([]mutant, error) {
	pattern, err := regexp.Compile(f.name)
	if err != nil {
		return nil, err
	}
	if f.general > 0 {
		list, err := c.general(f.general, f.seed)
		return slices.DeleteFunc(list, func(m mutant) bool { return !pattern.MatchString(m.name) }), err
	}
	var list []mutant
	names := map[string]bool{}
	for _, m := range named {
		if names[m.name] {
			return nil, fmt.Errorf("two mutants are called %q", m.name)
		}
		names[m.name] = true
		if _, err := c.apply(m); err != nil {
			return nil, err
		}
		if pattern.MatchString(m.name) {
			list = append(list, m)
		}
	}
	return list, nil
}
