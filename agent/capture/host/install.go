package host

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/pilot-api/pilot-api/agent/capture"
)

// Install puts the rules in place of those that there may be. If it fails, everything is as
// it was before. It refuses to start beside active rules of another tool. notes tell what
// else was done or found, in sentences.
func Install(ctx context.Context, s *capture.Settings, c Choice) (notes []string, err error) {
	release, err := begin()
	if err != nil {
		return nil, err
	}
	defer release()
	w := wanted{s.Ruleset(), s.IPv6, s.Routing()}
	way, err := choose(c)
	if err != nil {
		return nil, err
	}
	if notes, err = beside(ctx); err != nil {
		return nil, err
	}
	// From here on an interruption would leave a part of the change.
	ctx = context.WithoutCancel(ctx)
	before, err := way.held(ctx)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", way, err)
	}
	undo, err := putRouting(w)
	if err != nil {
		return nil, errors.Join(err, undo())
	}
	if err := way.put(ctx, w); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", way, err), rollBack(ctx, way, before), undo())
	}
	more, err := removeOthers(ctx, way)
	if err != nil {
		return nil, errors.Join(err, rollBack(ctx, way, before), undo())
	}
	// What an earlier installation needed and this one does not is removed last: until the
	// new rules are there, the old ones need it.
	removed, err := removeRouting(w.routing, w.ipv6, false)
	if err != nil {
		return nil, fmt.Errorf("the new rules are installed, but what the rules before them needed is not removed: %w", err)
	}
	for _, what := range removed {
		more = append(more, "removed: "+what)
	}
	return append(append(notes, "installed by "+way.String()), more...), nil
}

// rollBack restores what was held before, if it is not there.
func rollBack(ctx context.Context, way filter, before holding) error {
	now, err := way.held(ctx)
	if err == nil && now.text() == before.text() {
		return nil
	}
	return way.restore(ctx, before)
}

// begin checks the rights and takes the lock.
func begin() (release func(), err error) {
	if err := mayChange(); err != nil {
		return nil, err
	}
	return lock()
}

// beside returns an error if another tool redirects connections too, and notes about rules
// of other tools that have no effect.
func beside(ctx context.Context) (notes []string, err error) {
	found, err := strangers(ctx)
	if err != nil {
		return nil, err
	}
	var active []string
	for _, s := range found {
		if !s.Active {
			notes = append(notes, fmt.Sprintf("%s left %s, which nothing calls; they stay", s.Tool, s.What))
			continue
		}
		text := s.String()
		if s.Removal != "" {
			text += " (to remove: " + s.Removal + ")"
		}
		active = append(active, text)
	}
	if len(active) > 0 {
		return nil, fmt.Errorf("another tool redirects connections of this machine, and both would do so: remove its rules first\n  %s", strings.Join(active, "\n  "))
	}
	return notes, nil
}

// removeOthers removes rules of ours that another program than this one installed.
func removeOthers(ctx context.Context, way filter) (notes []string, err error) {
	for _, other := range ways() {
		if isSame(way, other) {
			continue
		}
		h, err := other.held(ctx)
		if err != nil {
			return notes, fmt.Errorf("%s: %w", other, err)
		}
		if h.empty() {
			continue
		}
		if err := other.restore(ctx, nil); err != nil {
			return notes, fmt.Errorf("%s: %w", other, err)
		}
		notes = append(notes, "removed: rules of an earlier installation by "+other.String())
	}
	return notes, nil
}

func isSame(a, b filter) bool {
	x, xOK := a.(*iptables)
	y, yOK := b.(*iptables)
	return xOK == yOK && (!xOK || x.sameAs(y))
}

// Remove removes everything that is ours, and tells what that was. It is no error if there
// is nothing.
func Remove(ctx context.Context) (removed []string, err error) {
	release, err := begin()
	if err != nil {
		return nil, err
	}
	defer release()
	all := ways()
	if len(all) == 0 {
		return nil, errors.New("neither nft nor iptables-restore is on PATH, so rules cannot be seen")
	}
	for _, way := range all {
		h, e := way.held(ctx)
		if e != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", way, e))
			continue
		}
		if h.empty() {
			continue
		}
		if e := way.restore(ctx, nil); e != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", way, e))
			continue
		}
		removed = append(removed, "rules by "+way.String())
	}
	found, e := strangers(ctx)
	if e != nil {
		return removed, errors.Join(err, e)
	}
	// Istio uses the same address of the loopback interface.
	inUse := false
	for _, s := range found {
		inUse = inUse || s.Active
	}
	more, e := removeRouting(capture.Routing{}, false, inUse)
	return append(removed, more...), errors.Join(err, e)
}
