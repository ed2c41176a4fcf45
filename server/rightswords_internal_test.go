package server

import (
	"cmp"
	"encoding/json"
	"testing"

	rbac "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/security/authz"
)

// TestRolesKnowTheWordsOfRights checks that a role with the verb and resource of a route gets
// no warning of a typing error, and neither do the built-in roles.
func TestRolesKnowTheWordsOfRights(t *testing.T) {
	roles := authz.BuiltIns()
	of, _ := schema.KindByName(schema.KindClusterRole)
	s := New(Options{})
	for _, rows := range []rights{s.rights, registryRights} {
		for route, row := range rows {
			if row.resource == "" {
				continue
			}
			a := authz.Attributes{Resource: row.resource, Subresource: row.subresource}
			text, err := json.Marshal(schema.RoleRules{Rules: []rbac.PolicyRule{{
				APIGroups: []string{row.group}, Resources: []string{a.ResourceName()}, Verbs: []string{cmp.Or(row.verb, "get")},
			}}})
			if err != nil {
				t.Fatal(err)
			}
			o, err := schema.New(of, metav1.ObjectMeta{Name: route}, text)
			if err != nil {
				t.Fatal(err)
			}
			roles = append(roles, o)
		}
	}
	for _, o := range roles {
		for _, p := range schema.Validate(o).Warnings() {
			t.Errorf("%s: %v", o.Key(), p)
		}
	}
}
