package authz

import (
	"encoding/json"

	rbac "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/security/identity"
)

// The names of built-in ClusterRoles for people and programs.
const (
	RoleView         = "view"
	RoleEdit         = "edit"
	RoleAdmin        = "admin"
	RoleClusterAdmin = "cluster-admin"
	RoleMonitoring   = "monitoring"
)

const (
	configAPI     = "config.istio.io"
	networkingAPI = "networking.istio.io"
	securityAPI   = "security.istio.io"
	registryAPI   = "registry.istio.io"
	rbacAPI       = rbac.GroupName
)

var (
	readAll  = []string{"get", "list", "watch"}
	writeAll = []string{"create", "update", "patch", "delete", "deletecollection"}
)

func rule(verbs, groups []string, resources ...string) rbac.PolicyRule {
	return rbac.PolicyRule{Verbs: verbs, APIGroups: groups, Resources: resources}
}

func paths(verbs []string, urls ...string) rbac.PolicyRule {
	return rbac.PolicyRule{Verbs: verbs, NonResourceURLs: urls}
}

var (
	viewRules = []rbac.PolicyRule{
		rule(readAll, []string{configAPI, networkingAPI, securityAPI}, "*"),
		rule(readAll, []string{registryAPI}, "problems", "proxies", "proxies/config", "proxies/route", "references", "reach"),
		rule([]string{"create"}, []string{registryAPI}, "previews"),
		rule(readAll, []string{""}, "namespaces"),
	}
	editRules = append(viewRules[:len(viewRules):len(viewRules)],
		rule(writeAll, []string{configAPI, networkingAPI}, "*"),
		rule(append(readAll, writeAll...), []string{registryAPI}, "secrets", "secrets/history", "secrets/status"),
	)
	adminRules = append(editRules[:len(editRules):len(editRules)],
		rule(writeAll, []string{securityAPI}, "*"),
		rule(append(readAll, writeAll...), []string{rbacAPI}, "roles", "roles/history", "rolebindings", "rolebindings/history"),
		rule(append(readAll, writeAll...), []string{""}, "serviceaccounts", "serviceaccounts/history"),
		rule([]string{"create", "delete"}, []string{""}, "serviceaccounts/token"),
		rule([]string{VerbRoute}, []string{networkingAPI}, "serviceentries"),
		rule([]string{VerbAttach}, []string{networkingAPI}, "gateways"),
	)
)

// The verbs that Kubernetes does not have.
const (
	// VerbRoute on a ServiceEntry is the right to write rules for its hosts in other
	// namespaces.
	VerbRoute = "route"
	// VerbClaim on proxies/ROLE or proxies/labels is the right of a proxy to have another role
	// than sidecar, or labels that its node states.
	VerbClaim = "claim"
	// VerbAttach on a Gateway is the right to name it in rules of other namespaces.
	VerbAttach = "attach"
)

// builtInRoles are the ClusterRoles that every server with roles has.
var builtInRoles = map[string][]rbac.PolicyRule{
	RoleView:  viewRules,
	RoleEdit:  editRules,
	RoleAdmin: adminRules,
	RoleClusterAdmin: {
		rule([]string{"*"}, []string{"*"}, "*"),
		paths([]string{"*"}, "*"),
	},
	RoleMonitoring: {
		paths([]string{"get"}, "/metrics", "/debug/pprof*"),
		rule(readAll, []string{registryAPI}, "problems", "proxies"),
	},
	// proxy is for the service accounts of gateways.
	"proxy":            {rule([]string{VerbClaim}, []string{registryAPI}, "proxies/router", "proxies/ingress", "proxies/labels")},
	"system:discovery": {paths([]string{"get"}, "/", "/api", "/api/*", "/apis", "/apis/*", "/healthz", "/livez", "/openapi", "/openapi/*", "/readyz", "/version", "/version/")},
	"system:basic-user": {
		rule([]string{"create"}, []string{"authorization.k8s.io"}, "selfsubjectaccessreviews", "selfsubjectrulesreviews"),
		rule([]string{"create"}, []string{"authentication.k8s.io"}, "selfsubjectreviews"),
	},
	"system:replica": {
		rule(readAll, []string{registryAPI}, "standings", "problems", "proxies", "proxies/config", "proxies/route"),
		rule([]string{"create"}, []string{registryAPI}, "previews"),
	},
}

// builtInBindings give built-in roles to groups.
var builtInBindings = map[string]struct{ role, group string }{
	RoleClusterAdmin:           {RoleClusterAdmin, identity.Masters},
	"system:discovery":         {"system:discovery", identity.Authenticated},
	"system:basic-user":        {"system:basic-user", identity.Authenticated},
	"system:replica":           {"system:replica", identity.Replicas},
	"system:anonymous-readers": {RoleView, Readers},
	"system:anonymous-basics":  {"system:discovery", Readers},
}

// AutoUpdate is the annotation of Kubernetes by which an operator keeps a built-in object as
// it is: false.
const AutoUpdate = "rbac.authorization.kubernetes.io/autoupdate"

// BuiltIns returns the built-in roles and bindings, as objects to create.
func BuiltIns() []*schema.Object {
	var out []*schema.Object
	add := func(kind, name string, spec any) {
		of, _ := schema.KindByName(kind)
		text, err := json.Marshal(spec)
		if err != nil {
			panic(err) // Rules always encode.
		}
		o, err := schema.New(of, metav1.ObjectMeta{
			Name: name, Annotations: map[string]string{AutoUpdate: "true"}, Labels: map[string]string{"kubernetes.io/bootstrapping": "rbac-defaults"},
		}, text)
		if err != nil {
			panic(err) // The parts are fixed.
		}
		out = append(out, o)
	}
	for name, rules := range builtInRoles {
		add(schema.KindClusterRole, name, schema.RoleRules{Rules: rules})
	}
	for name, b := range builtInBindings {
		add(schema.KindClusterRoleBinding, name, schema.Binding{
			RoleRef:  rbac.RoleRef{APIGroup: rbacAPI, Kind: schema.KindClusterRole, Name: b.role},
			Subjects: []rbac.Subject{{APIGroup: rbacAPI, Kind: rbac.GroupKind, Name: b.group}},
		})
	}
	return out
}
