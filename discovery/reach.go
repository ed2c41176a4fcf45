package discovery

import (
	"context"
	"slices"

	"github.com/pilot-api/pilot-api/discovery/compiled"
	"github.com/pilot-api/pilot-api/discovery/feedback"
	"github.com/pilot-api/pilot-api/explain"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/reach"
)

// Reach says who can reach whom in the published mesh. It compiles what it needs beside the
// configuration in force, so no proxy waits for it. The error is ErrBusy, ErrNotReady, ErrOutOfSight if
// no service may be seen, one of package reach or that of ctx.
func (p *Publisher) Reach(ctx context.Context, opts reach.Options) (found *explain.Reach, err error) {
	g, err := p.published()
	if err != nil {
		return nil, err
	}
	if opts.May != nil && !slices.ContainsFunc(g.Mesh.Services, func(svc *mesh.Service) bool { return opts.May(svc.Namespace) }) {
		return nil, ErrOutOfSight
	}
	if !p.previewing.TryLock() {
		return nil, ErrBusy
	}
	defer p.previewing.Unlock()
	s := mesh.NewSnapshot(g.Mesh.Revision, g.Mesh.Settings, compiled.ObjectsOf(g.Mesh)).WithFiles(g.Mesh.Files).WithKeys(g.Mesh.Keys)
	c := p.newBeside()
	defer c.Close()
	err = p.recoverPanic("reach", func() error {
		c.Advance(s)
		found, err = reach.Find(ctx, c, s, opts)
		return err
	})
	return found, err
}

// FleetOf returns the proxies of statuses. complete is set if there are no others.
func FleetOf(all []ProxyStatus, complete bool) *reach.Fleet {
	var out []reach.Proxy
	for _, status := range all {
		p, err := mesh.ParseProxy(status.Node)
		if err != nil || status.State != "" && !status.Lost {
			continue // It ended its connection itself, or has no identity.
		}
		p.Namespace, p.Labels = status.Namespace, status.Labels
		out = append(out, reach.Proxy{
			Proxy: p, Lost: status.State != "", V1: status.Transport == feedback.OverV1, Proxyless: status.Transport == feedback.OverGRPC,
		})
	}
	return reach.NewFleet(out, complete)
}
