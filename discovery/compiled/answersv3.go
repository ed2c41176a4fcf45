package compiled

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pilot-api/pilot-api/compile"
	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/discovery/cached"
	"github.com/pilot-api/pilot-api/discovery/xds"
	v3 "github.com/pilot-api/pilot-api/envoy/v3"
	"github.com/pilot-api/pilot-api/ir"
)

// V3Answers has the v3 resources of a view, made of encoded parts. Listeners are encoded
// for each address of a proxy.
type V3Answers struct {
	View             *View
	streamed         bool
	proxyless        *proxylessHosts // nil for Envoys
	Clusters, Routes *xds.Set
	Secrets          *xds.Set
	scopedSecrets    *cached.Memo[*xds.Set]     // secrets without some private keys, by the namespace whose keys are in it
	merged           *cached.Memo[*xds.Set]     // clusters with some that are being withdrawn, by the version of the latter
	closed           *cached.Memo[*xds.Set]     // routes with closed tables, by the names of the latter
	listeners        *cached.Memo[*listenerSet] // by address
	problems         diag.Collector
}

// encodeV3 encodes the whole view, and the listeners of one proxy that polls.
func encodeV3(v *View, ip string) *V3Answers { return newV3Answers(v, ip, false) }

// encodeStreamed encodes a view for proxies on streams, whose clusters and listeners refer
// to the stream.
func encodeStreamed(v *View, ip string) *V3Answers { return newV3Answers(v, ip, true) }

func newV3Answers(v *View, ip string, streamed bool) *V3Answers {
	a := &V3Answers{View: v, streamed: streamed, merged: cached.NewMemo[*xds.Set](maxMerged), closed: cached.NewMemo[*xds.Set](maxMerged), scopedSecrets: cached.NewMemo[*xds.Set](maxScopes), listeners: cached.NewMemo[*listenerSet](v.Encoder.MaxProxies)}
	a.Clusters = a.clustersOf(v.Config)
	a.Routes = a.routesOf(v.Config)
	a.Secrets = a.secretsOf(v.Config)
	ip = a.address(ip)
	listeners := a.encodeListeners(ip)
	a.listeners.Put(ip, newListenerSet(listeners))
	for _, s := range []*xds.Set{a.Clusters, a.Routes, a.Secrets, listeners} {
		s.Problems.AddTo(&a.problems, diag.LostInV3)
	}
	return a
}

// EncodeJSON makes the JSON of everything except endpoints and secrets, with the listeners of
// the proxy at an address. Answers to polls are made of it. EncodeJSON returns early if ctx ends.
func (a *V3Answers) EncodeJSON(ctx context.Context, ip string) {
	for _, s := range []*xds.Set{a.Clusters, a.ListenersAt(ip), a.Routes} {
		s.EncodeJSON(ctx)
	}
}

func (a *V3Answers) parts() *xds.V3Parts { return &a.View.Encoder.V3 }

// source returns where a proxy gets the resources that a resource refers to.
func (a *V3Answers) source(delay time.Duration) v3.Source {
	if a.streamed {
		return v3.Streamed
	}
	return v3.Polled(delay)
}

func (a *V3Answers) clustersOf(config *ir.Config) *xds.Set {
	return a.parts().ClusterSet(config.Clusters, a.source(config.Delay))
}

func (a *V3Answers) routesOf(config *ir.Config) *xds.Set {
	all := make([]*xds.Resource, len(config.RouteTables))
	for i, t := range config.RouteTables {
		all[i] = a.parts().Table(t)
	}
	return xds.NewSet(xds.RouteType, all)
}

func (a *V3Answers) secretsOf(config *ir.Config) *xds.Set {
	all := make([]*xds.Resource, len(config.Secrets))
	for i, s := range config.Secrets {
		all[i] = a.parts().Secret(s)
	}
	return xds.NewSet(xds.SecretType, all)
}

// encodeListeners encodes listeners. Listeners with an open address are filled in anew each
// time, so their encoded form is kept with the set. All proxies share the others.
func (a *V3Answers) encodeListeners(ip string) *xds.Set {
	if a.proxyless != nil {
		return a.proxyless.listeners()
	}
	listeners := a.View.Config.ListenersAt(ip)
	all := make([]*xds.Resource, len(listeners))
	source := a.source(a.View.Config.RouteDelay)
	if a.streamed && a.View.Config.OnDemand {
		source = v3.OnDemand
	}
	for i, l := range listeners {
		all[i] = a.parts().Listener(l, source)
	}
	return xds.NewSet(xds.ListenerType, all)
}

// listenerSet has the listeners of the proxies at one address. There may be as many sets as
// proxies, and most polls need only the version, so the rest is made again when the version
// changes.
type listenerSet struct {
	version string
	last    cached.Brief[xds.Set]
}

func newListenerSet(s *xds.Set) *listenerSet {
	l := &listenerSet{version: s.Version}
	l.last.Get(func() *xds.Set { return s })
	return l
}

func (a *V3Answers) AnswerListeners(ip string, names []string) (answer xds.Answer, err error) {
	err = a.View.Encoder.Contain("v3 listeners", func() error {
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

// ListenersAt returns the listeners of a proxy at an address.
func (a *V3Answers) ListenersAt(ip string) *xds.Set {
	l, ip := a.listenerSet(ip)
	return a.allOf(l, ip)
}

func (a *V3Answers) allOf(l *listenerSet, ip string) *xds.Set {
	return l.last.Get(func() *xds.Set { return a.encodeListeners(ip) })
}

func (a *V3Answers) address(ip string) string {
	if a.proxyless != nil {
		return ""
	}
	return a.View.address(ip)
}

// listenerSet returns the set of an address, and the address that it is encoded for.
func (a *V3Answers) listenerSet(ip string) (l *listenerSet, of string) {
	of = a.address(ip)
	l, ok := a.listeners.Get(of)
	if !ok {
		l = a.listeners.Put(of, newListenerSet(a.encodeListeners(of)))
	}
	return l, of
}

// ClustersBeside returns the clusters of the view together with those that only the older
// views have. All of them are encoded already.
func (a *V3Answers) ClustersBeside(older []*View) *xds.Set {
	if len(older) == 0 {
		return a.Clusters
	}
	beside := a.View.withdrawnSince(older)
	if len(beside) == 0 {
		return a.Clusters
	}
	encoded := make([]*xds.Resource, len(beside))
	for i, c := range beside {
		encoded[i] = a.parts().Cluster(c, a.source(a.View.Config.Delay))
	}
	key := xds.VersionOf(nil, encoded)
	if s, ok := a.merged.Get(key); ok {
		return s
	}
	return a.merged.Put(key, xds.NewSet(xds.ClusterType, slices.Concat(a.Clusters.Sorted, encoded)))
}

func (a *V3Answers) RoutesNamed(names []string) xds.Answer {
	if len(names) == 0 {
		return a.Routes.Answer(nil)
	}
	return xds.Gather(xds.RouteType, names, func(name string) *xds.Resource {
		if r := a.Routes.Named(name); r != nil || !IsTableName(name) && (!IsGatewayTable(name) || a.View.Listens("", name)) {
			return r
		}
		return a.TableNamed(name)
	})
}

// RoutesBeside returns the route tables of the view together with closed ones of some names.
// closed is sorted. Proxies of one view mostly need the same ones.
func (a *V3Answers) RoutesBeside(closed []string) *xds.Set {
	if len(closed) == 0 {
		return a.Routes
	}
	key := strings.Join(closed, "\n")
	if s, ok := a.closed.Get(key); ok {
		return s
	}
	all := slices.Clone(a.Routes.Sorted)
	for _, name := range closed {
		if r := a.TableNamed(name); r != nil {
			all = append(all, r)
		}
	}
	return a.closed.Put(key, xds.NewSet(xds.RouteType, all))
}

// maxMerged bounds the sets of clusters, and of route tables, that are kept encoded while
// proxies move from one view to the next. Proxies of one view mostly move alike.
const maxMerged = 16

// IsTableName reports whether a name is that of a route table: a port, or the table of the
// HTTP proxy port.
func IsTableName(name string) bool {
	_, err := strconv.ParseUint(name, 10, 16)
	return err == nil || name == compile.ProxyTable
}

// TableNamed returns a closed table if there is none: an Envoy that is sent nothing never
// becomes ready. Connections of a gateway for which no server asks any more get 421, so that
// clients repeat requests over a new connection. All others get 404.
func (a *V3Answers) TableNamed(name string) *xds.Resource {
	if r := a.Routes.Named(name); r != nil {
		return r
	}
	if IsGatewayTable(name) {
		return a.parts().MisdirectingTable(name)
	}
	return a.parts().EmptyTable(name)
}
