package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// child is this program, appending in a process of its own.
type child struct {
	cmd   *exec.Cmd
	stop  context.CancelFunc
	in    io.WriteCloser
	lines chan string // its acknowledgements; closed when it is gone
	errs  bytes.Buffer
}

// patienceOfDemo is after how long the demo ends a child that hangs.
const patienceOfDemo = 30 * time.Second

func (d *demo) startAppend() (*child, error) {
	return startChild(d.program, "append", d.path, "--ack", "--group", strconv.Itoa(demoGroup))
}

// startChild starts a program that acknowledges on standard output what it is
// given on standard input.
func startChild(program string, args ...string) (*child, error) {
	ctx, stop := context.WithTimeout(context.Background(), patienceOfDemo)
	c := &child{stop: stop, lines: make(chan string, 1024)}
	c.cmd = exec.CommandContext(ctx, program, args...)
	c.cmd.Stderr = &c.errs
	in, err := c.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.in = in
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	go c.listen(out)
	return c, nil
}

// listen passes on whole lines; a number that was cut is no acknowledgement.
func (c *child) listen(out io.Reader) {
	defer close(c.lines)
	r := bufio.NewReader(out)
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return
		}
		c.lines <- strings.TrimSuffix(line, "\n")
	}
}

// feed writes the text to the child until it is gone.
func (c *child) feed(text []byte) {
	_, _ = c.in.Write(text) // the child is killed in the middle of it
}

// acks waits for the acknowledgements behind revision last, up to until or for
// at most so long, and returns the last one.
func (c *child) acks(last, until uint64, limit time.Duration) (uint64, error) {
	timeout := time.After(limit)
	for last < until {
		select {
		case line, ok := <-c.lines:
			if !ok {
				return last, fmt.Errorf("the writer ended early: %s", c.errs.String())
			}
			if err := next(&last, line); err != nil {
				return last, err
			}
		case <-timeout:
			return last, nil
		}
	}
	return last, nil
}

// rest takes the acknowledgements that were still in the pipe, and waits for
// the child.
func (c *child) rest(last uint64) (uint64, error) {
	defer c.stop()
	for line := range c.lines {
		if err := next(&last, line); err != nil {
			return last, err
		}
	}
	_ = c.cmd.Wait() // the state says it
	return last, nil
}

// next checks that a line acknowledges the revision after last.
func next(last *uint64, line string) error {
	*last++
	if line != strconv.FormatUint(*last, 10) {
		return fmt.Errorf("%w: the writer acknowledges %q, %d is next", errBroken, line, *last)
	}
	return nil
}

// kill ends the child as kill -9 does.
func (c *child) kill() error { return c.cmd.Process.Kill() }

// end lets the child finish what it was given, and waits.
func (c *child) end(last uint64) (uint64, error) {
	if err := c.in.Close(); err != nil {
		return last, errors.Join(err, c.giveUp())
	}
	last, err := c.rest(last)
	if code := c.cmd.ProcessState.ExitCode(); err == nil && code != exitGood {
		err = fmt.Errorf("the writer exits %d: %s", code, c.errs.String())
	}
	return last, err
}

// giveUp leaves no process behind.
func (c *child) giveUp() error {
	defer c.stop()
	err := c.kill()
	for range c.lines { // the rest does not matter
	}
	_ = c.cmd.Wait()
	if err != nil {
		return fmt.Errorf("end a child process: %w", err)
	}
	return nil
}

// outcomeOf is what a finished child process left.
type outcomeOf struct {
	code int
	out  []byte
	errs string
}

// tool runs this program in a process of its own.
func (d *demo) tool(in string, args ...string) (outcomeOf, error) {
	ctx, stop := context.WithTimeout(context.Background(), patienceOfDemo)
	defer stop()
	cmd := exec.CommandContext(ctx, d.program, args...)
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(in), &out, &errs
	err := cmd.Run()
	if cmd.ProcessState == nil || ctx.Err() != nil {
		return outcomeOf{}, fmt.Errorf("%s %s: %w", d.program, args[0], errors.Join(ctx.Err(), err))
	}
	return outcomeOf{cmd.ProcessState.ExitCode(), out.Bytes(), errs.String()}, nil
}
