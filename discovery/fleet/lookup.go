package fleet

import (
	"github.com/pilot-api/pilot-api/discovery/compiled"
	"github.com/pilot-api/pilot-api/discovery/feedback"
	"github.com/pilot-api/pilot-api/mesh"
)

// Called returns the proxy with a node. If the node states nothing but an id, it returns
// the proxy with that id that last sent a request. Only proxies that state a namespace for
// which in returns true count. Called returns nil if there is none.
func (f *Fleet) Called(node mesh.Node, in func(namespace string) bool) *Client {
	f.mu.RLock()
	defer f.mu.RUnlock()
	last := f.clients[node]
	if last != nil && !in(last.namespace) {
		last = nil
	}
	if last != nil || node.Labels != "" || node.Namespace != "" {
		return last
	}
	for n, c := range f.clients {
		if n.ID == node.ID && in(c.namespace) && (last == nil || c.seen.Load() > last.seen.Load()) {
			last = c
		}
	}
	return last
}

// ViewOf returns the view of the entry with a key, or nil if there is none.
func (f *Fleet) ViewOf(key string) *compiled.View {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if entry := f.entries[key]; entry != nil {
		return entry.current.Load()
	}
	return nil
}

// TransportOf returns the transport of a proxy. If an Envoy and a gRPC client have the same
// node, it returns that of the Envoy.
func (f *Fleet) TransportOf(c *Client) feedback.Transport {
	over := feedback.OverREST
	for _, st := range f.streamsOf(c) {
		if !st.IsProxyless() {
			return st.Transport()
		}
		over = st.Transport()
	}
	if c.Transition.HasPolled() {
		return feedback.OverREST
	}
	return over
}
