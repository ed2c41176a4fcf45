package discovery

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/discovery/cached"
	"github.com/pilot-api/pilot-api/discovery/xds"
	"github.com/pilot-api/pilot-api/envoy/v3"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
)

// v3Answers is a view in v3, made of encoded parts. Listeners are encoded per
// address of a proxy.
type v3Answers struct {
	view             *view
	streamed         bool
	proxyless        *proxyless // nil for Envoys
	clusters, routes *xds.Set
	secrets          *xds.Set
	publicSecrets    *xds.Set                   // those without a private key
	merged           *cached.Memo[*xds.Set]     // clusters with some that are being withdrawn, by the version of those
	listeners        *cached.Memo[*listenerSet] // by address
	problems         diag.Collector
}

// encodeV3 encodes everything and the listeners of one proxy that polls.
func encodeV3(v *view, ip string) *v3Answers { return newV3Answers(v, ip, false) }

// encodeStreamed is for proxies on streams: their clusters and listeners refer to
// the stream.
func encodeStreamed(v *view, ip string) *v3Answers { return newV3Answers(v, ip, true) }

func newV3Answers(v *view, ip string, streamed bool) *v3Answers {
	a := &v3Answers{view: v, streamed: streamed, merged: cached.NewMemo[*xds.Set](maxMerged), listeners: cached.NewMemo[*listenerSet](v.server.opts.MaxProxies)}
	a.clusters = a.clustersOf(v.config)
	a.routes = a.routesOf(v.config)
	a.secrets = a.secretsOf(v.config)
	a.publicSecrets = a.publicSecretsOf(v.config)
	ip = a.address(ip)
	listeners := a.encodeListeners(ip)
	a.listeners.Put(ip, newListenerSet(listeners))
	for _, s := range []*xds.Set{a.clusters, a.routes, a.secrets, listeners} {
		s.Problems.AddTo(&a.problems, diag.LostInV3)
	}
	return a
}

func (a *v3Answers) parts() *xds.V3Parts { return &a.view.server.v3Parts }

// source is where a proxy gets what a resource refers to.
func (a *v3Answers) source(delay time.Duration) v3.Source {
	if a.streamed {
		return v3.Streamed
	}
	return v3.Polled(delay)
}

func (a *v3Answers) clustersOf(config *ir.Config) *xds.Set {
	return a.parts().ClusterSet(config.Clusters, a.source(config.Delay))
}

func (a *v3Answers) routesOf(config *ir.Config) *xds.Set {
	all := make([]*xds.Resource, len(config.RouteTables))
	for i, t := range config.RouteTables {
		all[i] = a.parts().Table(t)
	}
	return xds.NewSet(xds.RouteType, all)
}

func (a *v3Answers) secretsOf(config *ir.Config) *xds.Set {
	all := make([]*xds.Resource, len(config.Secrets))
	for i, s := range config.Secrets {
		all[i] = a.parts().Secret(s)
	}
	return xds.NewSet(xds.SecretType, all)
}

// encodeListeners: those with an open address are filled in anew each time, so
// what they are encoded as goes with the set; the others are shared by all.
func (a *v3Answers) encodeListeners(ip string) *xds.Set {
	if a.proxyless != nil {
		return a.proxyless.listeners()
	}
	listeners := a.view.config.ListenersAt(ip)
	all := make([]*xds.Resource, len(listeners))
	for i, l := range listeners {
		all[i] = a.parts().Listener(l, a.source(a.view.config.RouteDelay))
	}
	return xds.NewSet(xds.ListenerType, all)
}

// listenerSet is what proxies of one address are told. There are as many as
// proxies, and most polls need no more than the version: the rest is made again
// when it changes.
type listenerSet struct {
	version string
	last    cached.Brief[xds.Set]
}

func newListenerSet(s *xds.Set) *listenerSet {
	l := &listenerSet{version: s.Version}
	l.last.Get(func() *xds.Set { return s })
	return l
}

func (a *v3Answers) answerListeners(ip string, names []string) (answer xds.Answer, err error) {
	err = a.view.server.recoverPanic("v3 listeners", func() error {
		l, ip := a.listenerSet(ip)
		all := func() xds.Answer { return a.allOf(l, ip).Answer(names) }
		if len(names) > 0 {
			answer = all()
		} else {
			answer = xds.Answer{Version: l.version, Compose: func() []byte { return all().Compose() }}
		}
		return nil
	})
	return answer, err
}

// listenersAt is what a proxy of this address is told.
func (a *v3Answers) listenersAt(ip string) *xds.Set {
	l, ip := a.listenerSet(ip)
	return a.allOf(l, ip)
}

func (a *v3Answers) allOf(l *listenerSet, ip string) *xds.Set {
	return l.last.Get(func() *xds.Set { return a.encodeListeners(ip) })
}

func (a *v3Answers) address(ip string) string {
	if a.proxyless != nil {
		return ""
	}
	return a.view.address(ip)
}

// listenerSet is that of an address, and which address it is spelled for.
func (a *v3Answers) listenerSet(ip string) (l *listenerSet, of string) {
	of = a.address(ip)
	l, ok := a.listeners.Get(of)
	if !ok {
		l = a.listeners.Put(of, newListenerSet(a.encodeListeners(of)))
	}
	return l, of
}

// V3 answers one v3 poll with an encoded DiscoveryResponse in proto JSON. The
// version is that which the proxy says it has accepted, "" for none; an answer
// of the same version has no body. The answer holds all
// resources of the type when names is empty, else exactly those named that
// exist. Every name of an endpoint set exists: one that means no instances is
// an empty assignment. So does every port number as a route table: without
// routes it is empty, and requests there find nothing. A poll for a private key gets
// ErrWithheld.
func (s *Publisher) V3(typeURL string, node mesh.Node, version string, names []string) (xds.Answer, error) {
	return s.poll(typeURL, node, version, names, false)
}

// V3Secrets is V3 for secrets over a connection that proves that the proxy may have
// private keys.
func (s *Publisher) V3Secrets(node mesh.Node, version string, names []string) (xds.Answer, error) {
	return s.poll(xds.SecretType, node, version, names, true)
}

func (s *Publisher) poll(typeURL string, node mesh.Node, version string, names []string, keys bool) (xds.Answer, error) {
	p, g, err := s.locate(node)
	if err != nil {
		return xds.Answer{}, err
	}
	p.usesV3.Store(true)
	var answer xds.Answer
	switch typeURL {
	case xds.ClusterType:
		answer, err = p.v3Clusters(g, version, names)
	case xds.RouteType:
		answer, err = p.v3Routes(g, version, names)
	case xds.EndpointType:
		answer, err = p.v3Endpoints(g, version, names)
	case xds.ListenerType:
		answer, err = p.v3Listeners(g, version, names)
	case xds.SecretType:
		answer, err = p.v3Secrets(names, keys)
		s.noteDenied(p.client, errors.Is(err, ErrWithheld))
	default:
		return xds.Answer{}, fmt.Errorf("%w %q: want %s, %s, %s, %s or %s", ErrBadType, typeURL, xds.ClusterType, xds.EndpointType, xds.ListenerType, xds.RouteType, xds.SecretType)
	}
	if err == nil && answer.Version != version {
		err = s.compose(&answer)
	}
	s.concludePolls(p.client)
	if errors.Is(err, ErrWithheld) {
		return xds.Answer{}, err
	}
	return answer, notReady(node.ID, err)
}

// compose makes the body of an answer.
func (s *Publisher) compose(a *xds.Answer) error {
	return s.recoverPanic("body", func() error {
		a.Body, a.Compose = a.Compose(), nil
		return nil
	})
}

// maxMerged bounds the sets of clusters that are kept encoded while proxies
// move from one view to the next. Proxies of one view mostly move alike.
const maxMerged = 16

func (p *proxyState) v3Clusters(g *generation, version string, names []string) (xds.Answer, error) {
	return p.handover.answerClusters(p.poll(g, version), func(target *view, beside []*view) (xds.Answer, error) {
		a, err := target.encodedV3(p.proxy.IP)
		if err != nil {
			return xds.Answer{}, err
		}
		return a.clustersBeside(beside).Answer(names), nil
	})
}

func (p *proxyState) v3Routes(g *generation, version string, names []string) (xds.Answer, error) {
	return p.handover.answerRoutes(p.poll(g, version), strings.Join(names, ","), func(v *view) (xds.Answer, error) {
		a, err := v.encodedV3(p.proxy.IP)
		if err != nil {
			return xds.Answer{}, err
		}
		return a.routesNamed(names), nil
	})
}

func (p *proxyState) v3Listeners(g *generation, version string, names []string) (xds.Answer, error) {
	return p.handover.answerRoutes(p.poll(g, version), xds.ListenerType, func(v *view) (xds.Answer, error) {
		a, err := v.encodedV3(p.proxy.IP)
		if err != nil {
			return xds.Answer{}, err
		}
		return a.answerListeners(p.proxy.IP, names)
	})
}

func (p *proxyState) poll(g *generation, version string) poll {
	return poll{version: version, next: p.view, order: p.order, past: func(is func(*view) bool) (views []*view, lately *view) {
		return g.server.past.viewsOf(p.proxy, p.view, p.born.Load(), is), p.slot.lately.view()
	}, isCaughtUp: g.server.isCaughtUp}
}

// v3Endpoints is not part of a handover: a set of endpoints is the same in
// every view. Who may be ahead of this replica keeps what it has.
func (p *proxyState) v3Endpoints(g *generation, version string, names []string) (xds.Answer, error) {
	if len(names) == 0 {
		names = endpointKeys(p.view.config.Clusters)
	}
	answer := xds.Gather(xds.EndpointType, names, func(name string) *xds.Resource { return g.endpoints.of(name).v3() })
	switch {
	case answer.Version == version || !p.lacksEndpoints(g, version, names):
		return answer, nil
	case version == "":
		return xds.Answer{}, errBehind
	}
	return xds.Answer{Version: version}, nil
}

// v3Secrets is not part of a handover: what refers to a secret that is not there
// any more keeps the last one.
func (p *proxyState) v3Secrets(names []string, keys bool) (xds.Answer, error) {
	if !keys && wantsKeys(p.view.config, names) {
		return xds.Answer{}, ErrWithheld
	}
	a, err := p.view.encodedV3(p.proxy.IP)
	if err != nil {
		return xds.Answer{}, err
	}
	return a.secrets.Answer(names), nil
}

// clustersBeside are the clusters together with those that only the older
// views have. All of them are encoded already.
func (a *v3Answers) clustersBeside(older []*view) *xds.Set {
	beside := a.view.withdrawnSince(older)
	if len(beside) == 0 {
		return a.clusters
	}
	encoded := make([]*xds.Resource, len(beside))
	for i, c := range beside {
		encoded[i] = a.parts().Cluster(c, a.source(a.view.config.Delay))
	}
	key := xds.VersionOf(nil, encoded)
	if s, ok := a.merged.Get(key); ok {
		return s
	}
	return a.merged.Put(key, xds.NewSet(xds.ClusterType, slices.Concat(a.clusters.Sorted, encoded)))
}

func (a *v3Answers) routesNamed(names []string) xds.Answer {
	if len(names) == 0 {
		return a.routes.Answer(nil)
	}
	return xds.Gather(xds.RouteType, names, func(name string) *xds.Resource {
		if r := a.routes.Named(name); r != nil || !isTableName(name) {
			return r
		}
		return a.parts().EmptyTable(name)
	})
}
