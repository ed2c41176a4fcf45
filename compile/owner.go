package compile

import (
	"cmp"
	"slices"
	"strings"

	"github.com/pilot-api/pilot-api/mesh"
)

// This file decides which service owns a name or address that several declare, for
// all protocols. Ownership is by namespace; within a namespace its objects are free
// to share (decision 011).

// compareOwners sorts first the service that owns what both declare: that of the
// older object, then the first by namespace and name.
func (m *model) compareOwners(a, b *mesh.Service) int {
	if m.pilot().AnyNamespaceRules {
		return mesh.CompareServices(a, b)
	}
	if order := a.Created.Compare(b.Created); order != 0 {
		return order
	}
	if a.Origin.Namespace != b.Origin.Namespace { // As in mesh.CompareKeys.
		return cmp.Compare(a.Origin.Namespace+"/", b.Origin.Namespace+"/")
	}
	return cmp.Or(cmp.Compare(a.Origin.Name, b.Origin.Name), cmp.Compare(a.Origin.Kind, b.Origin.Kind), mesh.CompareServices(a, b))
}

// inOwnerOrder returns the services in the order of compareOwners. The slice is
// new.
func (m *model) inOwnerOrder(services []*mesh.Service) []*mesh.Service {
	out := slices.Clone(services)
	if !m.pilot().AnyNamespaceRules {
		slices.SortStableFunc(out, m.compareOwners)
	}
	return out
}

// nameClaim is a claim of a service to a domain in a table.
type nameClaim struct {
	service *mesh.Service
	host    *candidate // the virtual host that claims it
	// strength of the claim for these callers. The lowest value wins.
	strength int
	whole    bool // whether it is the host of the service, not a short form or an address
}

// Strengths of claims to a name.
const (
	wholeInMesh  = iota // a declared host that contains a namespace of the mesh
	ofCallers           // a short name of a service in the callers' own namespace
	declaredName        // a host as declared, an address, or a short form in the namespace that the host names
	derivedName         // a short form of a host that is declared in another namespace than the host names
)

// claimOf returns the claim of a service to a domain, with its strength.
func (v *viewpoint) claimOf(svc *mesh.Service, name string) nameClaim {
	out := nameClaim{service: svc, strength: declaredName, whole: strings.EqualFold(name, svc.Hostname)}
	switch home := mesh.NamespaceOf(svc.Hostname, v.settings.Domain); {
	case out.whole && home != "":
		out.strength = wholeInMesh
	case out.whole:
		if isShort(name) && v.namespace != "" && svc.Namespace == v.namespace {
			out.strength = ofCallers
		}
	case !strings.HasPrefix(svc.Hostname, name+"."): // It is an address.
	case home != svc.Namespace:
		out.strength = derivedName
	case v.namespace != "" && home == v.namespace:
		out.strength = ofCallers
	}
	return out
}

// firstOf returns the winning claim to one name. The namespace with the first
// claim, by strength and then by age, wins. Within it the whole host comes first,
// then the strongest, then the oldest claim.
func (m *model) firstOf(claims []nameClaim) nameClaim {
	first := slices.MinFunc(claims, func(a, b nameClaim) int {
		if m.pilot().AnyNamespaceRules {
			return cmp.Or(wholeFirst(a, b), m.compareOwners(a.service, b.service))
		}
		return cmp.Or(cmp.Compare(a.strength, b.strength), m.compareOwners(a.service, b.service))
	})
	if m.pilot().AnyNamespaceRules {
		return first
	}
	for _, c := range claims {
		if c.service.Namespace == first.service.Namespace && cmp.Or(wholeFirst(c, first), cmp.Compare(c.strength, first.strength), m.compareOwners(c.service, first.service)) < 0 {
			first = c
		}
	}
	return first
}

func wholeFirst(a, b nameClaim) int {
	switch {
	case a.whole == b.whole:
		return 0
	case a.whole:
		return -1
	}
	return 1
}

// whyFirst says why a claim comes before another one.
func (v *viewpoint) whyFirst(first, other nameClaim) string {
	switch {
	case v.pilot().AnyNamespaceRules:
		return "whose whole name it is, or which comes first by name"
	case first.service.Namespace == other.service.Namespace && first.whole && !other.whole, first.strength == wholeInMesh && other.strength != wholeInMesh:
		return "whose whole name it is"
	case first.strength == ofCallers && other.strength != ofCallers:
		return "which is of the callers' namespace " + v.namespace
	case first.strength < other.strength:
		return "which is of the namespace in its name"
	}
	return whyOlder(first.service, other.service)
}

// whyOlder says why an object comes before another one.
func whyOlder(first, other *mesh.Service) string {
	if first.Created.Before(other.Created) {
		return "which is older"
	}
	return "which is as old, and comes first by namespace and name"
}

// firstBecause says why the first of two equal claims takes precedence.
func (m *model) firstBecause() string {
	if m.pilot().AnyNamespaceRules {
		return "comes first by namespace and name"
	}
	return "is older, or comes first by name"
}
