package main

import (
	"context"
	"maps"
	"slices"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilot-api/pilot-api/client"
	"github.com/pilot-api/pilot-api/compile"
	"github.com/pilot-api/pilot-api/diag"
	v1 "github.com/pilot-api/pilot-api/envoy/v1"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// analyzeFiles looks at the objects of the files alone, as proxies in each namespace
// and for each Gateway would follow them.
func (f *analyzeFlags) analyzeFiles(ctx context.Context, s *session) (*client.Problems, error) {
	settings, err := f.settings(s)
	if err != nil {
		return nil, err
	}
	docs, err := s.documents(ctx, f.files)
	if err != nil {
		return nil, err
	}
	list, problems := s.check(docs)
	problems = append(problems, repeated(diag.Error)(list)...)
	var objects []*schema.Object
	for _, m := range firstOfEach(list) {
		objects = append(objects, m.Object)
	}
	if len(objects) == 0 && len(problems) == 0 {
		return nil, f.files.noObjects()
	}
	snapshot := mesh.NewSnapshot(0, settings, objects)
	c := compile.NewCompiler()
	c.Advance(snapshot)
	problems = slices.Concat(problems, snapshot.Problems, c.Problems())
	for _, node := range proxiesFor(settings, objects) {
		proxy, err := node.Proxy()
		if err != nil {
			continue // A namespace that no host name can have.
		}
		config, own := c.Proxy(snapshot.View(proxy))
		if problems = append(problems, own...); f.v1 {
			problems = append(problems, lostInV1(config, proxy.IP).Coded(diag.LostInV1)...)
		}
	}
	return &client.Problems{Problems: located(problems, list)}, nil
}

// anyIP is where the proxies of an analysis are: beside no instance.
const anyIP = "127.0.0.1"

// proxiesFor are a sidecar for each namespace, and a router for each Gateway.
func proxiesFor(settings *mesh.Settings, objects []*schema.Object) []mesh.Node {
	nodes := map[string]mesh.Node{}
	add := func(role mesh.Role, o *schema.Object, labels mesh.Labels) {
		namespace := o.Meta.Namespace
		node, err := mesh.NewNode(string(role)+"~"+anyIP+"~any."+namespace+"~"+namespace+".svc."+settings.Domain, "", labels)
		if err == nil {
			nodes[node.ID+node.Labels] = node
		}
	}
	for _, o := range objects {
		add(mesh.Sidecar, o, nil)
		switch spec, _ := o.Spec(); spec := spec.(type) {
		case *networking.Gateway:
			add(mesh.Router, o, spec.GetSelector())
		case *schema.IngressRule:
			add(mesh.Ingress, o, nil)
		}
	}
	var out []mesh.Node
	for _, name := range slices.Sorted(maps.Keys(nodes)) {
		out = append(out, nodes[name])
	}
	return out
}

// lostInV1 is what an Envoy of the v1 API could not be told of a configuration.
func lostInV1(config *ir.Config, ip string) diag.List {
	_, problems := v1.Clusters(config)
	_, more := v1.Listeners(config, ip)
	problems = append(problems, more...)
	for _, table := range config.RouteTables {
		_, more := v1.Routes(table)
		problems = append(problems, more...)
	}
	return problems
}
