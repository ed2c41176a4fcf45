package fleet

import (
	"github.com/pilot-api/pilot-api/discovery/compiled"
	"github.com/pilot-api/pilot-api/discovery/feedback"
	"github.com/pilot-api/pilot-api/mesh"
)

// Called is the proxy that asked last of those that call themselves node, or by its
// id alone where it says nothing else; nil when there is none.
func (f *Fleet) Called(node mesh.Node) *Client {
	f.mu.RLock()
	defer f.mu.RUnlock()
	last := f.clients[node]
	if last != nil || node.Labels != "" || node.Namespace != "" {
		return last
	}
	for n, c := range f.clients {
		if n.ID == node.ID && (last == nil || c.seen.Load() > last.seen.Load()) {
			last = c
		}
	}
	return last
}

// ViewOf returns the view of the entry of a key, nil if there is none.
func (f *Fleet) ViewOf(key string) *compiled.View {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if entry := f.entries[key]; entry != nil {
		return entry.current.Load()
	}
	return nil
}

// TransportOf is the transport of a proxy: that of an Envoy where there is one beside a
// client of gRPC.
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
