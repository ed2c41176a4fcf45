package compile_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/compile"
	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/explain"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// egressTo is an EgressRule of some year that opens ports of a host: a protocol for
// each port from 7000 on.
func egressTo(t *testing.T, namespace, name string, year int, host string, protocols ...string) *schema.Object {
	t.Helper()
	var ports []spec
	for i, protocol := range protocols {
		ports = append(ports, spec{"port": 7000 + i, "protocol": protocol})
	}
	return created(t, objectIn(t, namespace, "EgressRule", name, spec{"destination": spec{"service": host}, "ports": ports}), year)
}

// httpIn is a ServiceEntry with HTTP at port 7000.
func httpIn(t *testing.T, namespace, name, host string, exportTo ...string) *schema.Object {
	return objectIn(t, namespace, "ServiceEntry", name, spec{
		"hosts": []string{host}, "location": "MESH_EXTERNAL", "resolution": "STATIC", "exportTo": exportTo,
		"ports": []spec{{"number": 7000, "name": "http", "protocol": "HTTP"}}, "endpoints": []spec{{"address": "10.1.0.1"}},
	})
}

func callerIn(namespace string) string {
	return "sidecar~10.99.0.1~caller." + namespace + "~" + namespace + ".svc.cluster.local"
}

// reachedAt is the object of the destination of a captured request for a host at a
// port, or "".
func reachedAt(config *ir.Config, host string, port int) string {
	e := explain.Proxy{Config: config, IP: "10.99.0.1"}.Explain(explain.Request{
		Way: explain.Captured, Scheme: "http", Host: host, Port: port, Path: "/", Method: "GET",
	})
	for _, c := range config.Clusters {
		if e.Forward != nil && len(e.Forward.Clusters) > 0 && e.Forward.Clusters[0].Name == c.Name && len(c.Origins) > 0 {
			return c.Origins[0].String()
		}
	}
	return ""
}

// codesOf are the codes of the problems of the objects with a name.
func codesOf(problems diag.List, name string) []diag.Code {
	var out []diag.Code
	for _, p := range problems {
		if p.Object.Name == name {
			out = append(out, p.Code)
		}
	}
	return out
}

// TestServiceEntryBesideEgressRule: only a ServiceEntry for all namespaces takes the
// host of an EgressRule from everybody. Any other takes the callers that see it.
func TestServiceEntryBesideEgressRule(t *testing.T) {
	const host, front = "api.example.com", "front.example.com"
	const rule, entry = "EgressRule default/outside", "ServiceEntry vault/api"
	for _, test := range []struct {
		exportTo             []string
		vault, other, others string // what callers reach
		told                 bool
	}{
		{nil, entry, entry, entry, true},
		{[]string{"*"}, entry, entry, entry, true},
		{[]string{"."}, entry, rule, rule, true},
		{[]string{"other"}, rule, entry, rule, true},
		{[]string{"~"}, rule, rule, rule, false},
	} {
		t.Run(fmt.Sprint(test.exportTo), func(t *testing.T) {
			objs := []*schema.Object{
				egressTo(t, "default", "outside", 2001, host, "http"), httpIn(t, "vault", "api", host, test.exportTo...),
				httpIn(t, "default", "front", front), // The VirtualService sends its requests to the host.
				objectIn(t, "default", "VirtualService", "leads", spec{"hosts": []string{front},
					"http": []spec{{"route": []spec{{"destination": spec{"host": host}}}}}}),
			}
			shared := mesh.NewSnapshot(1, mesh.DefaultSettings(), objs)
			for namespace, want := range map[string]string{"vault": test.vault, "other": test.other, "default": test.others, "third": test.others} {
				config, problems := compile.Proxy(shared, shared.TraitsOf(proxy(t, callerIn(namespace))))
				if err := ir.Validate(config); err != nil {
					t.Error(err)
				}
				for _, asked := range []string{host, front} {
					if got := reachedAt(config, asked, 7000); got != want {
						t.Errorf("callers in %s that ask for %s reach %q, want %q", namespace, asked, got, want)
					}
				}
				if told := slices.Contains(codesOf(problems, "outside"), diag.HostClaimed); told != test.told {
					t.Errorf("the rule has the problem: %v\n%v", told, problems)
				}
				if codes := codesOf(problems, "leads"); len(codes) > 0 {
					t.Errorf("the VirtualService has problems: %v", problems)
				}
			}
		})
	}
}

// TestRulesBesidePrivateHost: a RouteRule for the host of an EgressRule holds for its
// callers, whatever other namespaces declare for themselves.
func TestRulesBesidePrivateHost(t *testing.T) {
	const host = "api.example.com"
	config, problems := compiled(t, callerIn("third"), []*schema.Object{
		egressTo(t, "default", "outside", 2001, host, "http"), httpIn(t, "vault", "api", host, "."),
		object(t, "RouteRule", "slow", spec{"destination": spec{"service": host}, "httpReqTimeout": spec{"simpleTimeout": spec{"timeout": "3s"}}}),
		object(t, "DestinationPolicy", "few", spec{"destination": spec{"service": host}, "circuitBreaker": spec{"simpleCb": spec{
			"maxConnections": 3, "sleepWindow": "2s", "httpDetectionInterval": "2s"}}}),
	})
	e := explain.Proxy{Config: config, IP: "10.99.0.1"}.Explain(explain.Request{
		Way: explain.Captured, Scheme: "http", Host: host, Port: 7000, Path: "/", Method: "GET",
	})
	if e.Forward == nil || e.Forward.Timeout != "3s" {
		t.Errorf("the RouteRule is not followed: %+v", e.Forward)
	}
	if at := slices.IndexFunc(config.Clusters, func(c *ir.Cluster) bool { return strings.HasPrefix(c.Name, "out."+host) }); at < 0 || config.Clusters[at].CircuitBreaker == nil {
		t.Error("the DestinationPolicy is not followed")
	}
	for _, name := range []string{"slow", "few"} {
		if codes := codesOf(problems, name); len(codes) > 0 {
			t.Errorf("%s has problems: %v", name, problems)
		}
	}
}

// TestEgressHostAtOtherPorts: a VirtualService for the host of an EgressRule leads only
// there, also at ports that the rule does not open. Callers that have another service
// under the host go where the VirtualService says.
func TestEgressHostAtOtherPorts(t *testing.T) {
	const host = "api.example.com"
	objs := []*schema.Object{
		egressTo(t, "default", "outside", 2001, host, "http"), httpIn(t, "vault", "api", host, "."), httpIn(t, "default", "front", "front.example.com"),
		objectIn(t, "istio-system", "VirtualService", "leads", spec{"hosts": []string{host},
			"http": []spec{{"route": []spec{{"destination": spec{"host": "front.example.com", "port": spec{"number": 7000}}}}}}}),
	}
	shared := mesh.NewSnapshot(1, mesh.DefaultSettings(), objs)
	for namespace, want := range map[string]string{"default": "EgressRule default/outside", "vault": "ServiceEntry default/front"} {
		config, _ := compile.Proxy(shared, shared.TraitsOf(proxy(t, callerIn(namespace))))
		if got := reachedAt(config, host, 80); got != want {
			t.Errorf("callers in %s reach %q, want %q", namespace, got, want)
		}
	}
}

// TestIngressToEgressHost: an IngressRule to a host that only an EgressRule opens for its
// namespace answers 503, and says so.
func TestIngressToEgressHost(t *testing.T) {
	const host = "api.example.com"
	for name, beside := range map[string][]*schema.Object{"alone": nil, "beside a private service": {httpIn(t, "vault", "api", host, ".")}} {
		t.Run(name, func(t *testing.T) {
			_, problems := compiled(t, "ingress~10.9.0.3~a.default~default.svc.cluster.local", append(beside,
				egressTo(t, "default", "outside", 2001, host, "http"),
				object(t, "IngressRule", "enters", spec{"destination": spec{"service": host}, "destinationPort": 7000})))
			if codes := codesOf(problems, "enters"); !slices.Equal(codes, []diag.Code{diag.Closed}) {
				t.Errorf("the rule has the problems %v:\n%v", codes, problems)
			}
		})
	}
}

// TestOlderEgressRuleStays: of EgressRules that disagree the oldest stays, and the
// others are told. A mesh from Pilot keeps the first by namespace and name.
func TestOlderEgressRuleStays(t *testing.T) {
	for _, test := range []struct {
		name           string
		older, younger []string // host and protocols
	}{
		{"one host", []string{"api.example.com", "http"}, []string{"api.example.com", "tcp", "http"}},
		{"one port", []string{"192.0.2.0/24", "tcp"}, []string{"api.example.com", "http"}},
	} {
		for _, pilot := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, Pilot %v", test.name, pilot), func(t *testing.T) {
				_, problems := compiledAs(t, mesh.V1Compatibility{AnyNamespaceRules: pilot}, callerIn("default"), []*schema.Object{
					egressTo(t, "team", "z-older", 2001, test.older[0], test.older[1:]...),
					egressTo(t, "evil", "a-younger", 2002, test.younger[0], test.younger[1:]...),
				})
				told := map[bool]string{false: "a-younger", true: "z-older"}[pilot]
				for _, name := range []string{"a-younger", "z-older"} {
					lost := slices.ContainsFunc(codesOf(problems, name), func(c diag.Code) bool { return c == diag.HostClaimed || c == diag.PortClaimed })
					if lost != (name == told) {
						t.Errorf("%s has the problem: %v\n%v", name, lost, problems)
					}
				}
			})
		}
	}
}

// TestUnopenedEgressPortsClaimNothing: what an EgressRule does not open, it does not
// take from others.
func TestUnopenedEgressPortsClaimNothing(t *testing.T) {
	const host = "api.example.com"
	for name, objs := range map[string][]*schema.Object{
		"TCP for a host name":        {egressTo(t, "default", "older", 2002, "db.example.com", "tcp")},
		"a port before one left out": {egressTo(t, "default", "older", 2002, "db.example.com", "tcp", "http")},
		"an unknown protocol":        {egressTo(t, "default", "older", 2002, "db.example.com", "udp")},
		"a host without ports":       {egressTo(t, "default", "older", 2002, host, "tcp")},
		"a port before a conflict":   {egressTo(t, "default", "older", 2002, "198.51.100.0/24", "tcp", "tcp", "tcp"), egressTo(t, "default", "before", 2001, "before.example.com", "udp", "http")},
		"a port with two protocols":  {objectIn(t, "default", "EgressRule", "older", spec{"destination": spec{"service": "198.51.100.0/24"}, "ports": []spec{{"port": 7000, "protocol": "tcp"}, {"port": 7000, "protocol": "http"}}})},
	} {
		t.Run(name, func(t *testing.T) {
			config, problems := compiled(t, callerIn("default"), append(objs, egressTo(t, "default", "younger", 2003, host, "http")))
			if got, want := reachedAt(config, host, 7000), "EgressRule default/younger"; got != want {
				t.Errorf("reaches %q, want %q", got, want)
			}
			if codes := codesOf(problems, "younger"); len(codes) > 0 {
				t.Error(problems)
			}
			if codes := codesOf(problems, "older"); len(codes) == 0 {
				t.Error("the older rule has no problem")
			}
		})
	}
}
