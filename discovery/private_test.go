package discovery_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// private has its exportTo name its own namespace.
func private(t *testing.T, host, ip string) *schema.Object {
	o := service(t, host, ip)
	return object(t, "ServiceEntry", host, strings.TrimSuffix(string(o.SpecJSON()), "}")+`,"exportTo":["."]}`)
}

// TestEndpointsOfAPrivateService: they are there in every API, and follow changes.
func TestEndpointsOfAPrivateService(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := newObjects(private(t, "web.example", "10.1.0.1"))
		s := follow(t, src, discovery.Options{})
		name := "web.example@web.example.default|http"
		for _, ip := range []string{"10.1.0.1", "10.1.0.2"} {
			src.set(private(t, "web.example", ip))
			time.Sleep(pause)
			stream(t, s, nodeA) // Fails where its endpoints cannot be told.
			if a := v3(t, s, discovery.EndpointType, nodeA, name); !strings.Contains(string(a.Body), ip) {
				t.Errorf("v3 has no endpoint %s: %s", ip, a.Body)
			}
			if a, err := s.V1Endpoints(name); err != nil || !strings.Contains(string(a.Body), ip) {
				t.Errorf("v1 has no endpoint %s: %s, %v", ip, a.Body, err)
			}
		}
	})
}

// TestSidecarHidesAllServices: a view that has no service left by an object is
// published, unlike one that has none by accident.
func TestSidecarHidesAllServices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := newObjects(service(t, "web.example", "10.1.0.1"))
		s := follow(t, src, discovery.Options{Settings: mesh.DefaultSettings()})
		if a := v3(t, s, discovery.RouteType, nodeA); !strings.Contains(string(a.Body), "web.example") {
			t.Fatalf("routes: %s", a.Body)
		}
		src.set(append(src.all, object(t, "Sidecar", "hides", `{"egress":[{"hosts":["~/*"]}]}`))...)
		time.Sleep(pause)
		if a := v3(t, s, discovery.RouteType, nodeA); strings.Contains(string(a.Body), "web.example") {
			t.Errorf("routes to what a Sidecar hides: %s", a.Body)
		}
		if problems := s.Report().Problems; len(problems) > 0 {
			t.Errorf("problems: %v", problems)
		}
	})
}
