package mesh

import (
	"cmp"
	"slices"
	"strconv"
)

// View is everything about a proxy that its configuration may depend on, apart from
// its address. Proxies whose views have the same Key get the same configuration.
type View struct {
	Role Role
	// Domain is the proxy's own, or the longest suffix of it that any object knows.
	Domain string
	// Network is that of the proxy, if it matters; "" if it is not known.
	Network string
	// Place is the locality of the proxy, region/zone/sub-zone, or the longest
	// prefix of it that any object knows. It is "" if it is not known or does not
	// matter.
	Place string
	// AsksPlace is set if a rule that applies to the proxy depends on its locality.
	AsksPlace bool
	// Instances are those at the proxy's address, in registry order: the instances
	// of the workload beside it. Of several that differ in nothing that the workload
	// could notice, the first stands for all. Empty for ingress and router.
	Instances []*Instance
	// Labels are those of the workload that some object selects. The workload has
	// all labels of a set at once: those that its node states and, for a router or
	// ingress, those of the instances at its address.
	Labels []Labels
}

// View returns the view of a proxy in this snapshot.
func (s *Snapshot) View(p Proxy) View {
	v := View{Role: p.Role, Domain: s.domain(s.statedDomain(p))}
	if p.Role == Sidecar {
		v.Instances = s.instancesOf(p)
	}
	v.Labels = s.labels(p, NamespaceOf(v.Domain, s.Settings.Domain))
	v.Network = s.network(p, v.Instances)
	if v.AsksPlace = s.asksPlace(NamespaceOf(v.Domain, s.Settings.Domain)); v.AsksPlace {
		v.Place = s.placeOf(p, v.Instances)
	}
	v.Instances = distinct(v.Instances)
	return v
}

// distinct returns the instances without those that have the service, port, endpoint
// port and labels of an earlier one: a ServiceEntry may list an address thousands of
// times.
func distinct(all []*Instance) []*Instance {
	if len(all) < 2 {
		return all
	}
	type workload struct {
		service *Service
		port    *Port
		number  int
		labels  string
	}
	var out []*Instance
	known := map[workload]bool{}
	for _, i := range all {
		w := workload{i.Service, i.Port, i.EndpointPort, string(appendLabels(nil, i.Labels))}
		if !known[w] {
			known[w] = true
			out = append(out, i)
		}
	}
	return out
}

// instancesOf returns the instances at the address of a proxy whose services are in its
// namespace or in the root namespace. Any namespace may list any address as an endpoint,
// and no other namespace may give a proxy labels or open ports of its workload. A proxy
// whose namespace is not known has all instances at its address, as in Istio.
func (s *Snapshot) instancesOf(p Proxy) []*Instance {
	all := s.byIP.get(p.IP)
	home := s.Settings.NamespaceOf(p)
	if home == "" || s.Settings.V1Compatibility.AnyNamespaceRules {
		return all
	}
	foreign := func(i *Instance) bool {
		namespace := i.Service.Namespace
		return namespace != home && namespace != s.Settings.RootNamespace
	}
	if !slices.ContainsFunc(all, foreign) {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), foreign)
}

// labels returns View.Labels, each set once, in a fixed order.
func (s *Snapshot) labels(p Proxy, namespace string) []Labels {
	var out []Labels
	note := func(set Labels) {
		set = s.asks(p.Role, namespace, set)
		if len(set) > 0 && !slices.ContainsFunc(out, set.Equal) {
			out = append(out, set)
		}
	}
	note(p.Labels)
	if p.Role != Sidecar {
		for _, i := range s.instancesOf(p) {
			note(i.Labels)
		}
	}
	slices.SortFunc(out, func(a, b Labels) int { return cmp.Compare(a.String(), b.String()) })
	return out
}

// statedDomain returns the proxy's domain, or that of the namespace that it states,
// which takes precedence over the domain that completes short names.
func (s *Snapshot) statedDomain(p Proxy) string {
	if p.Namespace == "" || NamespaceOf(p.Domain, s.Settings.Domain) == p.Namespace {
		return p.Domain
	}
	return p.Namespace + ".svc." + s.Settings.Domain
}

// NamespaceOf returns the namespace that a proxy states, or "" if it is not known.
func (s *Settings) NamespaceOf(p Proxy) string {
	if p.Namespace != "" {
		return p.Namespace
	}
	return NamespaceOf(p.Domain, s.Domain)
}

// Key returns a key that is equal for views that give the same configuration within
// one snapshot. It contains role, domain, network, place, the service, port,
// endpoint port and labels of every own instance, and the labels that objects
// select.
func (v View) Key() string {
	key := appendText(nil, string(v.Role))
	key = appendText(key, v.Domain)
	key = appendText(key, v.Network)
	key = appendText(key, v.Place)
	for _, i := range v.Instances {
		key = appendText(key, i.Service.KeyHost())
		key = appendText(key, i.Port.Name)
		key = strconv.AppendInt(key, int64(i.EndpointPort), 10)
		key = append(appendLabels(key, i.Labels), ';')
	}
	for _, set := range v.Labels {
		key = append(appendLabels(key, set), '+')
	}
	return string(key)
}

func appendLabels(key []byte, labels Labels) []byte {
	var space [8]string // Most workloads have no more labels.
	names := space[:0]
	for name := range labels {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		key = appendText(key, name)
		key = appendText(key, labels[name])
	}
	return key
}

// appendText appends a string preceded by its length, so that no string can imitate
// the end of another.
func appendText(key []byte, text string) []byte {
	key = strconv.AppendInt(key, int64(len(text)), 10)
	key = append(key, ':')
	return append(key, text...)
}
