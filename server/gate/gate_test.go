package gate

import (
	"cmp"
	"context"
	"sync"
	"testing"

	rbac "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/schema/schematest"
	"github.com/pilot-api/pilot-api/security/authz"
	"github.com/pilot-api/pilot-api/security/identity"
	"github.com/pilot-api/pilot-api/store"
	"github.com/pilot-api/pilot-api/store/memory"
)

// late reads objects as they were when it was made.
type late struct {
	store.Reader
	objects map[schema.Key]*schema.Object
}

func (l late) Get(_ context.Context, key schema.Key, _ store.ReadOptions) (*schema.Object, error) {
	if o := l.objects[key]; o != nil {
		return o, nil
	}
	return nil, store.ErrNotFound
}

// TestStaleReadsGiveNothing: a write is checked against the object that it replaces, and not
// against the one that was known a moment ago, whichever way it takes. Without written, the
// write repeats what was known.
func TestStaleReadsGiveNothing(t *testing.T) {
	const rbacAPI = "rbac.authorization.k8s.io"
	rules := func(verbs ...string) map[string]any {
		return map[string]any{"rules": []rbac.PolicyRule{{Verbs: verbs, APIGroups: []string{"networking.istio.io"}, Resources: []string{"gateways"}}}}
	}
	binding := func(users ...string) map[string]any {
		var subjects []rbac.Subject
		for _, user := range users {
			subjects = append(subjects, rbac.Subject{APIGroup: rbacAPI, Kind: "User", Name: user})
		}
		return map[string]any{"roleRef": rbac.RoleRef{APIGroup: rbacAPI, Kind: "Role", Name: "wide"}, "subjects": subjects}
	}
	entry := func(host string) map[string]any {
		return map[string]any{"hosts": []string{host}, "location": "MESH_EXTERNAL", "ports": []map[string]any{{"number": 80, "name": "http", "protocol": "HTTP"}}, "resolution": "DNS"}
	}
	rule := func(host string) map[string]any {
		return map[string]any{"hosts": []string{host}, "http": []map[string]any{{"directResponse": map[string]any{"status": 200}}}}
	}
	for name, c := range map[string]struct{ known, stored, written *schema.Object }{
		"role":    {schematest.Object(t, "Role", "shop", "wide", rules("get", "delete")), schematest.Object(t, "Role", "shop", "wide", rules("get")), nil},
		"binding": {schematest.Object(t, "RoleBinding", "shop", "wide", binding("ada", "eve")), schematest.Object(t, "RoleBinding", "shop", "wide", binding("ada")), nil},
		"aggregation": {
			schematest.Object(t, "ClusterRole", "", "wide", rules("get")),
			schematest.Object(t, "ClusterRole", "", "wide", map[string]any{"aggregationRule": rbac.AggregationRule{
				ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: map[string]string{"a": "b"}}},
			}}),
			schematest.Object(t, "ClusterRole", "", "wide", map[string]any{}),
		},
		"rule": {schematest.Object(t, "VirtualService", "shop", "wide", rule("foreign.example")), schematest.Object(t, "VirtualService", "shop", "wide", rule("own.example")), nil},
	} {
		for way, write := range map[string]func(context.Context, store.Interface, *schema.Object) error{
			"update": func(ctx context.Context, s store.Interface, o *schema.Object) error {
				_, err := s.Update(ctx, o)
				return err
			},
			"update in a transaction": func(ctx context.Context, s store.Interface, o *schema.Object) error {
				_, err := s.Txn(ctx, []store.Op{{Verb: store.OpUpdate, Object: o}})
				return err
			},
			"apply in a transaction": func(ctx context.Context, s store.Interface, o *schema.Object) error {
				_, err := s.Txn(ctx, []store.Op{{Verb: store.OpApply, Object: o}})
				return err
			},
			"change": func(ctx context.Context, s store.Interface, o *schema.Object) error {
				_, err := s.UpdateFunc(ctx, o.Key(), func(*schema.Object) (*schema.Object, error) { return o, nil })
				return err
			},
		} {
			t.Run(name+" by "+way, func(t *testing.T) {
				roles, hosts, mem := &authz.Roles{}, &Hosts{}, memory.New()
				roles.Put(schematest.Object(t, "ClusterRole", "", "writer", map[string]any{"rules": []rbac.PolicyRule{
					{Verbs: []string{"get", "create", "update", "patch"}, APIGroups: []string{rbacAPI, "networking.istio.io"}, Resources: []string{"roles", "clusterroles", "rolebindings", "virtualservices"}},
				}}))
				roles.Put(schematest.Object(t, "Role", "shop", "wide", rules("get", "delete")))
				roles.Put(schematest.Object(t, "ClusterRoleBinding", "", "writer", map[string]any{
					"roleRef":  rbac.RoleRef{APIGroup: rbacAPI, Kind: "ClusterRole", Name: "writer"},
					"subjects": []rbac.Subject{{APIGroup: rbacAPI, Kind: "User", Name: "vic"}},
				}))
				hosts.Put(schematest.Object(t, "ServiceEntry", "bank", "foreign", entry("foreign.example")))
				if _, err := mem.Create(t.Context(), c.stored); err != nil {
					t.Fatal(err)
				}
				g := New(Options{Guard: authz.Guard{Authorizer: roles}, Roles: roles, Hosts: hosts, Domain: "cluster.local",
					Reads: late{mem, map[schema.Key]*schema.Object{c.known.Key(): c.known}}})
				ctx := identity.NewContext(t.Context(), identity.Identity{Name: "vic", Groups: []string{identity.Authenticated}, By: identity.ByTokenFile})
				if err := write(ctx, g.Store(mem), cmp.Or(c.written, c.known)); !apierrors.IsForbidden(err) {
					t.Errorf("the write answers %v, want Forbidden", err)
				}
				stored, err := mem.Get(t.Context(), c.stored.Key(), store.ReadOptions{})
				if err != nil || !stored.SameSpec(c.stored) {
					t.Errorf("stored is %v, %v", stored, err)
				}
			})
		}
	}
}

// TestHostsKeepTheirOwners: while a ServiceEntry is replaced, its host is never without one.
func TestHostsKeepTheirOwners(t *testing.T) {
	hosts := &Hosts{}
	entry := schematest.Object(t, "ServiceEntry", "bank", "foreign", map[string]any{"hosts": []string{"foreign.example"}})
	hosts.Put(entry)
	stop := make(chan struct{})
	var puts sync.WaitGroup
	puts.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				hosts.Put(entry)
			}
		}
	})
	for range 100_000 {
		if len(hosts.of("foreign.example")) != 1 {
			t.Fatal("the host has no owner")
		}
	}
	close(stop)
	puts.Wait()
}
