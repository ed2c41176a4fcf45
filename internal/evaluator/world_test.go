package evaluator_test

import (
	"encoding/json"
	"fmt"
	"testing"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/proto"

	"github.com/pilot-api/pilot-api/compile"
	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/envoy"
	v1 "github.com/pilot-api/pilot-api/envoy/v1"
	v3 "github.com/pilot-api/pilot-api/envoy/v3"
	"github.com/pilot-api/pilot-api/internal/evaluator"
	"github.com/pilot-api/pilot-api/internal/v1schema"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// world is what a proxy's configuration follows from.
type world struct {
	settings *mesh.Settings
	objects  []*schema.Object
	node     mesh.Proxy
}

// spelled is one configuration in all its forms.
type spelled struct {
	config *ir.Config
	ip     string
	v1, v3 *evaluator.Proxy
	// complaints are the objects of which an Envoy version cannot have
	// everything.
	complaints map[diag.Ref]bool
	// problems are those of compiling.
	problems diag.List
}

// spell compiles the world, and reads back what both versions are told.
func (w world) spell(tb testing.TB) (*spelled, error) {
	out, snapshot := w.compile()
	var err error
	if out.v1, err = evaluator.ReadV1(out.v1Answers(tb, snapshot)); err != nil {
		return nil, err
	}
	out.v3, err = evaluator.ReadV3(out.v3Resources(snapshot))
	return out, err
}

func (w world) compile() (*spelled, *mesh.Snapshot) {
	snapshot := mesh.NewSnapshot(1, w.settings, w.objects)
	config, problems := compile.Proxy(snapshot, snapshot.TraitsOf(w.node))
	return &spelled{config: config, ip: w.node.IP, problems: problems, complaints: map[diag.Ref]bool{}}, snapshot
}

// bytes are all answers in both versions, by a name for each.
func (w world) bytes(tb testing.TB) map[string]string {
	s, snapshot := w.compile()
	one, three := s.v1Answers(tb, snapshot), s.v3Resources(snapshot)
	out := map[string]string{"v1 clusters": string(one.Clusters), "v1 listeners": string(one.Listeners)}
	for name, body := range one.Routes {
		out["v1 routes "+name] = string(body)
	}
	for name, body := range one.Endpoints {
		out["v1 endpoints "+name] = string(body)
	}
	marshal(tb, out, "v3 clusters", three.Clusters)
	marshal(tb, out, "v3 listeners", three.Listeners)
	marshal(tb, out, "v3 routes", three.Routes)
	marshal(tb, out, "v3 endpoints", three.Endpoints)
	return out
}

func marshal[M proto.Message](tb testing.TB, into map[string]string, name string, messages []M) {
	for i, m := range messages {
		text, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
		if err != nil {
			tb.Fatal(err)
		}
		into[fmt.Sprintf("%s %d", name, i)] = string(text)
	}
}

// complain notes whom the problems are about.
func (s *spelled) complain(problems diag.List) {
	for _, p := range problems {
		s.complaints[p.Object] = true
	}
}

// v1Answers are valid by Envoy's schemas.
func (s *spelled) v1Answers(tb testing.TB, snapshot *mesh.Snapshot) evaluator.V1Answers {
	out := evaluator.V1Answers{Routes: map[string][]byte{}, Endpoints: map[string][]byte{}}
	clusters, problems := v1.Clusters(s.config)
	s.complain(problems)
	out.Clusters = answer(tb, "cds-response", clusters)
	listeners, problems := v1.Listeners(s.config, s.ip)
	s.complain(problems)
	out.Listeners = answer(tb, "lds-response-stock", listeners)
	for _, table := range s.config.RouteTables {
		routes, problems := v1.Routes(table)
		s.complain(problems)
		out.Routes[table.Name] = answer(tb, "rds-response", routes)
	}
	out.Endpoints[blackHole] = answer(tb, "sds-response", v1.Endpoints(members(snapshot, blackHole)))
	for _, c := range s.config.Clusters {
		if c.EndpointKey != "" {
			out.Endpoints[c.EndpointKey] = answer(tb, "sds-response", v1.Endpoints(members(snapshot, c.EndpointKey)))
		}
	}
	return out
}

func answer(tb testing.TB, schema string, body any) []byte {
	text, err := json.Marshal(body)
	if err != nil {
		tb.Fatal(err)
	}
	v1schema.Validate(tb, schema, text)
	return text
}

func (s *spelled) v3Resources(snapshot *mesh.Snapshot) evaluator.V3Resources {
	var out evaluator.V3Resources
	var problems diag.List
	out.Clusters, problems = v3.Clusters(s.config)
	s.complain(problems)
	out.Listeners, problems = v3.Listeners(s.config, s.ip)
	s.complain(problems)
	for _, table := range s.config.RouteTables {
		routes, problems := v3.Routes(table)
		s.complain(problems)
		out.Routes = append(out.Routes, routes)
	}
	asked := map[string]*endpointv3.ClusterLoadAssignment{}
	for _, c := range s.config.Clusters {
		if name := envoy.EndpointsName(c); c.EndpointKey != "" && asked[name] == nil {
			order, key := envoy.ParseEndpointsName(name)
			asked[name] = v3.Endpoints(name, order.Arranged(members(snapshot, key)))
			out.Endpoints = append(out.Endpoints, asked[name])
		}
	}
	return out
}

// members are the instances behind a key.
func members(s *mesh.Snapshot, key string) []ir.Endpoint {
	var out []ir.Endpoint
	for _, i := range s.Endpoints(mesh.ParseServiceKey(key)) {
		out = append(out, ir.Endpoint{Host: i.Address, Port: i.EndpointPort, Zone: i.Zone, Weight: i.Weight, Labels: i.Labels})
	}
	return out
}
