package discovery

import (
	"fmt"

	"github.com/pilot-api/pilot-api/compile"
	"github.com/pilot-api/pilot-api/discovery/compiled"
	"github.com/pilot-api/pilot-api/discovery/xds"
	"github.com/pilot-api/pilot-api/envoy/v1"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
)

// fetches records that a proxy was answered a type.
func (p *Publisher) fetches(state *located, name string) {
	state.Fetched.Note(name, state.View.Polled())
	p.concludePolls(state.Client)
}

// V1Clusters answers CDS in Envoy's v1 REST API.
func (p *Publisher) V1Clusters(node string) (xds.Answer, error) {
	a, state, err := p.v1(mesh.Node{ID: node})
	if err != nil {
		return xds.Answer{}, err
	}
	p.fetches(state, "clusters")
	return a.Clusters.Answer(), nil
}

// V1Listeners answers LDS in Envoy's v1 REST API.
func (p *Publisher) V1Listeners(node string) (xds.Answer, error) {
	a, state, err := p.v1(mesh.Node{ID: node})
	if err != nil {
		return xds.Answer{}, err
	}
	p.fetches(state, "listeners")
	answer, err := a.ListenersAt(state.Proxy.IP)
	return answer, notReady(node, err)
}

// V1Routes answers RDS in Envoy's v1 REST API. A port without routes gets an empty table,
// as from Pilot, and requests there get 404. Every proxy has the table of the HTTP proxy
// port. Other unknown names are ErrBadRoute.
func (p *Publisher) V1Routes(node, table string) (xds.Answer, error) {
	a, state, err := p.v1(mesh.Node{ID: node})
	if err != nil {
		return xds.Answer{}, err
	}
	p.fetches(state, "routes")
	if routes, ok := a.Routes[table]; ok {
		return routes.Answer(), nil
	}
	if !compiled.IsTableName(table) {
		return xds.Answer{}, fmt.Errorf("%w %q: want a port number or %s", ErrBadRoute, table, compile.ProxyTable)
	}
	unheard := &ir.RouteTable{Name: table}
	if table == compile.ProxyTable {
		unheard = compile.Combined(a.View.Config.RouteTables)
	}
	routes, _ := v1.Routes(unheard)
	return xds.EncodeV1(routes)
}

// V1Endpoints answers SDS in Envoy's v1 REST API. It needs no node, because the answer is
// the same for every proxy. A key without instances gets an empty answer.
func (p *Publisher) V1Endpoints(serviceKey string) (xds.Answer, error) {
	g, err := p.published()
	if err != nil {
		return xds.Answer{}, err
	}
	return g.Endpoints.Of(serviceKey).V1()
}

func (p *Publisher) v1(node mesh.Node) (*compiled.V1Answers, *located, error) {
	state, _, err := p.locate(node)
	if err != nil {
		return nil, nil, err
	}
	p.fleet.AsksV1(state.ViewEntry)
	a, err := state.View.EncodedV1(state.Proxy.IP)
	return a, state, notReady(node.ID, err)
}

// notReady wraps an error to say that a proxy must keep what it has.
func notReady(node string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w for %s: %w", ErrNotReady, node, err)
}
