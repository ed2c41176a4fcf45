package e2e

import (
	"cmp"
	"context"
	"errors"
	"fmt"
)

// Verdict is the result of a row.
type Verdict struct {
	Did   string // What the requests did.
	Wrong string // What should not have happened; empty if the row holds.
}

// Play tries a row under its rules.
func (w *World) Play(ctx context.Context, row Row) (v Verdict, err error) {
	err = w.Under(ctx, row.Rules, func() error {
		v, err = w.Try(ctx, row)
		return err
	})
	return v, err
}

// Under applies the rules, if there are any, calls do, and withdraws them.
func (w *World) Under(ctx context.Context, rules []string, do func() error) error {
	if len(rules) == 0 {
		return do()
	}
	if err := w.apply(ctx, rules); err != nil {
		return err
	}
	return errors.Join(do(), w.withdraw(ctx, rules))
}

// Try sends the row's requests through the sidecar and judges the results. An error is
// about the programs and means that there is no verdict.
func (w *World) Try(ctx context.Context, row Row) (Verdict, error) {
	traffic, err := w.send(ctx, row)
	if err != nil {
		return Verdict{}, err
	}
	did, wrong := row.Did(traffic)
	return Verdict{Did: did, Wrong: wrong}, nil
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

// quiet returns when Envoy has no pending request to a backend. Mirrored requests outlive
// the originals.
func (w *World) quiet(ctx context.Context) error {
	return until(ctx, "mirrored requests to end", w.Sidecar.Process, func(ctx context.Context) error {
		n, err := w.Sidecar.Counter(ctx, "upstream_rq(_pending)?_active$")
		if err == nil && n > 0 {
			err = fmt.Errorf("%d are active", n)
		}
		return err
	})
}
