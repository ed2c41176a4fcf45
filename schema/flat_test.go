package schema

import (
	"strings"
	"testing"
)

const flatRole = `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: "team:readers"}
rules:
- apiGroups: [networking.istio.io]
  resources: [gateways]
  verbs: [get]
`

// TestFlatObjects checks that an object of a Flat kind is written as Kubernetes writes it,
// is the same when it is read back, and has its spec.
func TestFlatObjects(t *testing.T) {
	o, list := Decode([]byte(flatRole), Options{})
	if list.Err() != nil {
		t.Fatal(list)
	}
	const want = `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"team:readers"},` +
		`"rules":[{"apiGroups":["networking.istio.io"],"resources":["gateways"],"verbs":["get"]}]}`
	if got := string(o.JSON()); got != want {
		t.Errorf("written as %s", got)
	}
	if list := Validate(o); list != nil {
		t.Error(list)
	}
	if key := o.Key(); key != (Key{KindClusterRole, NoNamespace, "team:readers"}) || key.String() != "ClusterRole team:readers" {
		t.Errorf("key %#v, %s", key, key)
	}
	stored, err := Stored(o.Encoded(), 7)
	if err != nil {
		t.Fatal(err)
	}
	if !stored.IsEncodedAs(o.Encoded()) || !stored.SameSpec(o) || !strings.Contains(string(stored.JSON()), `{"resourceVersion":"7","name"`) {
		t.Errorf("stored as %s", stored.JSON())
	}
	spec, err := stored.Spec()
	if err != nil || len(spec.(*RoleRules).Rules) != 1 {
		t.Errorf("spec %v, %v", spec, err)
	}
	again, list := Decode(stored.JSON(), Options{})
	if list.Err() != nil || string(again.JSON()) != string(stored.JSON()) {
		t.Errorf("read back: %v, %v", again, list)
	}
	for _, text := range []string{`{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"a","namespace":"default"}}`} {
		o, list := Decode([]byte(text), Options{})
		if list.Err() != nil || string(o.JSON()) != text {
			t.Errorf("%s: %v", text, list)
		}
		if stored, err := Stored(o.Encoded(), 1); err != nil || string(stored.SpecJSON()) != "{}" {
			t.Errorf("stored: %v, %v", stored, err)
		}
	}
}

// TestMistakesInFlatObjects checks that problems name fields as they stand in the text.
func TestMistakesInFlatObjects(t *testing.T) {
	for text, want := range map[string]string{
		strings.Replace(flatRole, "verbs: [get]", "verbs: [get]\n  wieght: 1", 1):                               "8:3: ClusterRole team:readers: rules[0].wieght: there is no such field",
		strings.Replace(flatRole, "verbs: [get]", "verbs: []", 1):                                               "7:3: ClusterRole team:readers: rules[0].verbs: must have at least one verb",
		strings.Replace(flatRole, "rules:", "rulez:", 1):                                                        "rulez: there is no such field; did you mean rules?",
		strings.Replace(flatRole, "rules:", "spec: {}\nrules:", 1):                                              "spec: there is no such field",
		strings.Replace(flatRole, "readers\"", "readers\", namespace: a", 1):                                    "metadata.namespace: must be left out: a ClusterRole is in no namespace",
		strings.Replace(flatRole, "team:readers", "team/readers", 1):                                            "metadata.name: must be up to 253",
		strings.Replace(flatRole, "ClusterRole", "Role", 1) + "- {verbs: [get], nonResourceURLs: [/metrics]}\n": "rules[1].nonResourceURLs: must be left out",
	} {
		_, list := Decode([]byte(text), Options{File: "f"})
		if list.Err() == nil || !strings.Contains(list.Err().Error(), want) {
			t.Errorf("%s\n%v, want %q", text, list.Err(), want)
		}
	}
}
