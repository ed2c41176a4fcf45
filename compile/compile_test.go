package compile_test

import (
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"github.com/pilot-api/pilot-api/compile"
	"github.com/pilot-api/pilot-api/internal/meshgen"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
)

func TestViewsOfOneSnapshotInParallel(t *testing.T) {
	objs := largeMesh(t, 5)
	shared := mesh.NewSnapshot(1, mesh.DefaultSettings(), objs)
	nodes := slices.Concat(meshgen.Proxies, []string{"sidecar~10.1.0.1~x~default.svc.cluster.local"})
	got := make([]*ir.Config, len(nodes))
	var group errgroup.Group
	for i, node := range nodes {
		traits := shared.TraitsOf(proxy(t, node))
		group.Go(func() error {
			got[i], _ = compile.Proxy(shared, traits)
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	for i, node := range nodes {
		alone := mesh.NewSnapshot(1, mesh.DefaultSettings(), objs)
		want, _ := compile.Proxy(alone, alone.TraitsOf(proxy(t, node)))
		if d := difference(want, got[i]); d != "" {
			t.Errorf("%s: differs from the view compiled alone:\n%s", node, d)
		}
	}
}

// TestSameViewSameResult: instances that differ in nothing but address and
// origin must not show in the configuration, which they share.
func TestSameViewSameResult(t *testing.T) {
	s := mesh.NewSnapshot(1, mesh.DefaultSettings(), objects(t, `
kind: ServiceEntry
apiVersion: networking.istio.io/v1
metadata: {name: hello}
spec:
  hosts: [hello.example]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: 80, name: http, protocol: HTTP}, {number: 90, name: tcp, protocol: TCP}]
  workloadSelector: {labels: {app: hello}}
---
kind: WorkloadEntry
apiVersion: networking.istio.io/v1
metadata: {name: a}
spec: {address: 10.0.0.1, labels: {app: hello}, weight: 1, locality: x}
---
kind: WorkloadEntry
apiVersion: networking.istio.io/v1
metadata: {name: b}
spec: {address: 10.0.0.2, labels: {app: hello}, weight: 2, locality: y}
`))
	first, second := s.TraitsOf(proxy(t, "sidecar~10.0.0.1~a~example")), s.TraitsOf(proxy(t, "sidecar~10.0.0.2~b~example"))
	if first.Key() != second.Key() {
		t.Fatal("the views differ")
	}
	want, _ := compile.Proxy(s, first)
	got, _ := compile.Proxy(s, second)
	if d := difference(want, got); d != "" {
		t.Error(d)
	}
}

// difference is what tells two configurations apart, in lines of their texts: ""
// for equal ones.
func difference(want, got *ir.Config) string {
	if reflect.DeepEqual(want, got) {
		return ""
	}
	if d := cmp.Diff(want.String(), got.String()); d != "" {
		return d
	}
	return cmp.Diff(want, got) // Of what a text does not show.
}

func TestIngressWithoutRulesServesNothing(t *testing.T) {
	config, problems := compiled(t, "ingress~10.7.7.9~x~default.svc.cluster.local", largeMesh(t, 2))
	if len(config.Clusters)+len(problems) > 0 {
		t.Errorf("found %+v, %v", config.Clusters, problems)
	}
	for _, table := range config.RouteTables {
		if len(table.VirtualHosts) > 0 {
			t.Errorf("table %s has hosts", table.Name)
		}
	}
	if config.Delay != mesh.DefaultSettings().DiscoveryRefreshDelay {
		t.Errorf("the proxy would poll every %v", config.Delay)
	}
}
