package discovery

import (
	"context"
	"maps"
	"slices"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/envoy/v1"
	"github.com/pilot-api/pilot-api/mesh"
)

// LostInV1 is what Envoys of the v1 API would lose of what is published: those that the
// objects are for, whether or not there are any (mesh.Snapshot.ExpectedProxies), and
// those that are connected, whatever they speak. At most 200 views are looked at;
// leftOut is how many there are beside. Nobody who asks for configuration waits for it.
// The error is ErrBusy, ErrNotReady or that of ctx.
func (s *Publisher) LostInV1(ctx context.Context) (lost diag.List, leftOut int, err error) {
	g, err := s.published()
	if err != nil {
		return nil, 0, err
	}
	if !s.previewing.TryLock() {
		return nil, 0, ErrBusy
	}
	defer s.previewing.Unlock()
	err = s.recoverPanic("lost in v1", func() (err error) {
		c := s.newCompiler()
		c.Advance(g.mesh)
		lost, leftOut, err = s.lostInV1(ctx, c, g.mesh)
		return err
	})
	return lost, leftOut, err
}

// lostInV1 is that of the snapshot that a compiler is at.
func (s *Publisher) lostInV1(ctx context.Context, c compiler, at *mesh.Snapshot) (lost diag.List, leftOut int, err error) {
	views := s.viewsToCome(at)
	found := map[diag.Problem]bool{}
	var losses v1.Losses
	for _, v := range views[:min(len(views), maxPreviewViews)] {
		config, _ := c.Proxy(v.View)
		for _, p := range losses.Advance(config, v.ip) {
			found[p] = true
		}
		if err := ctx.Err(); err != nil {
			return nil, 0, err
		}
	}
	return slices.SortedFunc(maps.Keys(found), compareProblems), max(0, len(views)-maxPreviewViews), nil
}

// viewAt is a view, and the address of a proxy that has it.
type viewAt struct {
	mesh.View
	ip string
}

// viewsToCome are those of the proxies that the objects are for, and then those of the
// ones that are connected, each once.
func (s *Publisher) viewsToCome(at *mesh.Snapshot) (views []viewAt) {
	known := map[string]bool{}
	add := func(v mesh.View, ip string) {
		if key := v.Key(); !known[key] {
			known[key] = true
			views = append(views, viewAt{v, ip})
		}
	}
	for _, p := range at.ExpectedProxies() {
		add(at.View(p), p.IP)
	}
	for _, c := range s.connected() {
		add(c.viewIn(at), c.proxy.IP)
	}
	return views
}
