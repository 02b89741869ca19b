package authority

import (
	"context"
	"errors"

	"github.com/tidemark-log/tidemark/cursor"
	"github.com/tidemark-log/tidemark/snapshot"
)

// Host is the half of an import that the authority cannot do: the host's tools
// and its kernel. Takeover calls the methods in this order.
type Host interface {
	// Compiled is what this host is built of, without launching anything: its
	// components and its compatibility identity.
	Compiled() (components []snapshot.Component, compatibility string)
	// LeaseTools takes a candidate lease on the recorded tool plan.
	LeaseTools(ctx context.Context, toolPlan string) (Tools, error)
	// Prepare makes a run ready from a snapshot and changes nothing: no log is
	// written, nothing executes. It looks with a reader whether the log is at
	// the cursor, or decides to go on in a fresh log. The tools are the run's
	// from the return of nil on.
	Prepare(ctx context.Context, s snapshot.Snapshot, at cursor.Cursor, tools Tools) (Kernel, error)
}

// Tools is a lease on the tools of a plan.
type Tools interface {
	// Definitions are the tools as they are leased now.
	Definitions() []snapshot.Definition
	// Release gives the lease back.
	Release() error
}

// Kernel is a prepared run.
type Kernel interface {
	// Commit makes the run exist, suspended. Nothing executes yet.
	Commit(ctx context.Context) error
	// Stop cancels the run, joins all that belongs to it, committed or not, and
	// gives the tools back. When it returns, nothing of the run executes.
	Stop() error
}

// ErrPlan means the run cannot go on here: it was suspended under another plan,
// or under one without a compatibility identity. Nothing changed, and the
// envelope can still be imported where the plan is the same.
var ErrPlan = errors.New("suspended under another plan")

// Takeover is the import of a suspended run by a host, whole and in the one safe
// order. The lease it returns is the right to execute: only then does the host
// open the log under Lease.Token, take it with Lease.Continue, and resume the
// kernel.
//
// The envelope is verified before the host is asked anything, what is compiled
// is compared before any tool is leased, and the plan's identity is computed
// again from what was leased before anything is prepared. Up to there, and up to
// the claim's being consumed, any error leaves the envelope importable, with the
// tools given back. After that an error is ErrUncertain: the kernel has been
// stopped and joined before the run's locks are released, nothing is tried
// again, and what is left is Resolve. The end of ctx counts only up to the
// consuming.
func Takeover(ctx context.Context, a *Authority, e Envelope, h Host) (*Lease, error) {
	i, err := a.PrepareImport(ctx, e)
	if err != nil {
		return nil, err
	}
	kernel, err := i.prepareHost(ctx, h)
	if err != nil {
		return nil, errors.Join(err, i.Abort())
	}
	if err := i.Consume(ctx); err != nil {
		return nil, errors.Join(err, kernel.Stop(), i.Abort())
	}
	ctx = context.WithoutCancel(ctx) // a run that is half taken over helps nobody
	err = kernel.Commit(ctx)
	if err == nil {
		var l *Lease
		if l, err = i.Activate(ctx); err == nil {
			return l, nil
		}
	}
	return nil, errors.Join(err, kernel.Stop(), i.Abort())
}

// prepareHost asks the host. Its errors leave nothing behind.
func (i *Import) prepareHost(ctx context.Context, h Host) (Kernel, error) {
	const op = "take over"
	s, err := i.Snapshot()
	if err != nil {
		return nil, err
	}
	at, err := i.Position()
	if err != nil {
		return nil, err
	}
	recorded := s.Plan()
	components, compatibility := h.Compiled()
	compiled, err := snapshot.NewPlan(components, recorded.ToolPlan, compatibility, nil)
	if err != nil {
		return nil, fail(op, ErrInvalid)
	}
	compiled.Fingerprint = recorded.Fingerprint // which covers what is leased, too
	if recorded.Compatibility == "" || !compiled.Equal(recorded) {
		return nil, fail(op, ErrPlan)
	}
	tools, err := h.LeaseTools(ctx, recorded.ToolPlan)
	if err != nil {
		return nil, err
	}
	leased, err := snapshot.NewPlan(components, recorded.ToolPlan, compatibility, tools.Definitions())
	if err != nil || !leased.Equal(recorded) {
		return nil, errors.Join(fail(op, ErrPlan), tools.Release())
	}
	kernel, err := h.Prepare(ctx, s, at, tools)
	if err != nil {
		return nil, errors.Join(err, tools.Release())
	}
	return kernel, nil
}
