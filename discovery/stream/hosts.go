package stream

import (
	"slices"
	"time"

	"github.com/pilot-api/pilot-api/discovery/xds"
	"github.com/pilot-api/pilot-api/mesh"
)

// hosts are the virtual hosts that an Envoy asks for because its route tables lack them. The
// request of its workload waits meanwhile. The server gives the proxy a view with the host,
// and sends the clusters, endpoints and route table of that view as always. When the proxy
// has acked the table, a response of this type lets the request go on. It has no virtual
// host (docs/decisions/043-on-demand.md).
type hosts struct {
	asked bool // the proxy has sent its first request of the type
	// names that it has asked for, each a table, a slash and a Host header
	names map[string]struct{}
	bytes int // of names
	// unanswered are the names to answer. They include one for each table that the proxy
	// has begun to use: its listener waits for a first response.
	unanswered []string
	nonce      string // of the response in flight, "" for none
	everything bool   // the proxy has all hosts, and names are no longer noted
}

// maxSpellings bounds the names of a stream. A host may have several, with different ports.
const maxSpellings = 4 * mesh.MaxCalled

// NewOnDemand is New for an Envoy on a delta stream that asks for hosts which its route tables
// lack. Its view must be one for called hosts.
func NewOnDemand(shared *Shared, proxy Proxy) *Stream {
	st := New(shared, proxy, Delta)
	st.hosts = &hosts{names: map[string]struct{}{}}
	return st
}

// hostsPatience is how long a proxy that comes with resources may take to name the hosts that
// it has called. It does so together with its first requests.
const hostsPatience = 3 * time.Second

// awaitsHosts reports whether nothing is sent yet, because the proxy has not said which hosts
// its workload has called.
func (st *Stream) awaitsHosts() bool {
	if st.hosts == nil || st.hosts.asked {
		return false
	}
	came := func(t *subscription) bool { return t.initial.withSomething() }
	all := st.subscriptions()
	return slices.ContainsFunc(all[:], came) && st.lasts(st.since.Add(hostsPatience))
}

// receiveHosts accepts a request for virtual hosts. The first one replaces what is known of
// the proxy, because its Envoy may have begun anew.
func (st *Stream) receiveHosts(r Request) {
	h := st.hosts
	changed := !h.asked
	h.asked = true
	if r.Nonce != "" && r.Nonce == h.nonce {
		h.nonce = ""
		if r.Refused != nil {
			h.all() // The Envoy cannot be answered, so it must not have to ask.
			changed = true
		}
	}
	for _, name := range r.Unsubscribe {
		changed = h.remove(name) || changed
	}
	for _, name := range r.Subscribe {
		if name != wildcard {
			h.unanswered = append(h.unanswered, name)
			changed = h.add(name) || changed
		}
	}
	if changed {
		st.proxy.Call(h.called())
	}
}

// open makes the listeners of some tables ready.
func (h *hosts) open(tables []string) {
	for _, table := range tables {
		h.unanswered = append(h.unanswered, table+"/~") // No host has this name.
	}
}

func (h *hosts) add(name string) (changed bool) {
	if _, known := h.names[name]; known || h.everything {
		return false
	}
	h.names[name] = struct{}{}
	h.bytes += len(name)
	if len(h.names) > maxSpellings {
		h.all()
	}
	return true
}

func (h *hosts) remove(name string) (changed bool) {
	if _, known := h.names[name]; !known {
		return false
	}
	delete(h.names, name)
	h.bytes -= len(name)
	return true
}

func (h *hosts) all() { h.everything, h.names, h.bytes = true, nil, 0 }

func (h *hosts) called() *mesh.Called {
	if h.everything {
		return mesh.CallsEverything()
	}
	names := make([]string, 0, len(h.names))
	for name := range h.names {
		names = append(names, name)
	}
	called := mesh.NewCalled(names)
	if called.Everything() {
		h.all()
	}
	return called
}

// dueHosts answers the names that the proxy has asked for. Its tables have their virtual
// hosts by now, because nothing of them is pending or in flight. An answered name without a
// virtual host gets 404.
func (st *Stream) dueHosts() *xds.Response {
	h := st.hosts
	if h == nil || !h.asked || len(h.unanswered) == 0 || h.nonce != "" || len(st.routes.inFlight) > 0 {
		return nil
	}
	names := xds.UniqueNames(h.unanswered)
	h.unanswered = nil
	st.nonce++
	h.nonce = nonceOf(st.nonce)
	content := &xds.Content{TypeURL: xds.VirtualHostType, Delta: true, Complete: names}
	return &xds.Response{Nonce: h.nonce, Content: st.shared.Contents.Shared(content)}
}

func (h *hosts) held() int {
	if h == nil {
		return 0
	}
	held := len(h.names)*nameCost + h.bytes
	for _, name := range h.unanswered {
		held += nameCost + len(name)
	}
	return held
}
