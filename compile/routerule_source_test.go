package compile_test

import (
	"testing"

	"github.com/pilot-api/pilot-api/schema"
)

// TestSourceMeansOneService: a namespace that declares the host of another service for
// itself is not the source of the rules that name that service.
func TestSourceMeansOneService(t *testing.T) {
	const admin = "admin.default.svc.cluster.local"
	at := func(namespace, address string, exportTo ...string) *schema.Object {
		return objectIn(t, namespace, "ServiceEntry", "admin", spec{
			"hosts": []string{admin}, "location": "MESH_INTERNAL", "resolution": "STATIC", "exportTo": exportTo,
			"ports":     []spec{{"number": 81, "name": "http", "protocol": "HTTP"}},
			"endpoints": []spec{{"address": address}},
		})
	}
	rule := object(t, "RouteRule", "only-admin", spec{
		"destination": spec{"name": "shop"}, "precedence": 1,
		"match":     spec{"source": spec{"name": "admin"}},
		"httpFault": spec{"abort": spec{"percent": 100, "httpStatus": 418}},
	})
	const honest, evil = "sidecar~10.1.1.1~a.default~default.svc.cluster.local", "sidecar~10.1.1.2~b.evil~evil.svc.cluster.local"
	for _, test := range []struct {
		name, node string
		admin      []*schema.Object
		fits       bool
	}{
		{"the service itself", honest, []*schema.Object{at("default", "10.1.1.1")}, true},
		{"the service itself, if it is private", honest, []*schema.Object{at("default", "10.1.1.1", ".")}, true},
		{"another namespace's private one", evil, []*schema.Object{at("default", "10.1.1.1", "default"), at("evil", "10.1.1.2", ".")}, false},
		{"another namespace's private one alone", evil, []*schema.Object{at("evil", "10.1.1.2", ".")}, false},
		{"another namespace's one for all, alone", evil, []*schema.Object{at("evil", "10.1.1.2")}, true},
	} {
		config, _ := compiled(t, test.node, append(test.admin, hostIn(t, "default", "shop"), rule))
		if got := routeTo(t, config, "shop.default.svc.cluster.local").Fault != nil; got != test.fits {
			t.Errorf("%s: the rule is followed: %t, want %t", test.name, got, test.fits)
		}
	}
}
