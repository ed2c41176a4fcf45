package schema

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilot-api/pilot-api/diag"
)

// The limits above which an object is Large.
const (
	// LargeText is the length of a text, in bytes, above which decoding takes long.
	LargeText = 16 << 10
	// largeProduct is the number of parts above which building them takes long.
	largeProduct = 1000
)

// Large reports whether an object takes long to decode, check or compile, by its
// own text and lists: about ten milliseconds or more.
func (o *Object) Large() bool {
	return len(o.JSON()) > LargeText || o.product().Parts() > largeProduct
}

// product returns the number of parts that an object alone makes. It is empty for
// kinds whose lists do not multiply, and for an unreadable object.
func (o *Object) product() Product {
	spec, err := o.Spec()
	if err != nil {
		return nil
	}
	switch s := spec.(type) {
	case *networking.ServiceEntry:
		return entryProduct(s, len(s.GetEndpoints()))
	case *networking.VirtualService:
		return virtualProduct(s)
	}
	return nil
}

// The cost in parts of a ServiceEntry for each host at each port.
const (
	partsOfHost    = 8 // its cluster, its virtual host with a route, and their encoded forms
	partsOfAddress = 4 // domains, or a listener
)

// MultipliesTo returns the product of a ServiceEntry whose selector matches the
// given number of WorkloadEntries.
func MultipliesTo(s *networking.ServiceEntry, picked int) Product {
	return entryProduct(s, len(s.GetEndpoints())+picked)
}

// MultipliesWithheld returns the product of a ServiceEntry without its endpoints.
func MultipliesWithheld(s *networking.ServiceEntry) Product { return entryProduct(s, 0) }

func entryProduct(s *networking.ServiceEntry, endpoints int) Product {
	each := []string{fmt.Sprint(partsOfHost)}
	if n := len(s.GetAddresses()); n > 0 {
		each = append(each, fmt.Sprintf("%d for each of %s addresses", partsOfAddress, Thousands(n)))
	}
	if endpoints > 0 {
		each = append(each, fmt.Sprintf("one for each of %s endpoints", Thousands(endpoints)))
	}
	return Product{
		{len(s.GetHosts()), "hosts"},
		{len(s.GetPorts()), "ports"},
		{partsOfHost + partsOfAddress*len(s.GetAddresses()) + endpoints, "parts (" + strings.Join(each, ", ") + ")"},
	}
}

// virtualProduct returns the product of a VirtualService alone.
func virtualProduct(s *networking.VirtualService) Product {
	routes := 0
	for _, r := range s.GetHttp() {
		routes += httpParts(r)
	}
	for _, r := range s.GetTls() {
		for _, m := range r.GetMatch() {
			routes += max(1, len(m.GetSniHosts())) * max(1, len(m.GetDestinationSubnets())) * max(1, len(r.GetRoute()))
		}
	}
	for _, r := range s.GetTcp() {
		subnets := 0
		for _, m := range r.GetMatch() {
			subnets += max(1, len(m.GetDestinationSubnets()))
		}
		routes += max(1, subnets) * max(1, len(r.GetRoute()))
	}
	return Product{
		{max(1, len(s.GetHosts())), "hosts"},
		{max(1, len(s.GetGateways())), "gateways"},
		{routes, "parts of routes (for each match, its destinations and the text of its actions)"},
	}
}

// httpParts returns the parts of a route: each match has a copy of what the route
// does.
func httpParts(r *networking.HTTPRoute) int {
	actions := proto.Size(r)
	for _, m := range r.GetMatch() {
		actions -= proto.Size(m)
	}
	leads := max(1, len(r.GetRoute())+len(r.GetMirrors()))
	return max(1, len(r.GetMatch())) * (leads + max(0, actions)/1024)
}

// within rejects lists that multiply to more than any object may have by default.
// Effects of other objects are checked later.
func (p *problems) within(product Product) {
	if product.Parts() <= MaxProduct {
		return
	}
	p.put(diag.Problem{
		Severity: diag.Error, Reason: diag.FieldTooLong, Code: diag.OverBudget, Field: "spec",
		Message: fmt.Sprintf("multiplies to too much: %s, and must be at most %s; split the object", product, Thousands(MaxProduct)),
	})
}
