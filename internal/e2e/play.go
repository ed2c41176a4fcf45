package e2e

import (
	"cmp"
	"context"
	"errors"
	"fmt"
)

// Verdict is what came of a row.
type Verdict struct {
	Did   string // What the requests did.
	Wrong string // What should not have happened; empty if the row holds.
}

// Play applies the row's rule, sends the requests through the sidecar, judges
// what they did, and withdraws the rule. The error is about the programs: no
// verdict could be reached.
func (w *World) Play(ctx context.Context, row Row) (v Verdict, err error) {
	if row.Rule != "" {
		if err := w.Apply(ctx, row.Rule); err != nil {
			return v, err
		}
		defer func() { err = errors.Join(err, w.Withdraw(ctx, row.Rule)) }()
	}
	traffic, err := w.send(ctx, row)
	if err != nil {
		return v, err
	}
	v.Did, v.Wrong = row.Did(traffic)
	return v, nil
}

func (w *World) send(ctx context.Context, row Row) (*Traffic, error) {
	const delays = "fault.delays_injected$"
	delaysBefore, err := w.Sidecar.Counter(ctx, delays)
	if err != nil {
		return nil, err
	}
	before := w.Shop.Hits()
	asks := make([]Ask, Requests)
	for i := range asks {
		asks[i] = row.Ask(i)
	}
	answers, err := sendAll(ctx, w.client, asks, cmp.Or(row.AtOnce, 10))
	if err != nil {
		return nil, err
	}
	if err := w.quiet(ctx); err != nil {
		return nil, err
	}
	t := &Traffic{Answers: answers, Hits: w.Shop.Hits()}
	for backend, n := range before {
		t.Hits[backend] -= n
	}
	delaysAfter, err := w.Sidecar.Counter(ctx, delays)
	t.Delays = delaysAfter - delaysBefore
	return t, err
}

// quiet returns when Envoy has no request to a backend under way: mirrored
// ones outlive the requests they are copies of.
func (w *World) quiet(ctx context.Context) error {
	return until(ctx, "mirrored requests to end", w.Sidecar.process, func(ctx context.Context) error {
		n, err := w.Sidecar.Counter(ctx, "upstream_rq(_pending)?_active$")
		if err == nil && n > 0 {
			err = fmt.Errorf("%d are active", n)
		}
		return err
	})
}
