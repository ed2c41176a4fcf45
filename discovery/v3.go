package discovery

import (
	"fmt"
	"strings"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/envoy"
	"github.com/pilot-api/pilot-api/envoy/v3"
	"github.com/pilot-api/pilot-api/ir"
)

// Type URLs of the v3 resources served.
const (
	ClusterType  = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
	EndpointType = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"
	ListenerType = "type.googleapis.com/envoy.config.listener.v3.Listener"
	RouteType    = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration"
)

// v3Answers is a view in v3. Listeners are spelled per address of a proxy.
type v3Answers struct {
	view             *view
	clusters, routes *set
	merged           *memo[*set] // clusters with some that are being withdrawn, by their names
	listeners        *memo[*set] // by address
	problems         diag.Collector
}

// encodeV3 spells everything and the listeners of one proxy.
func encodeV3(v *view, ip string) *v3Answers {
	a := &v3Answers{view: v, merged: newMemo[*set](maxMerged), listeners: newMemo[*set](v.server.opts.MaxProxies)}
	a.clusters = a.note(a.spellClusters(v.config))
	a.routes = a.note(a.spellRoutes())
	ip = v.address(ip)
	a.listeners.put(ip, a.note(a.spellListeners(ip)))
	return a
}

// note keeps the problems of spelling and of checking.
func (a *v3Answers) note(s *set, spelling diag.List) *set {
	a.problems.Add(spelling...)
	a.problems.Add(s.problems...)
	return s
}

func (a *v3Answers) spellClusters(config *ir.Config) (*set, diag.List) {
	byName := map[string]*ir.Cluster{}
	for _, c := range config.Clusters {
		byName[envoy.ClusterName(c.Name)] = c
	}
	clusters, problems := v3.Clusters(config)
	entries := make([]entry, len(clusters))
	for i, c := range clusters {
		from := byName[c.GetName()]
		entries[i] = entry{c.GetName(), first(from.Origins), c, func() v3.Message {
			closed, _ := v3.Clusters(&ir.Config{Clusters: []*ir.Cluster{from.Closed()}})
			return closed[0]
		}}
	}
	return newSet(a.view.pool, ClusterType, entries), problems
}

func (a *v3Answers) spellRoutes() (*set, diag.List) {
	var entries []entry
	var problems diag.List
	for _, t := range a.view.config.RouteTables {
		table, more := v3.Routes(t)
		problems = append(problems, more...)
		entries = append(entries, entry{name: table.GetName(), message: table, closed: func() v3.Message {
			closed, _ := v3.Routes(t.Closed())
			return closed
		}})
	}
	return newSet(a.view.pool, RouteType, entries), problems
}

func (a *v3Answers) spellListeners(ip string) (*set, diag.List) {
	origins := map[string]diag.Ref{}
	for _, l := range a.view.config.ListenersAt(ip) {
		origins[envoy.ListenerName(l)] = first(l.Origins)
	}
	listeners, problems := v3.Listeners(a.view.config, ip)
	entries := make([]entry, len(listeners))
	for i, l := range listeners {
		entries[i] = entry{name: l.GetName(), origin: origins[l.GetName()], message: l}
	}
	return newSet(a.view.pool, ListenerType, entries), problems
}

func (a *v3Answers) listenersAt(ip string) (*set, error) {
	ip = a.view.address(ip)
	if s, ok := a.listeners.get(ip); ok {
		return s, nil
	}
	var s *set
	err := a.view.server.recoverPanic("v3 listeners", func() error {
		s, _ = a.spellListeners(ip)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return a.listeners.put(ip, s), nil
}

func first(origins []diag.Ref) diag.Ref {
	if len(origins) == 0 {
		return diag.Ref{}
	}
	return origins[0]
}

// V3 answers one v3 poll with an encoded DiscoveryResponse in proto JSON. The
// version is that which the proxy says it has accepted, "" for none; an answer
// of the same version has no body when what the proxy has is not known here,
// and it is to keep that. The answer holds all
// resources of the type when names is empty, else exactly those named that
// exist. Every name of an endpoint set exists: one that means no instances is
// an empty assignment. So does every port number as a route table: without
// routes it is empty, and requests there find nothing.
func (s *Publisher) V3(typeURL, node, version string, names []string) (Answer, error) {
	p, g, err := s.locate(node)
	if err != nil {
		return Answer{}, err
	}
	p.usesV3.Store(true)
	var answer Answer
	switch typeURL {
	case ClusterType:
		answer, err = p.v3Clusters(g, version, names)
	case RouteType:
		answer, err = p.v3Routes(g, version, names)
	case EndpointType:
		answer, err = p.v3Endpoints(g, names)
	case ListenerType:
		answer, err = p.v3Listeners(g, version, names)
	default:
		return Answer{}, fmt.Errorf("%w %q: want %s, %s, %s or %s", ErrBadType, typeURL, ClusterType, EndpointType, ListenerType, RouteType)
	}
	return answer, notReady(node, err)
}

// maxMerged bounds the sets of clusters that are kept encoded while proxies
// move from one view to the next. Proxies of one view mostly move alike.
const maxMerged = 16

func (p *proxyState) v3Clusters(g *generation, version string, names []string) (Answer, error) {
	return p.handover.answerClusters(p.poll(g, version), func(target *view, beside []*view) (Answer, error) {
		a, err := target.encodedV3(p.proxy.IP)
		if err != nil {
			return Answer{}, err
		}
		clusters, err := a.clustersBeside(beside)
		if err != nil {
			return Answer{}, err
		}
		return clusters.answer(names), nil
	})
}

func (p *proxyState) v3Routes(g *generation, version string, names []string) (Answer, error) {
	return p.handover.answerRoutes(p.poll(g, version), strings.Join(names, ","), func(v *view) (Answer, error) {
		a, err := v.encodedV3(p.proxy.IP)
		if err != nil {
			return Answer{}, err
		}
		return a.routesNamed(names), nil
	})
}

func (p *proxyState) v3Listeners(g *generation, version string, names []string) (Answer, error) {
	return p.handover.answerRoutes(p.poll(g, version), ListenerType, func(v *view) (Answer, error) {
		a, err := v.encodedV3(p.proxy.IP)
		if err != nil {
			return Answer{}, err
		}
		listeners, err := a.listenersAt(p.proxy.IP)
		if err != nil {
			return Answer{}, err
		}
		return listeners.answer(names), nil
	})
}

func (p *proxyState) poll(g *generation, version string) poll {
	return poll{version: version, next: p.view, order: p.order, past: func() []*view { return g.server.past.viewsOf(p.proxy, p.view) }}
}

// v3Endpoints is not part of a handover: a set of endpoints is the same in
// every view.
func (p *proxyState) v3Endpoints(g *generation, names []string) (Answer, error) {
	if len(names) == 0 {
		names = endpointKeys(p.view.config)
	}
	return gather(EndpointType, names, func(name string) *resource { return g.endpoints.of(name).v3() }), nil
}

// clustersBeside are the clusters together with those that only the older
// views have.
func (a *v3Answers) clustersBeside(older []*view) (*set, error) {
	config, key := a.view.withClustersOf(older)
	if key == "" {
		return a.clusters, nil
	}
	if s, ok := a.merged.get(key); ok {
		return s, nil
	}
	var s *set
	err := a.view.server.recoverPanic("v3 clusters", func() error {
		s, _ = a.spellClusters(config)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return a.merged.put(key, s), nil
}

func (a *v3Answers) routesNamed(names []string) Answer {
	if len(names) == 0 {
		return a.routes.answer(nil)
	}
	return gather(RouteType, names, func(name string) *resource {
		if r := a.routes.named(name); r != nil || !isTableName(name) {
			return r
		}
		empty, _ := v3.Routes(&ir.RouteTable{Name: name})
		r, err := encode(RouteType, name, empty)
		if err != nil {
			return nil
		}
		return r
	})
}
