package discovery

import (
	"fmt"
	"runtime/debug"
	"slices"

	"github.com/pilot-api/pilot-api/discovery/compiled"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// news is everything in the source that is not in the published configuration yet.
type news struct {
	revision int64
	changes  []schema.Change
	files    *mesh.FileSecrets
	keys     *mesh.KeySets
	// large is set if a large object changes. The first publication is never large: no
	// request can be answered before it.
	large bool
}

// news fills in what is new since a snapshot (nil for none), and reports whether there is
// anything.
func (p *Publisher) news(before *mesh.Snapshot, n *news) bool {
	n.files, n.keys = p.opts.Files.Secrets(), p.opts.Keys.Keys()
	others := before != nil && !(n.files.Equal(before.Files) && n.keys.Equal(before.Keys))
	if before != nil {
		if changes, present, known := p.opts.Source.Since(before.Revision); known {
			n.revision, n.changes = present, slices.DeleteFunc(slices.Clone(changes), isForNoProxy)
			return others || present != before.Revision || len(changes) > 0
		}
	}
	objs, revision, synced := p.opts.Source.Snapshot()
	if !synced {
		return false
	}
	n.revision = revision
	n.changes = changesTo(before, objs)
	return others || before == nil || revision != before.Revision || len(n.changes) > 0
}

// isForNoProxy reports whether a change is of an object that concerns no proxy.
func isForNoProxy(c schema.Change) bool {
	return c.Before != nil && c.Before.Kind.Flat || c.After != nil && c.After.Kind.Flat
}

// changesTo returns the changes from the objects of a snapshot (nil for none) to some
// objects.
func changesTo(before *mesh.Snapshot, objs []*schema.Object) []schema.Change {
	known := map[schema.Key]*schema.Object{}
	for _, o := range compiled.ObjectsOf(before) {
		known[o.Key()] = o
	}
	var changes []schema.Change
	for _, o := range objs {
		if o.Kind.Flat {
			continue // It concerns no proxy.
		}
		was := known[o.Key()]
		delete(known, o.Key())
		if was == nil || !sameVersion(was, o) {
			changes = append(changes, schema.Change{Before: was, After: o})
		}
	}
	for _, gone := range known {
		changes = append(changes, schema.Change{Before: gone})
	}
	return changes
}

// sameVersion compares the uid too, because a store that was restored from a copy may use a
// resourceVersion twice.
func sameVersion(a, b *schema.Object) bool {
	return a == b || a.Meta.ResourceVersion != "" && a.Meta.ResourceVersion == b.Meta.ResourceVersion && a.Meta.UID == b.Meta.UID
}

// snapshot returns the mesh with the news.
func (p *Publisher) snapshot(before *mesh.Snapshot, n news) (next *mesh.Snapshot, err error) {
	err = p.recoverPanic("mesh", func() error {
		if before == nil {
			before = mesh.NewSnapshot(0, p.opts.Settings, nil)
		}
		next = before.Next(n.revision, n.changes).WithFiles(n.files).WithKeys(n.keys)
		p.opts.Keys.Want(mesh.KeySources(next.Objects(schema.KindRequestAuthentication)))
		return nil
	})
	return next, err
}

// wouldEmpty reports whether a view would lose all its route tables although the proxy
// still sees HTTP services, each of which has one. Envoy would drop all routes at once, and
// no object asks for that, so it is a bug of the server. Rules may leave no clusters, and
// an ingress has only what its rules say, so neither counts. A Sidecar may hide all
// services from its namespace.
func wouldEmpty(s *mesh.Snapshot, proxy mesh.Proxy, old, next *compiled.View) error {
	if proxy.Role != mesh.Sidecar || len(old.Config.RouteTables) == 0 || len(next.Config.RouteTables) > 0 {
		return nil
	}
	if namespace := s.Settings.NamespaceOf(proxy); hasSidecar(s, namespace) || !seesHTTP(s, namespace) {
		return nil
	}
	return fmt.Errorf("all %d route tables would be gone although there still are HTTP services", len(old.Config.RouteTables))
}

func hasSidecar(s *mesh.Snapshot, namespace string) bool {
	return slices.ContainsFunc(s.Objects("Sidecar"), func(o *schema.Object) bool { return o.Meta.Namespace == namespace })
}

func seesHTTP(s *mesh.Snapshot, namespace string) bool {
	isHTTP := func(p *mesh.Port) bool { return p.Protocol.IsHTTP() }
	return slices.ContainsFunc(s.Services, func(svc *mesh.Service) bool {
		return svc.VisibleIn(namespace) && slices.ContainsFunc(svc.Ports, isHTTP)
	})
}

// recoverPanic turns a panic into an error and logs its stack. So a bug that one object
// triggers costs an update and does not end the server.
func (p *Publisher) recoverPanic(step string, do func() error) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			// The value of the panic is only for the log, because this text goes to
			// proxies.
			err = fmt.Errorf("internal error in step %s", step)
			p.opts.Log.Error("panic contained", "step", step, "panic", cause, "stack", string(debug.Stack()))
		}
	}()
	return do()
}

// meshOf returns nil before the first generation.
func meshOf(g *compiled.Generation) *mesh.Snapshot {
	if g == nil {
		return nil
	}
	return g.Mesh
}
