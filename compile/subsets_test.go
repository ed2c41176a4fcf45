package compile_test

import (
	"strings"
	"testing"
	"time"

	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/schema"
)

// subsetConfig is that of a caller of reviews, which has a route to each of the
// subsets and a last one to all of it.
func subsetConfig(t *testing.T, rule spec, subsets ...string) *ir.Config {
	t.Helper()
	var routes []spec
	for _, name := range subsets {
		routes = append(routes, spec{
			"match": []spec{{"uri": spec{"exact": "/" + name}}},
			"route": []spec{{"destination": spec{"host": "reviews", "subset": name}}},
		})
	}
	routes = append(routes, spec{"route": []spec{{"destination": spec{"host": "reviews"}}}})
	rule["host"] = "reviews"
	return faultless(t, "sidecar~10.99.0.1~caller~default.svc.cluster.local", []*schema.Object{
		hostIn(t, "default", "reviews"),
		object(t, "DestinationRule", "reviews", rule),
		object(t, "VirtualService", "reviews", spec{"hosts": []string{"reviews"}, "http": routes}),
	})
}

func timeoutOf(t *testing.T, config *ir.Config, cluster string) time.Duration {
	t.Helper()
	return clusterOf(t, config, cluster).ConnectTimeout
}

func connectIn(timeout string) spec {
	return spec{"connectionPool": spec{"tcp": spec{"connectTimeout": timeout}}}
}

// TestSubsetsKeepTheirPolicies: whatever their labels are.
func TestSubsetsKeepTheirPolicies(t *testing.T) {
	v1 := spec{"version": "v1"}
	config := subsetConfig(t, spec{"subsets": []spec{
		{"name": "all", "trafficPolicy": connectIn("2s")},
		{"name": "none", "trafficPolicy": connectIn("3s")},
		{"name": "one", "labels": v1, "trafficPolicy": connectIn("4s")},
		{"name": "twin", "labels": v1, "trafficPolicy": connectIn("5s")},
		{"name": "plain", "labels": v1},
	}}, "all", "none", "one", "twin", "plain")
	for name, want := range map[string]time.Duration{
		"": 0, "||all": 2 * time.Second, "||none": 3 * time.Second,
		"|version=v1|one": 4 * time.Second, "|version=v1|twin": 5 * time.Second, "|version=v1|plain": 0,
	} {
		if got := timeoutOf(t, config, reviewsName+name); got != want {
			t.Errorf("%q: %v, want %v", name, got, want)
		}
		key := strings.TrimPrefix(reviewsName, "out.")
		if strings.Contains(name, "version") {
			key += "|version=v1"
		}
		if got := clusterOf(t, config, reviewsName+name).EndpointKey; got != key {
			t.Errorf("%q: asks for endpoints of %q, want %q", name, got, key)
		}
	}
}

// TestPolicyPartsAreReplacedWhole: what a subset or a port says of one part of
// a policy is all that is said of it.
func TestPolicyPartsAreReplacedWhole(t *testing.T) {
	config := subsetConfig(t, spec{
		"trafficPolicy": spec{
			"connectionPool":   spec{"tcp": spec{"connectTimeout": "7s"}, "http": spec{"maxRequestsPerConnection": 9}},
			"outlierDetection": spec{"interval": "7s"},
			"tls":              spec{"mode": "SIMPLE", "caCertificates": "/ca.crt"},
		},
		"subsets": []spec{
			{"name": "pool", "labels": spec{"version": "v1"}, "trafficPolicy": spec{"connectionPool": spec{"tcp": spec{"maxConnections": 5}}}},
			{"name": "port", "labels": spec{"version": "v1"}, "trafficPolicy": spec{
				"portLevelSettings": []spec{{"port": spec{"number": 80}, "outlierDetection": spec{"interval": "8s"}, "tls": spec{"mode": "DISABLE"}}},
			}},
		},
	}, "pool", "port")
	whole := clusterOf(t, config, reviewsName)
	if whole.ConnectTimeout != 7*time.Second || whole.MaxRequestsPerConnection != 9 || whole.TLS == nil {
		t.Errorf("the rule's own policy: %+v", whole)
	}
	pool := clusterOf(t, config, reviewsName+"|version=v1|pool")
	if pool.ConnectTimeout != 0 || pool.MaxRequestsPerConnection != 0 || pool.CircuitBreaker.MaxConnections != 5 {
		t.Errorf("what the pool of the rule says stays: %+v", pool)
	}
	if pool.TLS == nil || pool.OutlierDetection.Interval != 7*time.Second {
		t.Errorf("parts that the subset does not name are gone: %+v", pool)
	}
	port := clusterOf(t, config, reviewsName+"|version=v1|port")
	if port.TLS != nil || port.ConnectTimeout != 0 || port.OutlierDetection.Interval != 8*time.Second {
		t.Errorf("what the rule says stays beside the port's settings: %+v", port)
	}
}

func TestErrorsOfZeroSwitchOff(t *testing.T) {
	config := subsetConfig(t, spec{"trafficPolicy": spec{"outlierDetection": spec{"consecutive5xxErrors": 0, "consecutiveGatewayErrors": 3}}})
	o := clusterOf(t, config, reviewsName).OutlierDetection
	if o.ConsecutiveErrors == nil || *o.ConsecutiveErrors != 0 || o.GatewayErrors == nil || *o.GatewayErrors != 3 {
		t.Errorf("%+v", o)
	}
}

func TestEmptyPathIsNoPath(t *testing.T) {
	config, problems := compiled(t, "sidecar~10.99.0.1~caller~default.svc.cluster.local", []*schema.Object{
		hostIn(t, "default", "reviews"),
		object(t, "VirtualService", "reviews", spec{"hosts": []string{"reviews"}, "http": []spec{
			{"match": []spec{{"uri": spec{"exact": ""}}}, "redirect": spec{"uri": "/nobody"}},
			{"route": []spec{{"destination": spec{"host": "reviews"}}}},
		}}),
	})
	if r := routeTo(t, config, reviewsHost); r.Redirect != nil {
		t.Errorf("the first route is %+v", r)
	}
	if !strings.Contains(problems.Error(), "spec.http[0].match[0].uri.exact: no request matches") {
		t.Error(problems)
	}
}
