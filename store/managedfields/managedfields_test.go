package managedfields_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store/managedfields"
)

// subsets is a part of a DestinationRule.
func subsets(t *testing.T, names ...string) *schema.Part {
	t.Helper()
	text := "apiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {name: a}\nspec:\n  host: a\n  subsets:\n"
	for _, name := range names {
		text += fmt.Sprintf("  - {name: %s, labels: {version: %s}}\n", name, name)
	}
	part, problems := schema.DecodePart([]byte(text), schema.Key{Namespace: "default"})
	if problems.Err() != nil {
		t.Fatal(problems)
	}
	return part
}

func apply(t *testing.T, current *schema.Object, part *schema.Part, manager string) *schema.Object {
	t.Helper()
	text, err := managedfields.Apply(current, part, manager, false)
	if err != nil {
		t.Fatal(err)
	}
	return decode(t, text)
}

func decode(t *testing.T, text []byte) *schema.Object {
	t.Helper()
	o, problems := schema.Decode(text, schema.Options{})
	if o == nil {
		t.Fatal(problems)
	}
	return o
}

// TestKeyedList: two managers have entries of their own in one list, and each takes
// away its own alone.
func TestKeyedList(t *testing.T) {
	o := apply(t, nil, subsets(t, "v1", "v2"), "one")
	o = apply(t, o, subsets(t, "v3"), "two")
	o = apply(t, o, subsets(t, "v2"), "one")
	want := `{"host":"a","subsets":[{"labels":{"version":"v2"},"name":"v2"},{"labels":{"version":"v3"},"name":"v3"}]}`
	if got := string(o.SpecJSON()); got != want {
		t.Errorf("got %s", got)
	}
}

// TestUpdated: nobody is an owner until somebody applies; from then on, whoever
// changes a field is its owner.
func TestUpdated(t *testing.T) {
	plain := decode(t, []byte("apiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {name: a}\nspec: {host: a}\n"))
	if got := managedfields.Updated(plain, plain, "x"); got != nil {
		t.Errorf("owners of what nobody applied: %v", got)
	}
	before := apply(t, nil, subsets(t, "v1"), "one")
	meta := before.Meta
	meta.ManagedFields, meta.Labels = nil, map[string]string{"a": "b"}
	after, err := before.WithMeta(meta)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range managedfields.Updated(before, after, "kubectl/v1.2.3") {
		got = append(got, fmt.Sprintf("%s %s %s", e.Operation, e.Manager, e.FieldsV1.GetRawString()))
	}
	want := []string{
		`Apply one {"f:spec":{"f:host":{},"f:subsets":{"k:{\"name\":\"v1\"}":{".":{},"f:labels":{"f:version":{}},"f:name":{}}}}}`,
		`Update kubectl {"f:metadata":{"f:labels":{".":{},"f:a":{}}}}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestBounds: what would be too long to keep is no owner.
func TestBounds(t *testing.T) {
	o := apply(t, nil, subsets(t, "v1"), "first")
	for i := range managedfields.MaxManagers - 1 {
		o = apply(t, o, subsets(t, "v1"), fmt.Sprint("more", i))
	}
	if _, err := managedfields.Apply(o, subsets(t, "v1"), "one too many", false); err != managedfields.ErrTooMany {
		t.Errorf("error %v", err)
	}
	if managedfields.Given(append(o.Meta.ManagedFields, o.Meta.ManagedFields[0])) != nil {
		t.Error("too many are taken")
	}
	if managedfields.Given([]metav1.ManagedFieldsEntry{{Manager: "x"}}) != nil {
		t.Error("what cannot be read is taken")
	}
}

func TestManager(t *testing.T) {
	for program, want := range map[string]string{
		"kubectl/v1.37.2": "kubectl", "curl/8.5": "curl", "example.com/agent": "example.com/agent",
		"example.com/agent/v2": "example.com/agent", "": "", "kubectl-create": "kubectl-create",
	} {
		if got := managedfields.Manager(program); got != want {
			t.Errorf("%q is %q, want %q", program, got, want)
		}
	}
}

// TestEveryKind: the library takes the schema of each, and what stands nowhere in
// it is refused before.
func TestEveryKind(t *testing.T) {
	for _, kind := range schema.Kinds() {
		text := fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata: {name: a, labels: {a: b}}\n", kind.APIVersion(), kind.Kind)
		part, problems := schema.DecodePart([]byte(text), schema.Key{Namespace: "default"})
		if part == nil {
			t.Fatal(problems)
		}
		applied, err := managedfields.Apply(nil, part, "me", false)
		if err != nil || !strings.Contains(string(applied), `"manager":"me"`) {
			t.Errorf("%s: %v, %s", kind.Kind, err, applied)
		}
		unknown, field := "spec: {nope: 1}\n", "spec.nope"
		if kind.Flat {
			unknown, field = "nope: 1\n", "nope"
		}
		_, problems = schema.DecodePart([]byte(text+unknown), schema.Key{})
		if err := problems.Err(); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", kind.Kind, err)
		}
	}
}
