package schema

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestMetadata: what is wrong in metadata is told at its field, whoever checks.
func TestMetadata(t *testing.T) {
	const spec = "\nspec: {destination: {name: reviews}}\n"
	for _, c := range []struct {
		name, metadata string
		want           []string
		says           string
	}{
		{"finalizers", "finalizers: [example.com/clean-up, short]", nil, ""},
		{
			"bad finalizers", "finalizers: [example.com/clean-up, 'no spaces', a/b/c, '']",
			[]string{"error FieldValueInvalid metadata.finalizers[1]", "error FieldValueInvalid metadata.finalizers[2]", "error FieldValueInvalid metadata.finalizers[3]"}, "example.com/clean-up",
		},
		{"no owners", "ownerReferences: []", nil, ""},
		{
			"owners", "ownerReferences: [{apiVersion: v1, kind: Pod, name: p, uid: u}]",
			[]string{"error FieldValueForbidden metadata.ownerReferences"}, "delete them by it",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := "apiVersion: config.istio.io/v1alpha2\nkind: RouteRule\nmetadata: {name: x, namespace: default, " + c.metadata + "}" + spec
			_, list := Decode([]byte(text), Options{})
			if diff := cmp.Diff(c.want, verdict(list)); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
			for _, p := range list {
				if !strings.Contains(p.Message, c.says) || p.Position == nil || p.Position.Line != 3 {
					t.Errorf("problem %s, want one at line 3 that says %q", p, c.says)
				}
			}
		})
	}
}
