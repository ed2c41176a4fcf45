package compile_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/schema"
)

// ruling is a VirtualService and a DestinationRule, of some year, for reviews
// of the namespace default. Its routes go to the subset with its own name, for
// which its rule has a time-out of as many seconds as its name has letters.
type ruling struct {
	namespace, name, host string
	exportTo              string // "", or one word
	year                  int
}

func (r ruling) objects(t *testing.T) []*schema.Object {
	t.Helper()
	export := ""
	if r.exportTo != "" {
		export = fmt.Sprintf(`"exportTo":[%q],`, r.exportTo)
	}
	meta := metav1.ObjectMeta{Namespace: r.namespace, Name: r.name, CreationTimestamp: metav1.NewTime(time.Date(r.year, 1, 1, 0, 0, 0, 0, time.UTC))}
	var out []*schema.Object
	for kind, text := range map[string]string{
		"VirtualService":  fmt.Sprintf(`{%s"hosts":[%q],"http":[{"name":%q,"timeout":"%ds","route":[{"destination":{"host":%q}}]}]}`, export, r.host, r.name, r.year-2000, reviewsHost),
		"DestinationRule": fmt.Sprintf(`{%s"host":%q,"trafficPolicy":{"connectionPool":{"tcp":{"connectTimeout":"%ds"}}}}`, export, r.host, r.year-2000),
	} {
		k, _ := schema.KindByName(kind)
		o, err := schema.New(k, meta, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, o)
	}
	return out
}

const (
	reviewsHost = "reviews.default.svc.cluster.local"
	reviewsName = "out." + reviewsHost + "|http"
)

// TestWhoOwnsAHost is the table of the decision about it: whose rules callers
// of a namespace follow, by the seconds that they name; 0 is nobody's.
func TestWhoOwnsAHost(t *testing.T) {
	own := ruling{"default", "own", reviewsHost, "", 2010}
	elsewhere := ruling{"a-other", "aaa", reviewsHost, "", 2003}
	for _, test := range []struct {
		name    string
		rulings []ruling
		// By callers in default, a-other and third.
		routes, policies [3]int
		problem          string
	}{
		{"the host's own namespace", []ruling{own}, [3]int{10, 10, 10}, [3]int{10, 10, 10}, ""},
		{"another namespace rules its own callers", []ruling{elsewhere}, [3]int{0, 3, 0}, [3]int{0, 3, 0}, "only callers in namespace a-other follow it: " + reviewsHost + " belongs to namespace default"},
		{"as it may say itself", []ruling{{"a-other", "aaa", reviewsHost, ".", 2003}}, [3]int{0, 3, 0}, [3]int{0, 3, 0}, ""},
		{"both", []ruling{own, elsewhere}, [3]int{10, 10, 10}, [3]int{10, 3, 10}, "no effect for sidecars: VirtualService default/own is for " + reviewsHost + " too and is in the host's own namespace"},
		{"a wildcard does not win by being exact", []ruling{{"default", "own", "*.default.svc.cluster.local", "", 2010}, elsewhere}, [3]int{10, 10, 10}, [3]int{10, 3, 10}, ""},
		{"the own one is private", []ruling{{"default", "own", reviewsHost, ".", 2010}, elsewhere}, [3]int{10, 3, 0}, [3]int{10, 3, 0}, ""},
		{"the own one is for another", []ruling{{"default", "own", reviewsHost, "third", 2010}}, [3]int{0, 0, 10}, [3]int{0, 0, 10}, ""},
		{"the root namespace comes last", []ruling{{"istio-system", "root", reviewsHost, "", 2005}, elsewhere}, [3]int{5, 3, 5}, [3]int{5, 3, 5}, ""},
		{"the oldest of a namespace", []ruling{{"default", "a", reviewsHost, "", 2012}, own}, [3]int{10, 10, 10}, [3]int{10, 10, 10}, "default/own is for " + reviewsHost + " too and is older"},
		{"else the first by name", []ruling{{"default", "z", reviewsHost, "", 2010}, own}, [3]int{10, 10, 10}, [3]int{10, 10, 10}, "comes first by name"},
		{"the oldest that is seen", []ruling{{"default", "a", reviewsHost, ".", 2009}, own}, [3]int{9, 10, 10}, [3]int{9, 10, 10}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			objs := []*schema.Object{hostIn(t, "default", "reviews")}
			for _, r := range test.rulings {
				objs = append(objs, r.objects(t)...)
			}
			for i, namespace := range []string{"default", "a-other", "third"} {
				config, problems := compiled(t, "sidecar~10.99.0.1~caller~"+namespace+".svc.cluster.local", objs)
				if got := int(routeTo(t, config, reviewsHost).Timeout.Seconds()); got != test.routes[i] {
					t.Errorf("%s follows the routes of %d, want %d", namespace, got, test.routes[i])
				}
				got := int(clusterOf(t, config, reviewsName).ConnectTimeout.Seconds())
				if want := test.policies[i]; got != want {
					t.Errorf("%s follows the policy of %d, want %d", namespace, got, want)
				}
				if test.problem != "" && !strings.Contains(problems.Error(), test.problem) {
					t.Errorf("want %q in:\n%v", test.problem, problems)
				}
				if test.problem == "" && len(test.rulings) == 1 && len(problems) > 0 {
					t.Errorf("problems:\n%v", problems)
				}
			}
		})
	}
}

// TestHiddenService: who does not see a service has no route to it, of its own
// or through a VirtualService.
func TestHiddenService(t *testing.T) {
	hidden := hostIn(t, "default", "reviews", ".")
	through := objectIn(t, "third", "VirtualService", "through", spec{
		"hosts": []string{"front.third.svc.cluster.local"},
		"http":  []spec{{"route": []spec{{"destination": spec{"host": reviewsHost}}}}},
	})
	front := hostIn(t, "third", "front")
	for namespace, seen := range map[string]bool{"default": true, "third": false} {
		config, problems := compiled(t, "sidecar~10.99.0.1~caller~"+namespace+".svc.cluster.local", []*schema.Object{hidden, through, front})
		has := false
		for _, table := range config.RouteTables {
			for _, host := range table.VirtualHosts {
				has = has || strings.HasPrefix(host.Name, reviewsHost)
			}
		}
		if has != seen {
			t.Errorf("a caller in %s has a route: %v", namespace, has)
		}
		for _, c := range config.Clusters {
			if c.Name == reviewsName && !seen {
				t.Errorf("a caller in %s has the cluster", namespace)
			}
		}
		if want := "ServiceEntry default/reviews does not export this host to namespace third, so requests that go there fail"; !strings.Contains(problems.Error(), want) {
			t.Errorf("want %q in:\n%v", want, problems)
		}
	}
}

// hostIn is a service of a namespace, for all or for those it is exported to.
func hostIn(t *testing.T, namespace, name string, exportTo ...string) *schema.Object {
	return objectIn(t, namespace, "ServiceEntry", name, spec{
		"hosts": []string{name + "." + namespace + ".svc.cluster.local"}, "location": "MESH_INTERNAL", "resolution": "STATIC",
		"ports": []spec{{"number": 80, "name": "http", "protocol": "HTTP"}}, "exportTo": exportTo,
		"endpoints": []spec{{"address": "10.1.0.1", "labels": spec{"version": "v1"}}},
	})
}

// routeTo is the first route to a host at port 80.
func routeTo(t *testing.T, config *ir.Config, host string) *ir.Route {
	t.Helper()
	for _, table := range config.RouteTables {
		for _, h := range table.VirtualHosts {
			if table.Name == "80" && h.Name == host+"|http" {
				return h.Routes[0]
			}
		}
	}
	t.Fatalf("no route to %s", host)
	return nil
}

// clusterOf is the cluster of that name, whatever is told of its TLS behind.
func clusterOf(t *testing.T, config *ir.Config, name string) *ir.Cluster {
	t.Helper()
	for _, c := range config.Clusters {
		if plain, _, _ := strings.Cut(c.Name, "|tls="); plain == name {
			return c
		}
	}
	t.Fatalf("no cluster %s", name)
	return nil
}
