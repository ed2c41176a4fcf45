package mesh

import (
	"maps"
	"slices"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilot-api/pilot-api/schema"
)

// ExpectedProxies returns the proxies that the objects are meant for, whether or
// not any are connected: a sidecar for each namespace that has objects, an ingress
// for each that has IngressRules, and a router for each Gateway. They have no
// workload. The order is fixed, and each occurs once.
func (s *Snapshot) ExpectedProxies() []Proxy {
	found := map[string]Proxy{}
	expect := func(role Role, namespace string, labels Labels) {
		node, err := NewNode(string(role)+"~"+nowhere+"~any."+namespace+"~"+namespace+".svc."+s.Settings.Domain, "", labels)
		if err != nil {
			return // No workload can have the labels that the Gateway selects.
		}
		if proxy, err := node.Proxy(); err == nil {
			found[node.ID+node.Labels] = proxy
		}
	}
	for _, kind := range schema.Kinds() {
		if kind.Flat {
			continue // It concerns no proxy.
		}
		last := ""
		for _, o := range s.objects[kind.Kind] {
			if namespace := o.Meta.Namespace; namespace != last {
				expect(Sidecar, namespace, nil)
				last = namespace
			}
		}
	}
	for _, o := range s.objects["IngressRule"] {
		expect(Ingress, o.Meta.Namespace, nil)
	}
	for _, o := range s.objects["Gateway"] {
		if spec, err := o.Spec(); err == nil {
			expect(Router, o.Meta.Namespace, spec.(*networking.Gateway).GetSelector())
		}
	}
	var out []Proxy
	for _, node := range slices.Sorted(maps.Keys(found)) {
		out = append(out, found[node])
	}
	return out
}

// nowhere is an address that no instance has (RFC 5737).
const nowhere = "192.0.2.1"
