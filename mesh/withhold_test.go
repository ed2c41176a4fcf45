package mesh_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// entryText is a ServiceEntry of so many hosts, ports and endpoints, and a selector
// unless it is "".
func entryText(name string, hosts, ports, endpoints int, selector string) string {
	list := func(n int, item string) string {
		items := make([]string, n)
		for i := range items {
			items[i] = strings.ReplaceAll(item, "#", fmt.Sprint(i+1))
		}
		return "[" + strings.Join(items, ", ") + "]"
	}
	text := fmt.Sprintf("---\napiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata: {name: %s}\nspec:\n  location: MESH_INTERNAL\n  resolution: STATIC\n  hosts: %s\n  ports: %s\n",
		name, list(hosts, name+"-#.example"), list(ports, "{number: #, name: http-#, protocol: HTTP}"))
	if endpoints > 0 {
		text += "  endpoints: " + list(endpoints, "{address: 10.0.0.#}") + "\n"
	}
	if selector != "" {
		text += "  workloadSelector: {labels: {app: " + selector + "}}\n"
	}
	return text
}

func workloadText(name, app string) string {
	return fmt.Sprintf("---\napiVersion: networking.istio.io/v1\nkind: WorkloadEntry\nmetadata: {name: %s}\nspec: {address: 10.1.0.1, labels: {app: %s}}\n", name, app)
}

// overBudget are the names of ServiceEntries that are withheld, with what the
// problem says.
func overBudget(s *mesh.Snapshot) []string {
	var out []string
	for _, p := range s.Problems {
		if p.Code == diag.OverBudget {
			out = append(out, p.Object.Name+": "+p.Message)
		}
	}
	return out
}

// TestWithheldEntries: what exceeds a budget has no instances, whatever it is that
// multiplies; its hosts are known, and it says why.
func TestWithheldEntries(t *testing.T) {
	picked := ""
	for i := range 5 {
		picked += workloadText(fmt.Sprintf("w%d", i), "many")
	}
	for _, tc := range []struct {
		name, text string
		budget     mesh.Budget
		withheld   []string
	}{
		{"fits to a part", entryText("a", 2, 3, 4, ""), mesh.Budget{Object: 72, Mesh: 72}, nil},
		{"one part too many", entryText("a", 2, 3, 4, "") + entryText("b", 1, 1, 1, ""), mesh.Budget{Object: 71, Mesh: 72}, []string{
			"a: requests for the hosts fail, because none of their endpoints are used: 2 hosts × 3 ports × 12 parts (8, one for each of 4 endpoints) = 72 parts, which is too many: an object may multiply to 71 parts (budget in the mesh settings)"}},
		{"workloads count", entryText("a", 2, 2, 0, "many") + picked, mesh.Budget{Object: 51, Mesh: 100}, []string{
			"a: requests for the hosts fail, because none of their endpoints are used: 2 hosts × 2 ports × 13 parts (8, one for each of 5 endpoints) = 52 parts, which is too many: an object may multiply to 51 parts (budget in the mesh settings)"}},
		{"together", entryText("a", 1, 2, 0, "many") + entryText("b", 1, 1, 0, "many") + entryText("c", 1, 1, 9, "") + picked, mesh.Budget{Object: 30, Mesh: 30}, []string{
			"a: requests for the hosts fail, because none of their endpoints are used: 1 hosts × 2 ports × 13 parts (8, one for each of 5 endpoints) = 26 parts, which is too many: all objects together multiply to more than the 30 parts that the mesh may have, and of the namespace with the most parts this one had the highest cost (budget in the mesh settings)"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			settings := mesh.DefaultSettings()
			settings.Budget = tc.budget
			s := mesh.NewSnapshot(1, settings, objects(t, tc.text))
			if got := overBudget(s); !slices.Equal(got, tc.withheld) {
				t.Errorf("withheld are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(tc.withheld, "\n"))
			}
			for _, svc := range s.Services {
				isWithheld := slices.ContainsFunc(tc.withheld, func(text string) bool { return strings.HasPrefix(text, svc.Origin.Name+":") })
				if svc.Withheld != isWithheld || (len(svc.Instances) == 0) != isWithheld {
					t.Errorf("%s is withheld: %v, and has %d instances", svc.Hostname, svc.Withheld, len(svc.Instances))
				}
			}
			for _, p := range s.Problems {
				if p.Code == diag.SelectsNothing {
					t.Errorf("%v, although it is selected", p)
				}
			}
		})
	}
}

// TestWithheldUntilItFits: one workload less, and the entry that it was too many for
// is back, whole.
func TestWithheldUntilItFits(t *testing.T) {
	settings := mesh.DefaultSettings()
	settings.Budget = mesh.Budget{Object: 10}
	text := entryText("a", 1, 1, 0, "many") + entryText("b", 1, 1, 0, "many")
	for i := range 3 {
		text += workloadText(fmt.Sprintf("w%d", i), "many")
	}
	s := mesh.NewSnapshot(1, settings, objects(t, text))
	if got := overBudget(s); len(got) != 2 {
		t.Fatalf("withheld are %q", got)
	}
	fewer := s.Next(2, []schema.Change{{Before: s.Objects("WorkloadEntry")[0]}})
	if got := overBudget(fewer); len(got) != 0 {
		t.Errorf("with one workload less there are still withheld %q", got)
	}
	for _, svc := range fewer.Services {
		if len(svc.Instances) != 2 || svc.Withheld {
			t.Errorf("%s has %d instances", svc.Hostname, len(svc.Instances))
		}
	}
}

// TestClosedPorts: where not even the hosts fit, callers that would know them refuse
// what they do not know at the ports, and nobody else does.
func TestClosedPorts(t *testing.T) {
	settings := mesh.DefaultSettings()
	settings.Budget = mesh.Budget{Object: 20}
	private := strings.Replace(entryText("private", 2, 3, 1, ""), "spec:", "spec:\n  exportTo: ['.']", 1)
	s := mesh.NewSnapshot(1, settings, objects(t, private+entryText("bare", 1, 2, 9, "")+entryText("whole", 1, 1, 1, "")))
	if got := s.ClosedPorts.In("default"); !slices.Equal(got, []int{1, 2, 3}) {
		t.Errorf("at home %v are closed", got)
	}
	if got := s.ClosedPorts.In("other"); len(got) != 0 {
		t.Errorf("elsewhere %v are closed", got)
	}
	var known []string
	for _, svc := range s.Services {
		known = append(known, fmt.Sprintf("%s %v", svc.Hostname, svc.Withheld))
	}
	if want := []string{"bare-1.example true", "whole-1.example false"}; !slices.Equal(known, want) {
		t.Errorf("known are %v, want %v", known, want)
	}
	if got := s.Next(2, []schema.Change{{Before: s.Object(schema.Key{Kind: "ServiceEntry", Namespace: "default", Name: "private"})}}); got.ClosedPorts != nil {
		t.Errorf("after the object has gone, %v are closed", got.ClosedPorts)
	}
}
