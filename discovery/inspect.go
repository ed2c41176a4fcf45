package discovery

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/pilot-api/pilot-api/discovery/compiled"
	"github.com/pilot-api/pilot-api/discovery/feedback"
	"github.com/pilot-api/pilot-api/discovery/xds"
	"github.com/pilot-api/pilot-api/explain"
	"github.com/pilot-api/pilot-api/mesh"
)

// Inspection has the configuration of one proxy, in a form for people.
type Inspection struct {
	Node      string
	Namespace string // that the proxy states; "" if it is not known
	Revision  int64
	// Known means that the proxy has asked this server. For other proxies the configuration
	// is compiled on request.
	Known bool
	// Over is the transport of the proxy, and Resources are encoded for it. If a program
	// and the Envoy beside it have the same node, it is that of the Envoy.
	Over feedback.Transport

	generation *compiled.Generation
	proxy      mesh.Proxy
	view       *compiled.View
	all        *compiled.View // for all hosts
}

// InspectTransports are the transports that Resources can be encoded for.
var InspectTransports = []feedback.Transport{feedback.OverDelta, feedback.OverADS, feedback.OverREST, feedback.OverGRPC}

// Inspect returns the configuration that the server sends to a proxy now. It does not add
// an unknown proxy to the known ones. If node states only an id, and several proxies have
// that id, Inspect chooses the one that asked last.
func (p *Publisher) Inspect(node Node) (*Inspection, error) {
	return p.InspectIn(node, nil)
}

// ErrOutOfSight means that the caller may not see a proxy, or that there is none.
var ErrOutOfSight = errors.New("no such proxy in a namespace that may be seen")

// InspectIn is Inspect for a caller that may see only proxies that state a namespace for
// which in returns true; nil allows all. For any other node the error is ErrOutOfSight,
// whether there is such a proxy or not. An unknown proxy must be a sidecar: a router that
// nobody runs would show the Gateways of all namespaces.
func (p *Publisher) InspectIn(node Node, in func(namespace string) bool) (*Inspection, error) {
	proxy, err := parseNode(node)
	if err != nil {
		return nil, err
	}
	if _, err := p.published(); err != nil {
		return nil, err
	}
	limited := in != nil
	if !limited {
		in = func(string) bool { return true }
	}
	if c := p.fleet.Called(node, in); c != nil {
		if state := c.State(); state.View != nil {
			g := p.encoder.Current.Load()
			out := &Inspection{Node: node.ID, Namespace: p.opts.Settings.NamespaceOf(c.Proxy), Revision: g.Mesh.Revision, Known: true, generation: g, proxy: c.Proxy, view: state.View, all: state.View, Over: p.fleet.TransportOf(c)}
			return out, p.inspectAll(out, node)
		}
	}
	if namespace := p.opts.Settings.NamespaceOf(proxy); limited && (!in(namespace) || proxy.Role != mesh.Sidecar) {
		return nil, ErrOutOfSight
	}
	return p.inspectUnknown(node, proxy)
}

// inspectAll fills in the view for all hosts of a proxy that has only those that it calls.
func (p *Publisher) inspectAll(of *Inspection, node Node) error {
	if !of.view.Config.OnDemand {
		return nil
	}
	whole, err := p.inspectUnknown(node, of.proxy)
	if err == nil {
		of.all = whole.view
	}
	return err
}

// inspectUnknown compiles what a new proxy would be sent. No other new proxy is compiled at
// the same time, so everything that was made only for this one can be dropped.
func (p *Publisher) inspectUnknown(node Node, proxy mesh.Proxy) (*Inspection, error) {
	defer p.asking()()
	g := p.encoder.Current.Load()
	traits := g.Mesh.TraitsOf(proxy)
	key := traits.Key()
	out := &Inspection{Node: node.ID, Namespace: p.opts.Settings.NamespaceOf(proxy), Revision: g.Mesh.Revision, generation: g, proxy: proxy, view: p.fleet.ViewOf(key), Over: feedback.OverREST}
	if out.all = out.view; out.view != nil {
		return out, nil
	}
	err := p.recoverPanic("compile", func() error {
		defer p.compiler.Release(key, func() bool { return p.fleet.Has(key) })
		config, _, err := p.compiler.ProxyWithin(context.Background(), traits)
		if err != nil {
			return err
		}
		out.view = compiled.NewView(g, key, config)
		out.all = out.view
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("%w for %s: %w", ErrNotReady, node.ID, err)
	}
	return out, nil
}

// asking takes the compiler for a question that no proxy asks. Such questions wait for each
// other before they wait for the compiler. So a publication waits for at most one of them,
// however many there are.
func (p *Publisher) asking() (done func()) {
	p.questions.Lock()
	advanced := p.advancing()
	return func() {
		advanced()
		p.questions.Unlock()
	}
}

// advancing locks encoder.Advancing. Callers get it in the order of their calls.
func (p *Publisher) advancing() (done func()) {
	_ = p.advanceQueue.Acquire(context.Background(), 1) // This fails only if the context ends, and it never does.
	p.encoder.Advancing.Lock()
	return func() {
		p.encoder.Advancing.Unlock()
		p.advanceQueue.Release(1)
	}
}

// Explain returns the configuration for package explain. It has all hosts, even if the proxy
// has only those that its workload has called: the first request to any other fetches it.
func (i *Inspection) Explain() explain.Proxy {
	return explain.Proxy{
		Config: i.all.Config, IP: i.proxy.IP, Members: i.generation.Endpoints.Members,
		Resolve: func(host string) []string { return i.generation.Mesh.Resolve(i.proxy, host) },
	}
}

// Resource is one resource in the form for the proxy's transport.
type Resource struct {
	Type    string `json:"type"` // as in ConfigTypes
	Name    string `json:"name"`
	Version string `json:"version"`
	// Resource is the v3 message in proto JSON or, for a secret, a SecretSummary.
	Resource json.RawMessage `json:"resource"`
}

// Resources returns the resources of one of ConfigTypes, by name. For a proxy on a stream,
// clusters and listeners refer to the stream.
func (i *Inspection) Resources(configType string) ([]Resource, error) {
	encode := i.view.EncodedV3
	switch i.Over {
	case feedback.OverDelta, feedback.OverADS:
		encode = i.view.EncodedStreamed
	case feedback.OverGRPC:
		encode = func(string) (*compiled.V3Answers, error) { return i.view.EncodedProxyless() }
	}
	a, err := encode(i.proxy.IP)
	if err != nil {
		return nil, fmt.Errorf("%w for %s: %w", ErrNotReady, i.Node, err)
	}
	var of *xds.Set
	err = i.view.Encoder.Contain("inspect", func() error {
		switch configType {
		case "clusters":
			of = a.Clusters
		case "listeners":
			of = a.ListenersAt(i.proxy.IP)
		case "routes":
			of = a.Routes
		case "endpoints":
			of = a.EndpointsIn(i.generation)
		case "secrets":
			of = a.Secrets
		default:
			return fmt.Errorf("there is no type %q", configType)
		}
		return nil
	})
	if err != nil || of == nil { // Clients of gRPC are sent no secrets.
		return nil, err
	}
	out := make([]Resource, len(of.Sorted))
	for at, r := range of.Sorted {
		out[at] = Resource{configType, r.Name, r.Hash.Version(), r.AppendShown(nil)}
	}
	return out, nil
}
