package stream

import (
	"github.com/pilot-api/pilot-api/discovery/compiled"
	"github.com/pilot-api/pilot-api/discovery/xds"
)

// notAsked is the answer to whether a proxy subscribes to all that it should have. It holds
// for a target until the next request.
type notAsked struct {
	target *compiled.Streamed
	found  missing
}

// missing is a resource that a proxy should have and to which it does not subscribe; the zero
// missing is none.
type missing struct {
	of   *subscription
	what string
}

// unasked returns what an Envoy should have and does not subscribe to. Until it has its
// listeners, and what these refer to, it runs nothing. It does not ask for what only something
// that it refuses refers to. Secrets may reach it in another way (NewSecrets).
func (st *Stream) unasked(target *compiled.Streamed) missing {
	if st.notAsked.target != target {
		st.notAsked = notAsked{target, st.findUnasked(target)}
	}
	return st.notAsked.found
}

func (st *Stream) findUnasked(target *compiled.Streamed) missing {
	if st.proxyless || st.onlySecrets {
		return missing{}
	}
	for _, look := range []struct {
		of      *subscription
		kind    string
		unasked string
	}{
		{&st.clusters, "cluster ", st.clusters.firstUnasked(target.Clusters)},
		{&st.endpoints, "endpoints ", st.unaskedEndpoints(target)},
		{&st.listeners, "listener ", st.listeners.firstUnasked(target.ListenersAt(st.proxy.Address()))},
		{&st.routes, "route table ", st.unaskedTable(target)},
	} {
		switch {
		case look.unasked == "":
		case !look.of.asked:
			return missing{look.of, xds.NameOf(look.of.typeURL)}
		default:
			return missing{look.of, look.kind + look.unasked}
		}
	}
	return missing{}
}

// firstUnasked returns the name of the first resource of a set that the proxy does not
// subscribe to, or "" if there is none.
func (t *subscription) firstUnasked(s *xds.Set) string {
	if t.all {
		return ""
	}
	for _, r := range s.Sorted {
		if !t.Wants(r.Name) {
			return r.Name
		}
	}
	return ""
}

// unaskedEndpoints returns the endpoint set of a cluster that the proxy does not refuse and to
// which it does not subscribe, or "" if there is none.
func (st *Stream) unaskedEndpoints(target *compiled.Streamed) string {
	t := &st.endpoints
	if t.named.share(target.Endpoints); t.named.shared == target.Endpoints {
		return "" // This is the usual case.
	}
	refused := st.clusters.refused(target.Clusters)
	for _, c := range target.Clusters.Sorted {
		if c.Endpoints != "" && !t.Wants(c.Endpoints) && !refused(c.Name) {
			return c.Endpoints
		}
	}
	return ""
}

// unaskedTable returns a route table that a listener names and the proxy does not subscribe to,
// or "" if there is none. A proxy does not ask for the tables of a listener that it refuses.
func (st *Stream) unaskedTable(target *compiled.Streamed) string {
	return target.UnaskedTable(st.proxy.Address(), st.routes.Wants, st.listeners.refused(target.ListenersAt(st.proxy.Address())))
}

// refused returns a function that reports whether the proxy refuses the resource of a name.
func (t *subscription) refused(desired *xds.Set) func(name string) bool {
	refused := map[string]bool{}
	for name := range t.nacks.Each(t, desired) {
		refused[name] = true
	}
	return func(name string) bool { return refused[name] || refused[""] }
}
