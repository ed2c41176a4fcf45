package mesh

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
)

// View is everything about a proxy that its configuration may depend on,
// apart from its address. Proxies with equal Key get the same configuration.
type View struct {
	Role Role
	// Domain is the proxy's own, or as much of its end as any object knows.
	Domain string
	// Network of the proxy, where it matters; "" when it is not known.
	Network string
	// Place is where the proxy is, region/zone/sub-zone, or as much of that as any
	// object knows. "" when that is not known, and when it does not matter.
	Place string
	// AsksPlace: a rule that concerns the proxy asks for it.
	AsksPlace bool
	// Instances at the proxy's address, in registry order: what the
	// workload beside it serves. Empty for ingress and router.
	Instances []*Instance
	// Labels of the workload that some object asks for, in sets each of which
	// it has at once: what its node states and, for a router or ingress, what
	// the instances at its address have.
	Labels []Labels
}

// View of a proxy in this snapshot.
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
	return v
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

// labels are those of View.Labels, each set once, in one order.
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

// statedDomain is the proxy's own, or the one of a namespace that it states: what
// it belongs to is then said, whatever it completes short names by.
func (s *Snapshot) statedDomain(p Proxy) string {
	if p.Namespace == "" || NamespaceOf(p.Domain, s.Settings.Domain) == p.Namespace {
		return p.Domain
	}
	return p.Namespace + ".svc." + s.Settings.Domain
}

// NamespaceOf is where a proxy belongs by what it says, "" where that is not known.
func (s *Settings) NamespaceOf(p Proxy) string {
	if p.Namespace != "" {
		return p.Namespace
	}
	return NamespaceOf(p.Domain, s.Domain)
}

// Key is equal for views that give the same configuration within one
// snapshot: role, domain, network, place, the service, port, endpoint port and labels of every
// own instance, and the labels that somebody asks for.
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
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		key = appendText(key, name)
		key = appendText(key, labels[name])
	}
	return key
}

// appendText puts the length before the text: no text can then imitate the end
// of another.
func appendText(key []byte, text string) []byte {
	key = strconv.AppendInt(key, int64(len(text)), 10)
	key = append(key, ':')
	return append(key, text...)
}
