package mesh

import (
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
	// Instances at the proxy's address, in registry order: what the
	// workload beside it serves. Empty for ingress and router.
	Instances []*Instance
}

// View of a proxy in this snapshot.
func (s *Snapshot) View(p Proxy) View {
	v := View{Role: p.Role, Domain: s.domain(s.statedDomain(p))}
	if p.Role == Sidecar {
		v.Instances = s.byIP.get(p.IP)
	}
	return v
}

// statedDomain is the proxy's own, or the one of a namespace that it states: what
// it belongs to is then said, whatever it completes short names by.
func (s *Snapshot) statedDomain(p Proxy) string {
	if p.Namespace == "" || NamespaceOf(p.Domain, s.Settings.Domain) == p.Namespace {
		return p.Domain
	}
	return p.Namespace + ".svc." + s.Settings.Domain
}

// Key is equal for views that give the same configuration within one
// snapshot: role, domain, and the service, port, endpoint port and labels of
// every own instance.
func (v View) Key() string {
	key := appendText(nil, string(v.Role))
	key = appendText(key, v.Domain)
	for _, i := range v.Instances {
		key = appendText(key, i.Service.KeyHost())
		key = appendText(key, i.Port.Name)
		key = strconv.AppendInt(key, int64(i.EndpointPort), 10)
		for _, name := range slices.Sorted(maps.Keys(i.Labels)) {
			key = appendText(key, name)
			key = appendText(key, i.Labels[name])
		}
		key = append(key, ';')
	}
	return string(key)
}

// appendText puts the length before the text: no text can then imitate the end
// of another.
func appendText(key []byte, text string) []byte {
	key = strconv.AppendInt(key, int64(len(text)), 10)
	key = append(key, ':')
	return append(key, text...)
}
