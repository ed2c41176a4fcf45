package discovery_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// weighty are services and a rule for them. Each of both multiplies to some 9 parts for a
// service.
func weighty(t testing.TB, namespace string, services int) []*schema.Object {
	var all []*schema.Object
	var routes []map[string]any
	host := func(i int) string { return fmt.Sprintf("s%d.%s.example", i, namespace) }
	for i := range services {
		all = append(all, inNamespace(t, service(t, host(i), fmt.Sprintf("10.2.0.%d", i+1)), namespace))
		for n := range 9 {
			routes = append(routes, map[string]any{
				"match": []any{map[string]any{"uri": map[string]any{"prefix": fmt.Sprintf("/%d/%d", i, n)}}},
				"route": []any{map[string]any{"destination": map[string]any{"host": host(0)}}},
			})
		}
	}
	spec, err := json.Marshal(map[string]any{"hosts": []string{host(0)}, "http": routes})
	if err != nil {
		t.Fatal(err)
	}
	return append(all, inNamespace(t, object(t, "VirtualService", "weighty", string(spec)), namespace))
}

// Budgets of the mesh, where 20 weighty services have about 200 parts and their rule has
// as many: much room, room for another mesh like that, and next to no room beside it.
const (
	roomyBudget = 10_000
	someBudget  = 300
	tightBudget = 210
)

// TestPastTakesRoomThatThePresentLeaves: what a proxy was sent before the start is
// compiled while there is room beside the present mesh, and is dropped when that grows.
// Otherwise the proxy is answered as by a server that knows nothing of the past.
func TestPastTakesRoomThatThePresentLeaves(t *testing.T) {
	web, large := service(t, "web.example", "10.1.0.1"), weighty(t, "many", 20)
	for _, c := range []struct {
		name          string
		budget        int
		before, after []*schema.Object
		knows, keeps  bool // the past, before and after the mesh has grown
	}{
		{"a small mesh", tightBudget, nil, nil, true, true},
		{"a large mesh in much room", roomyBudget, large, large, true, true},
		{"a mesh that takes its whole budget", tightBudget, large, large, false, false},
		{"a mesh that grows", someBudget, large, slices.Concat(large, weighty(t, "more", 10)), true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				with := func(version string, others []*schema.Object) []*schema.Object {
					return append([]*schema.Object{web, toVersion(t, version)}, others...)
				}
				options := func() discovery.Options {
					of := settings()
					of.Budget = mesh.Budget{Object: c.budget, Mesh: c.budget}
					return discovery.Options{Settings: of}
				}
				src := newObjects(with("v1", c.before)...)
				p := newPoller(t, follow(t, src, options()))
				p.hasCluster("")
				src.set(with("v2", c.before)...)
				p = p.at(follow(t, src, options()))
				if got := p.hasCluster(clusterOf("v1")); got != c.knows {
					t.Errorf("at first the proxy has the cluster of before: %v, want %v", got, c.knows)
				}
				src.set(with("v2", c.after)...)
				time.Sleep(time.Second)
				if got := p.hasCluster(clusterOf("v1")); got != c.keeps {
					t.Errorf("then the proxy has the cluster of before: %v, want %v", got, c.keeps)
				}
				if problems := p.s.Report().Problems; slices.ContainsFunc(problems, func(p diag.Problem) bool { return p.Code == diag.OverBudget }) {
					t.Errorf("the mesh is larger than its budget: %v", problems)
				}
			})
		})
	}
}

// TestPastIsTriedAgain: a state of the past for which there was no room is compiled soon
// after there is some.
func TestPastIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tight := settings()
		tight.Budget = mesh.Budget{Object: tightBudget, Mesh: tightBudget}
		web, large := service(t, "web.example", "10.1.0.1"), weighty(t, "many", 20)
		src := newObjects(append(large, web, toVersion(t, "v1"))...)
		before := v3(t, follow(t, src, discovery.Options{Settings: tight}), discovery.ClusterType, nodeA)
		src.set(append(large, web, toVersion(t, "v2"))...)
		s := follow(t, src, discovery.Options{Settings: tight})
		knows := func(name string) bool {
			a, err := s.V3(discovery.ClusterType, mesh.Node{ID: strings.Replace(nodeA, "~a.", "~"+name+".", 1)}, before.Version, nil)
			if err != nil {
				t.Fatal(err)
			}
			return slices.Contains(resourceNames(t, a), clusterOf("v1"))
		}
		if knows("b") {
			t.Fatal("there is no room, and the past is known")
		}
		src.set(web, toVersion(t, "v2"))
		time.Sleep(11 * time.Second)
		if !knows("c") {
			t.Error("there is room, and the past is not known")
		}
	})
}

// TestQuestionsTakeRoomThatThePresentLeaves: what is compiled to answer a question needs
// room beside the present mesh, and gives it back.
func TestQuestionsTakeRoomThatThePresentLeaves(t *testing.T) {
	for _, c := range []struct {
		name   string
		budget int
		fits   bool
	}{{"much room", roomyBudget, true}, {"no room", tightBudget, false}} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				of := settings()
				of.Budget = mesh.Budget{Object: c.budget, Mesh: c.budget}
				all := weighty(t, "many", 20)
				s := follow(t, newObjects(all...), discovery.Options{Settings: of})
				time.Sleep(time.Second)
				v3(t, s, discovery.ClusterType, nodeA)
				for range 20 {
					_, err := s.Preview(t.Context(), discovery.PreviewOptions{Objects: all[:1]})
					_, _, lost := s.LostInV1(t.Context())
					for question, err := range map[string]error{"a preview": err, "what v1 loses": lost} {
						if c.fits && err != nil || !c.fits && !errors.Is(err, discovery.ErrOverBudget) {
							t.Fatalf("%s: %v", question, err)
						}
					}
				}
				v3(t, s, discovery.ClusterType, nodeIn(1)) // A proxy needs no room of theirs.
			})
		})
	}
}
