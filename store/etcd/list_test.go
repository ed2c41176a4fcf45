package etcd_test

import (
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/schema"
)

// TestKindsSortAsKeys checks that lists are in the order of keys, which contain the
// plural.
func TestKindsSortAsKeys(t *testing.T) {
	kinds := schema.Kinds()
	for i := range kinds[1:] {
		a, b := kinds[i], kinds[i+1]
		if strings.Compare(a.StoredGroup()+"/"+a.Plural+"/", b.StoredGroup()+"/"+b.Plural+"/") >= 0 {
			t.Errorf("%s sorts before %s, and its key behind", a.Kind, b.Kind)
		}
	}
}
