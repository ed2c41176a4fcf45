package discovery

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// build makes the generation that follows before (nil at first), with the
// views of all proxies that asked lately already compiled.
func (s *Publisher) build(objs []*schema.Object, revision int64, before *generation) (*generation, error) {
	var snapshot *mesh.Snapshot
	err := s.recoverPanic("mesh", func() error {
		snapshot = mesh.NewSnapshot(revision, s.opts.Settings, objs)
		return nil
	})
	if err != nil {
		return nil, err
	}
	next := newGeneration(s, snapshot, before)
	next.baseline()
	if before == nil {
		return next, nil
	}
	var all errgroup.Group
	all.SetLimit(runtime.GOMAXPROCS(0))
	for _, old := range before.placesSince(s.age() - s.opts.ProxyIdle) {
		all.Go(func() error {
			next.advance(old)
			return nil
		})
	}
	return next, all.Wait()
}

// baseline compiles for a proxy with nothing of its own, so that problems are
// known before any proxy asks, and what is the same for all is encoded ahead.
func (g *generation) baseline() {
	nobody := mesh.Proxy{Role: mesh.Sidecar, IP: "192.0.2.1", Domain: "default.svc." + g.mesh.Settings.Domain}
	without := g.mesh.View(nobody)
	without.Instances = nil
	_, v, err := g.viewOf(without)
	if err == nil {
		_, err = v.encodedV3(nobody.IP)
	}
	if err != nil {
		g.keepLastGood(nobody.String(), err)
		return
	}
	g.surveyed = v
}

// advance gives a proxy its place in the next generation: with its new view, or
// with the old one when the new one is no good.
func (g *generation) advance(old *proxyState) {
	slot, v, err := g.viewOf(g.mesh.View(old.proxy))
	if err == nil {
		err = v.prepare(old.client)
	}
	if err == nil {
		err = wouldEmpty(g.mesh, old.proxy, old.view, v)
	}
	if err != nil {
		g.keepLastGood(old.node, err)
		v = old.view
	}
	g.setPlace(&proxyState{client: old.client, view: v, slot: slot})
}

// wouldEmpty reports whether a view lost all its route tables although the proxy
// still sees HTTP services, each of which has one. Envoy would drop everything at
// once, and no object asks for that: it is a mistake of ours. Clusters are
// different, rules may leave none, and an ingress has what its rules say.
func wouldEmpty(s *mesh.Snapshot, proxy mesh.Proxy, old, next *view) error {
	if proxy.Role != mesh.Sidecar || len(old.config.RouteTables) == 0 || len(next.config.RouteTables) > 0 ||
		!seesHTTP(s, mesh.NamespaceOf(proxy.Domain, s.Settings.Domain)) {
		return nil
	}
	return fmt.Errorf("all %d route tables would be gone although there still are HTTP services", len(old.config.RouteTables))
}

func seesHTTP(s *mesh.Snapshot, namespace string) bool {
	isHTTP := func(p *mesh.Port) bool { return p.Protocol.IsHTTP() }
	return slices.ContainsFunc(s.Services, func(svc *mesh.Service) bool {
		return svc.VisibleIn(namespace) && slices.ContainsFunc(svc.Ports, isHTTP)
	})
}

// recoverPanic turns a panic into an error and logs its stack, so that a mistake
// of ours about one object costs an update and not the server.
func (s *Publisher) recoverPanic(step string, do func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			// What it panicked with is for the log: this text goes to proxies.
			err = fmt.Errorf("internal error in step %s", step)
			s.opts.Log.Error("panic contained", "step", step, "panic", p, "stack", string(debug.Stack()))
		}
	}()
	return do()
}
