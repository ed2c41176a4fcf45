package discovery

import (
	"fmt"
	"strconv"

	"github.com/pilot-api/pilot-api/compile"
	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/discovery/cached"
	"github.com/pilot-api/pilot-api/discovery/xds"
	"github.com/pilot-api/pilot-api/envoy/v1"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
)

// v1Answers is a view in v1. Clusters and routes are spliced from encoded parts,
// listeners are encoded per address of a proxy.
type v1Answers struct {
	view      *view
	clusters  *xds.V1List
	routes    map[string]*xds.V1List
	listeners *cached.Memo[xds.Answer]
	problems  diag.Collector
}

func encodeV1(v *view, ip string) (*v1Answers, error) {
	parts := &v.server.v1Parts
	a := &v1Answers{view: v, routes: map[string]*xds.V1List{}, listeners: cached.NewMemo[xds.Answer](v.server.opts.MaxProxies)}
	a.clusters = parts.ClustersOf(v.config)
	a.clusters.AddProblems(&a.problems)
	if a.clusters.Err != nil {
		return nil, a.clusters.Err
	}
	for _, t := range v.config.RouteTables {
		table := parts.Table(t)
		a.routes[t.Name] = table
		table.AddProblems(&a.problems)
		if table.Err != nil {
			return nil, table.Err
		}
	}
	ip = v.address(ip)
	listeners, problems := v1.Listeners(v.config, ip)
	a.problems.Add(problems.Coded(diag.LostInV1)...)
	answer, err := xds.EncodeV1(listeners)
	a.listeners.Put(ip, answer)
	return a, err
}

func (a *v1Answers) listenersAt(ip string) (xds.Answer, error) {
	ip = a.view.address(ip)
	if answer, ok := a.listeners.Get(ip); ok {
		return answer, nil
	}
	var answer xds.Answer
	err := a.view.server.recoverPanic("v1 listeners", func() (err error) {
		listeners, _ := v1.Listeners(a.view.config, ip)
		answer, err = xds.EncodeV1(listeners)
		return err
	})
	if err != nil {
		return xds.Answer{}, err
	}
	return a.listeners.Put(ip, answer), nil
}

// fetches notes that a proxy was told a type.
func (s *Publisher) fetches(p *proxyState, name string) {
	p.fetched.note(name, p.view)
	s.concludePolls(p.client)
}

// V1Clusters answers CDS in Envoy's v1 REST API.
func (s *Publisher) V1Clusters(node string) (xds.Answer, error) {
	a, p, err := s.v1(mesh.Node{ID: node})
	if err != nil {
		return xds.Answer{}, err
	}
	s.fetches(p, "clusters")
	return a.clusters.Answer(), nil
}

// V1Listeners answers LDS in Envoy's v1 REST API.
func (s *Publisher) V1Listeners(node string) (xds.Answer, error) {
	a, p, err := s.v1(mesh.Node{ID: node})
	if err != nil {
		return xds.Answer{}, err
	}
	s.fetches(p, "listeners")
	answer, err := a.listenersAt(p.proxy.IP)
	return answer, notReady(node, err)
}

// V1Routes answers RDS in Envoy's v1 REST API. A port that has no routes gets
// an empty table, as from Pilot: requests there find nothing. The table of the
// HTTP proxy port is there for whoever asks. Other unknown names are
// ErrBadRoute.
func (s *Publisher) V1Routes(node, table string) (xds.Answer, error) {
	a, p, err := s.v1(mesh.Node{ID: node})
	if err != nil {
		return xds.Answer{}, err
	}
	s.fetches(p, "routes")
	if routes, ok := a.routes[table]; ok {
		return routes.Answer(), nil
	}
	if !isTableName(table) {
		return xds.Answer{}, fmt.Errorf("%w %q: want a port number or %s", ErrBadRoute, table, compile.ProxyTable)
	}
	unheard := &ir.RouteTable{Name: table}
	if table == compile.ProxyTable {
		unheard = compile.Combined(a.view.config.RouteTables)
	}
	routes, _ := v1.Routes(unheard)
	return xds.EncodeV1(routes)
}

// V1Endpoints answers SDS in Envoy's v1 REST API. It needs no node: the answer
// is the same for every proxy. What names no instances is answered with none.
func (s *Publisher) V1Endpoints(serviceKey string) (xds.Answer, error) {
	g, err := s.published()
	if err != nil {
		return xds.Answer{}, err
	}
	return g.endpoints.of(serviceKey).v1()
}

func (s *Publisher) v1(node mesh.Node) (*v1Answers, *proxyState, error) {
	p, _, err := s.locate(node)
	if err != nil {
		return nil, nil, err
	}
	s.fleet.asksV1(p.slot)
	a, err := p.view.encodedV1(p.proxy.IP)
	return a, p, notReady(node.ID, err)
}

// isTableName knows the table of the HTTP proxy port; all others are ports.
func isTableName(name string) bool {
	_, err := strconv.ParseUint(name, 10, 16)
	return err == nil || name == compile.ProxyTable
}

// notReady says, if there is an error, that a proxy must keep what it has.
func notReady(node string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w for %s: %w", ErrNotReady, node, err)
}
