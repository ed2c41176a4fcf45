package schema

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSplit(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       []string // "line:text"
	}{
		{"nothing", "", nil},
		{"comments and markers", "# a\n---\n---\n\n# b\n---", nil},
		{"one", "a: 1\n", []string{"1:a: 1\n"}},
		{"one without end of line", "a: 1", []string{"1:a: 1"}},
		{"two", "---\na: 1\n---\nb: 2\n", []string{"2:a: 1\n", "4:b: 2\n"}},
		{"text behind the marker", "a: 1\n--- {b: 2}\n--- # c\nd: 3\n", []string{"1:a: 1\n", "2:--- {b: 2}\n", "4:d: 3\n"}},
		{"end marker", "a: 1\n...\nb: 2\n", []string{"1:a: 1\n", "3:b: 2\n"}},
		{"no marker", "a: |\n  ---\n---b: 2\n", []string{"1:a: |\n  ---\n---b: 2\n"}},
		{"Windows", "a: 1\r\n---\r\nb: 2\r\n", []string{"1:a: 1\r\n", "3:b: 2\r\n"}},
		{"JSON", "{\"a\":\n\"---\"}", []string{"1:{\"a\":\n\"---\"}"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, d := range Split([]byte(c.text), "f") {
				got = append(got, fmt.Sprintf("%d:%s", d.Line, d.Text))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestObjectsUnpacksLists(t *testing.T) {
	const item = "- apiVersion: config.istio.io/v1alpha2\n  kind: RouteRule\n  metadata: {name: %s}\n  spec: {destination: {name: a}, %s}\n"
	items := fmt.Sprintf(item, "one", "precedence: 1") + fmt.Sprintf(item, "two", "precedence: x") + fmt.Sprintf(item, "three", "mirror: {name: b}")
	for _, kind := range []string{"List", "RouteRuleList"} {
		text := "# a list\n---\nkind: " + kind + "\napiVersion: v1\nmetadata: {resourceVersion: '7'}\nitems:\n" + items
		doc := Split([]byte(text), "f.yaml")[0]
		objects, list, err := doc.Objects(t.Context(), "prod")
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, o := range objects {
			names = append(names, o.Key().String())
		}
		if diff := cmp.Diff([]string{"RouteRule prod/one", "RouteRule prod/three"}, names); diff != "" {
			t.Error(diff)
		}
		if len(list) != 1 || list[0].Object.Name != "two" || list[0].Position.String() != "f.yaml:14:46" {
			t.Errorf("%v", list)
		}
	}
}

// A List is as long as it is; the bound is on the objects.
func TestObjectsOfALongList(t *testing.T) {
	const item = "- apiVersion: config.istio.io/v1alpha2\n  kind: RouteRule\n  metadata: {name: x%d}\n  spec: {destination: {name: a}%s}\n"
	var text strings.Builder
	text.WriteString("kind: List\nitems:\n")
	const n = 20_000
	for i := range n {
		fmt.Fprintf(&text, item, i, ", route: [{destination: {}}]") // A warning each.
	}
	fmt.Fprintf(&text, item, n, ", appendHeaders: {a: "+strings.Repeat("x", MaxTextBytes)+"}")
	objects, list, err := Document{Text: []byte(text.String()), File: "f", Line: 1}.Objects(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	errs := list.Errors()
	if len(objects) != n || len(list.Warnings()) != n || len(errs) != 1 {
		t.Fatalf("%d objects, %d warnings, %d errors", len(objects), len(list.Warnings()), len(errs))
	}
	if got := errs[0].String(); !strings.Contains(got, fmt.Sprint(MaxObjectBytes, " are allowed")) || !strings.HasPrefix(got, "f:80003:") {
		t.Error(got[:min(len(got), 200)])
	}
}

func TestObjectsOfOne(t *testing.T) {
	doc := Document{Text: []byte("kind: RouteRule\napiVersion: config.istio.io/v1alpha2\nmetadata: {name: x}\nspec: {}\n"), File: "f.yaml", Line: 41}
	objects, list, err := doc.Objects(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	if len(objects) != 0 || len(list) != 1 || list[0].Position.String() != "f.yaml:44:1" {
		t.Errorf("%v %v", objects, list)
	}
}

// An empty List has no objects and no problems.
func TestObjectsOfEmptyList(t *testing.T) {
	objects, list, err := Document{Text: []byte("kind: List\nitems: []\n")}.Objects(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	if len(objects) != 0 || list != nil {
		t.Errorf("%v %v", objects, list)
	}
}

func TestLookup(t *testing.T) {
	for name, want := range map[string]string{
		"RouteRule": "RouteRule", "routerule": "RouteRule", "routerules": "RouteRule", "route-rule": "RouteRule", "route-rules": "RouteRule", "rr": "RouteRule",
		"routerules.config.istio.io": "RouteRule", "RouteRule.v1alpha2.config.istio.io": "RouteRule", "rr.v1alpha1.config.istio.io": "RouteRule",
		"destination-policies": "DestinationPolicy", "destinationpolicies": "DestinationPolicy", "dp": "DestinationPolicy",
		"egressrule": "EgressRule", "er": "EgressRule", "ingress-rules": "IngressRule", "ir": "IngressRule",
		"virtual-services": "VirtualService", "vs": "VirtualService", "DestinationRule": "DestinationRule", "dr": "DestinationRule",
		"gateways": "Gateway", "gw.networking.istio.io": "Gateway", "gateway-s": "",
		"service-entries": "ServiceEntry", "se": "ServiceEntry", "serviceentries.networking.istio.io": "ServiceEntry",
		"ap": "AuthorizationPolicy", "ra": "RequestAuthentication", "pa": "PeerAuthentication", "peer-authentications": "PeerAuthentication",
		"workload-entry": "WorkloadEntry", "we": "WorkloadEntry",
		"": "", "rule": "", "rr.networking.istio.io": "", "rr.v1.config.istio.io": "", "pods": "",
	} {
		k, ok := Lookup(name)
		if ok != (want != "") || ok && k.Kind != want {
			t.Errorf("Lookup(%q) = %v, %v; want %q", name, k, ok, want)
		}
	}
}

func TestKindsAreInOrder(t *testing.T) {
	var got []string
	for _, k := range Kinds() {
		got = append(got, k.Kind)
	}
	want := []string{"DestinationPolicy", "EgressRule", "IngressRule", "RouteRule", "ServiceAccount", "DestinationRule", "Gateway", "ServiceEntry", "Sidecar", "VirtualService", "WorkloadEntry",
		"ClusterRoleBinding", "ClusterRole", "RoleBinding", "Role", "Secret", "AuthorizationPolicy", "PeerAuthentication", "RequestAuthentication"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
