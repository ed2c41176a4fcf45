package discovery

import (
	"context"
	"maps"
	"slices"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/discovery/feedback"
	"github.com/pilot-api/pilot-api/discovery/fleet"
	"github.com/pilot-api/pilot-api/envoy/v1"
	"github.com/pilot-api/pilot-api/mesh"
)

// LostInV1 returns problems for the parts of the published configuration that Envoys of the
// v1 API would lose. It looks first at the proxies that the objects are meant for, whether
// or not any are connected (mesh.Snapshot.ExpectedProxies), and then at those connected to
// this replica, whatever API they use. It looks at no more than 200 views; leftOut is the
// number of the others. No proxy waits for it. The error is ErrBusy, ErrNotReady,
// ErrOverBudget or that of ctx.
func (p *Publisher) LostInV1(ctx context.Context) (lost diag.List, leftOut int, err error) {
	g, err := p.published()
	if err != nil {
		return nil, 0, err
	}
	if !p.previewing.TryLock() {
		return nil, 0, ErrBusy
	}
	defer p.previewing.Unlock()
	err = p.recoverPanic("lost in v1", func() (err error) {
		var proxies []*fleet.Client
		proxies, leftOut = p.proxiesToCome(g.Mesh)
		c := p.newBeside()
		defer c.Close()
		c.Advance(g.Mesh)
		lost, err = lostInV1(ctx, c, g.Mesh, proxies)
		return err
	})
	return lost, leftOut, err
}

// lostInV1 returns what some proxies would lose of the present snapshot of a compiler.
func lostInV1(ctx context.Context, c compiler, at *mesh.Snapshot, proxies []*fleet.Client) (diag.List, error) {
	found := map[diag.Problem]bool{}
	var losses v1.Losses
	for _, one := range proxies {
		config, _, err := c.ProxyWithin(ctx, one.TraitsIn(at))
		if err != nil {
			return nil, err
		}
		for _, p := range losses.Advance(config, one.Proxy.IP) {
			found[p] = true
		}
	}
	return slices.SortedFunc(maps.Keys(found), feedback.CompareProblems), nil
}

// proxiesToCome returns the proxies that the objects of some snapshots are for, and then
// those that are connected. Of the proxies with the same view in each of the snapshots it
// returns one, and no more than a preview looks at. leftOut is the number of the others.
func (p *Publisher) proxiesToCome(of ...*mesh.Snapshot) (proxies []*fleet.Client, leftOut int) {
	known := map[string]bool{}
	add := func(c *fleet.Client) {
		views := ""
		for _, at := range of {
			views += c.TraitsIn(at).Key() + "\n"
		}
		if !known[views] {
			known[views] = true
			proxies = append(proxies, c)
		}
	}
	for _, at := range of {
		for _, expected := range at.ExpectedProxies() {
			add(&fleet.Client{Proxy: expected})
		}
	}
	for _, c := range p.fleet.Connected() {
		add(c)
	}
	looked := min(len(proxies), maxPreviewViews)
	return proxies[:looked], len(proxies) - looked
}
