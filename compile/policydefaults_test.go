package compile_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// TestDefaultsOfDestinationRules: what a rule does not name is as Istio
// documents, or as Pilot had it.
func TestDefaultsOfDestinationRules(t *testing.T) {
	zero, five, twenty := 0, 5, 20
	none := ir.CircuitBreaker{MaxConnections: math.MaxUint32, MaxPendingRequests: math.MaxUint32, MaxRequests: math.MaxUint32, MaxRetries: math.MaxUint32}
	one := none
	one.MaxConnections = 1
	pool := spec{"tcp": spec{"maxConnections": 1}}
	for _, test := range []struct {
		name     string
		pilot    mesh.V1Compatibility
		policy   spec
		balancer ir.LoadBalancer
		limits   *ir.CircuitBreaker
		outlier  *ir.OutlierDetection
	}{
		{"nothing", mesh.V1Compatibility{}, nil, ir.LeastRequest, &none, nil},
		{"a hash", mesh.V1Compatibility{}, spec{"loadBalancer": spec{"consistentHash": spec{"useSourceIp": true}}}, ir.RingHash, &none, nil},
		{"round robin", mesh.V1Compatibility{}, spec{"loadBalancer": spec{"simple": "ROUND_ROBIN"}}, ir.RoundRobin, &none, nil},
		{"a limit", mesh.V1Compatibility{}, spec{"connectionPool": pool}, ir.LeastRequest, &one, nil},
		{"ejection", mesh.V1Compatibility{}, spec{"outlierDetection": spec{}}, ir.LeastRequest, &none,
			&ir.OutlierDetection{AnswersOnly: true, MaxEjectionTime: 5 * time.Minute, MinHealthPercent: &zero}},
		{"long ejection", mesh.V1Compatibility{}, spec{"outlierDetection": spec{"baseEjectionTime": "1h", "minHealthPercent": 20}}, ir.LeastRequest, &none,
			&ir.OutlierDetection{AnswersOnly: true, BaseEjectionTime: time.Hour, MaxEjectionTime: time.Hour, MinHealthPercent: &twenty}},
		{"nothing, as Pilot", mesh.AsPilot(), nil, ir.BalancerByDefault, nil, nil},
		{"a limit, as Pilot", mesh.AsPilot(), spec{"connectionPool": pool}, ir.RoundRobin,
			&ir.CircuitBreaker{MaxConnections: 1, MaxPendingRequests: 1024, MaxRequests: 1024, MaxRetries: 3}, nil},
		{"ejection, as Pilot", mesh.AsPilot(), spec{"outlierDetection": spec{}}, ir.RoundRobin, nil, &ir.OutlierDetection{
			ConsecutiveErrors: &five, Interval: 10 * time.Second, BaseEjectionTime: 30 * time.Second, MaxEjectionPercent: 10}},
	} {
		rule := spec{"host": "reviews"}
		if test.policy != nil {
			rule["trafficPolicy"] = test.policy
		}
		config, _ := compiledAs(t, test.pilot, "sidecar~10.99.0.1~caller~default.svc.cluster.local",
			[]*schema.Object{hostIn(t, "default", "reviews"), object(t, "DestinationRule", "reviews", rule)})
		got := clusterOf(t, config, reviewsName)
		if got.LoadBalancer != test.balancer {
			t.Errorf("%s: %s, want %s", test.name, got.LoadBalancer, test.balancer)
		}
		if d := cmp.Diff(test.limits, got.CircuitBreaker); d != "" {
			t.Errorf("%s: limits (-want +got):\n%s", test.name, d)
		}
		if d := cmp.Diff(test.outlier, got.OutlierDetection); d != "" {
			t.Errorf("%s: ejection (-want +got):\n%s", test.name, d)
		}
	}
}

func TestSettingsOfNoPort(t *testing.T) {
	settings := func(port int) spec {
		return spec{"portLevelSettings": []spec{{"port": spec{"number": port}, "loadBalancer": spec{"simple": "RANDOM"}}}}
	}
	_, problems := compiled(t, "sidecar~10.99.0.1~caller~default.svc.cluster.local", []*schema.Object{
		hostIn(t, "default", "reviews"),
		object(t, "DestinationRule", "reviews", spec{"host": "reviews", "trafficPolicy": settings(80), "subsets": []spec{
			{"name": "v1", "labels": spec{"version": "v1"}, "trafficPolicy": settings(81)},
		}}),
	})
	if text := problems.Error(); !strings.Contains(text, "spec.subsets[0].trafficPolicy.portLevelSettings[0].port.number: the settings have no effect: reviews.default.svc.cluster.local has no port 81") ||
		strings.Contains(text, "spec.trafficPolicy.portLevelSettings") {
		t.Error(text)
	}
}
