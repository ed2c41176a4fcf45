package mesh_test

import (
	"slices"
	"testing"

	"github.com/pilot-api/pilot-api/mesh"
)

func TestExported(t *testing.T) {
	for _, test := range []struct{ to, visible []string }{
		{nil, []string{"home", "away", ""}},
		{[]string{"*"}, []string{"home", "away", ""}},
		{[]string{"."}, []string{"home"}},
		{[]string{"away"}, []string{"away"}},
		{[]string{".", "away"}, []string{"home", "away"}},
		{[]string{"~"}, nil},
		{[]string{""}, nil},
	} {
		var visible []string
		for _, namespace := range []string{"home", "away", ""} {
			if mesh.Exported(test.to, "home", namespace) {
				visible = append(visible, namespace)
			}
		}
		if !slices.Equal(visible, test.visible) {
			t.Errorf("exportTo %q: visible in %q, want %q", test.to, visible, test.visible)
		}
	}
}
