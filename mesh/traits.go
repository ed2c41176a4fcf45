package mesh

import (
	"cmp"
	"slices"
	"strconv"
)

// Traits are all properties of a proxy that its configuration may depend on, except its
// address. Proxies whose traits have the same Key get the same configuration.
type Traits struct {
	Role Role
	// Domain is the proxy's own, or the longest suffix of it that any object knows.
	Domain string
	// Network is that of the proxy, if it matters; "" if it is not known.
	Network string
	// Locality is that of the proxy, region/zone/sub-zone, or the longest
	// prefix of it that any object knows. It is "" if it is not known or does not
	// matter.
	Locality string
	// NeedsLocality is set if a rule that applies to the proxy depends on its locality.
	NeedsLocality bool
	// Instances are those at the proxy's address, in registry order: the instances of the
	// workload beside it. If several differ in nothing that the workload could notice, only
	// the first is listed. It is empty for ingress and router.
	Instances []*Instance
	// Labels are those of the workload that some object selects. The workload has
	// all labels of a set at once: those that its node states and, for a router or
	// ingress, those of the instances at its address.
	Labels []Labels
	// Called are the hosts for which the proxy has routes and clusters. It is nil if the
	// proxy has those of all hosts and never asks for more.
	Called *Called
}

// TraitsOf returns the traits of a proxy in this snapshot.
func (s *Snapshot) TraitsOf(p Proxy) Traits {
	t := Traits{Role: p.Role, Domain: s.domain(s.statedDomain(p))}
	if p.Role == Sidecar {
		t.Instances = s.instancesOf(p)
	}
	t.Labels = s.labels(p, NamespaceOf(t.Domain, s.Settings.Domain))
	t.Network = s.network(p, t.Instances)
	if t.NeedsLocality = s.needsLocality(NamespaceOf(t.Domain, s.Settings.Domain)); t.NeedsLocality {
		t.Locality = s.localityOf(p, t.Instances)
	}
	t.Instances = distinct(t.Instances)
	return t
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

// labels returns Traits.Labels, each set once, in a fixed order.
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

// Key returns a key that is equal for traits that give the same configuration within
// one snapshot. It contains role, domain, network, locality, the service, port,
// endpoint port and labels of every own instance, the labels that objects select, and
// the called hosts.
func (t Traits) Key() string {
	key := appendText(nil, string(t.Role))
	key = appendText(key, t.Domain)
	key = appendText(key, t.Network)
	key = appendText(key, t.Locality)
	for _, i := range t.Instances {
		key = appendText(key, i.Service.KeyHost())
		key = appendText(key, i.Port.Name)
		key = strconv.AppendInt(key, int64(i.EndpointPort), 10)
		key = i.Peer.appendKey(appendLabels(key, i.Labels))
		key = append(key, ';')
	}
	for _, set := range t.Labels {
		key = append(appendLabels(key, set), '+')
	}
	if t.Called != nil {
		key = append(append(key, '!'), t.Called.key...)
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
