package server_test

import (
	"github.com/pilot-api/pilot-api/server/servertest"

	"bufio"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/rogpeppe/go-internal/testscript"
	authentication "k8s.io/api/authentication/v1"

	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/security/authn"
	"github.com/pilot-api/pilot-api/security/authz"
	"github.com/pilot-api/pilot-api/security/identity"
	"github.com/pilot-api/pilot-api/server"
	"github.com/pilot-api/pilot-api/server/gate"
	"github.com/pilot-api/pilot-api/store"
	"github.com/pilot-api/pilot-api/store/cache"
	"github.com/pilot-api/pilot-api/store/memory"
)

// The users of a server with roles, as headers. root is one of identity.Masters. ed has the
// role edit in the namespace shop, adam has admin there, vic may view everything, and nil has
// no role.
const (
	root = "Authorization: Bearer token-of-the-user-root"
	ed   = "Authorization: Bearer token-of-the-user-ed"
	adam = "Authorization: Bearer token-of-the-user-adam"
	vic  = "Authorization: Bearer token-of-the-user-vic"
	nil_ = "Authorization: Bearer token-of-the-user-nil"
)

// governed is a server whose users have roles.
func governed(t *testing.T, more ...func(*server.Options)) *servertest.World {
	t.Helper()
	var lines strings.Builder
	for _, name := range []string{"ed", "adam", "vic", "nil"} {
		fmt.Fprintf(&lines, "token-of-the-user-%s,%s,1\n", name, name)
	}
	fmt.Fprintf(&lines, "token-of-the-user-root,root,1,%s\n", identity.Masters)
	file := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(file, []byte(lines.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	tokens, err := authn.NewTokenFile(file, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	mem := memory.New()
	objects := store.Strict(mem)
	view := cache.New(mem, cache.Options{Log: slog.New(slog.DiscardHandler)})
	roles, hosts := &authz.Roles{}, &gate.Hosts{}
	put := func(o *schema.Object) { roles.Put(o); hosts.Put(o) }
	view.Handle(nil, cache.Handler{Add: put, Update: func(_, o *schema.Object) { put(o) }, Delete: func(o *schema.Object) { roles.Delete(o.Key()); hosts.Delete(o.Key()) }})
	for _, o := range authz.BuiltIns() {
		if _, err := objects.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	proxies := discovery.New(discovery.Options{Source: view})
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = view.Run(ctx) })
	running.Go(func() { _ = proxies.Run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
	accounts := &authn.Accounts{}
	issued := authn.NewAccountTokens(accounts)
	issued.SetKeys([]ed25519.PrivateKey{ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))})
	kind, _ := schema.KindByName(schema.KindServiceAccount)
	known := func(o *schema.Object) { accounts.Put(o.Meta.Namespace, o.Meta.Name, string(o.Meta.UID)) }
	view.Handle(kind, cache.Handler{Add: known, Update: func(_, o *schema.Object) { known(o) }, Delete: func(o *schema.Object) { accounts.Delete(o.Meta.Namespace, o.Meta.Name) }})
	w := servertest.Start(t, append([]func(*server.Options){func(o *server.Options) {
		o.Store, o.Reads, o.Discovery, o.Tokens = objects, view, proxies, issued
		o.Authn = authn.New(authn.Options{Tokens: []authn.TokenVerifier{tokens, issued.For(authn.AudienceAPI)}})
		o.Roles, o.Hosts, o.Domain = roles, hosts, "cluster.local"
	}}, more...)...)
	w.Store, w.Discovery = mem, proxies
	for _, b := range []string{
		bindingOf("RoleBinding", "shop", "eds", "ClusterRole", "edit", "ed"),
		bindingOf("RoleBinding", "shop", "adams", "ClusterRole", "admin", "adam"),
		bindingOf("ClusterRoleBinding", "", "vics", "ClusterRole", "view", "vic"),
	} {
		made(w, root, b)
	}
	eventually(w, vic, 200, "/apis/config.istio.io/v1alpha2/routerules")
	eventually(w, ed, 200, rulesIn("shop"))
	eventually(w, adam, 200, rulesIn("shop"))
	return w
}

func rulesIn(namespace string) string {
	return "/apis/config.istio.io/v1alpha2/namespaces/" + namespace + "/routerules"
}

func ruleOf(namespace, name string, more ...string) string {
	return fmt.Sprintf(`{"apiVersion":"config.istio.io/v1alpha2","kind":"RouteRule","metadata":{"name":%q,"namespace":%q%s},
		"spec":{"destination":{"name":"reviews"},"route":[{"labels":{"version":"v1"}}]}}`, name, namespace, strings.Join(more, ""))
}

func bindingOf(kind, namespace, name, roleKind, role, user string) string {
	in := ""
	if namespace != "" {
		in = fmt.Sprintf(`,"namespace":%q`, namespace)
	}
	return fmt.Sprintf(`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":%q,"metadata":{"name":%q%s},
		"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":%q,"name":%q},"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":%q}]}`, kind, name, in, roleKind, role, user)
}

func roleOf(kind, namespace, name, rules string, more ...string) string {
	in := ""
	if namespace != "" {
		in = fmt.Sprintf(`,"namespace":%q`, namespace)
	}
	return fmt.Sprintf(`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":%q,"metadata":{"name":%q%s%s},"rules":[%s]}`, kind, name, in, strings.Join(more, ""), rules)
}

// pathOf returns the URL of the collection of a kind.
func pathOf(kind, namespace string) string {
	k, _ := schema.KindByName(kind)
	path := k.Root(k.Version)
	if namespace != "" {
		path += "/namespaces/" + namespace
	}
	return path + "/" + k.Plural
}

// post sends an object to the URL of its collection.
func post(w *servertest.World, who, text, query string) servertest.Answer {
	w.Helper()
	var o servertest.Object
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		w.Fatal(err)
	}
	return w.Do("POST", pathOf(o.Kind, o.Metadata.Namespace)+query, text, who, servertest.AsJSON)
}

func made(w *servertest.World, who, text string) {
	w.Helper()
	if a := post(w, who, text, ""); a.StatusCode != http.StatusCreated {
		w.Fatalf("%d %s", a.StatusCode, a.Text)
	}
}

// eventually waits until a GET has a code, because roles take effect a moment after they are
// written.
func eventually(w *servertest.World, who string, code int, path string) {
	w.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		a := w.Do("GET", path, "", who)
		if a.StatusCode == code {
			return
		}
		if time.Now().After(deadline) {
			w.Fatalf("%s: %d, want %d: %s", path, a.StatusCode, code, a.Text)
		}
	}
}

// parameter matches a parameter of a route.
var parameter = regexp.MustCompile(`\{[^}]*\}`)

// TestEveryRouteNeedsARight walks the routes of the server. Each of them is refused without a
// proof and without a role, and none lacks a right. Health, and the polls of Envoys, are for
// everybody.
func TestEveryRouteNeedsARight(t *testing.T) {
	w := governed(t)
	open := regexp.MustCompile(`^/(healthz|livez|readyz|v1/|v3/|cache_stats)`)
	forAll := regexp.MustCompile(`^/(apis?|openapi|version)?(/[^/]*)?(/[^/]*)?$|^/apis/auth|^/openapi/`)
	// Their handlers check what the body or the query asks for.
	inHandler := regexp.MustCompile(`^/debug/problems$|^/apis/registry.istio.io/v1/(transactions|rollbacks|changes|watch|references|preview|proxies(/x/config/x|/x/route)?)$`)
	routes := 0
	handler := server.New(server.Options{Store: store.Strict(w.Store), Reads: w.Store, Discovery: w.Discovery}).Handler().(chi.Routes)
	err := chi.Walk(handler, func(method, route string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		path := parameter.ReplaceAllString(strings.TrimSuffix(route, "/*"), "x")
		if open.MatchString(path) {
			return nil
		}
		routes++
		if a := w.Do(method, path, ""); a.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s %s without a proof: %d %s", method, route, a.StatusCode, a.Text)
		}
		a := w.Do(method, path, "", nil_)
		if a.StatusCode != http.StatusForbidden && !forAll.MatchString(path) && !inHandler.MatchString(path) {
			t.Errorf("%s %s without a role: %d %s", method, route, a.StatusCode, a.Text)
		}
		if strings.Contains(a.Text, "there is no right to") {
			t.Errorf("%s %s has no right", method, route)
		}
		return nil
	})
	if err != nil || routes < 100 {
		t.Errorf("%d routes, %v", routes, err)
	}
}

// TestEditorsInspectTheirNamespace: an editor of one namespace may ask what refers to its
// objects, what a change there does, and what is wrong there. Answers about the whole mesh say
// that they are not.
func TestEditorsInspectTheirNamespace(t *testing.T) {
	w := governed(t)
	rule := ruleOf("shop", "own")
	made(w, root, rule)
	made(w, root, ruleOf("bank", "vault"))
	w.Want(200, "GET", "/apis/registry.istio.io/v1/references?object=RouteRule/shop/own", "", ed)
	w.Want(403, "GET", "/apis/registry.istio.io/v1/reach", "", ed)
	w.Want(201, "POST", "/apis/networking.istio.io/v1/namespaces/shop/serviceentries", reachable("shop", "10.1.0.1"), root, servertest.AsJSON)
	w.Want(201, "POST", "/apis/networking.istio.io/v1/namespaces/bank/serviceentries", reachable("bank", "10.1.0.2"), root, servertest.AsJSON)
	w.Want(201, "POST", "/apis/security.istio.io/v1/namespaces/istio-system/authorizationpolicies",
		`{"apiVersion":"security.istio.io/v1","kind":"AuthorizationPolicy","metadata":{"name":"hush"},"spec":{"action":"DENY","rules":[{}]}}`, root, servertest.AsJSON)
	for _, query := range []string{"", "?to=namespace/shop", "?from=outside"} {
		if a := w.Want(200, "GET", "/apis/registry.istio.io/v1/reach"+query, "", ed); strings.Contains(a.Text, "bank") || strings.Contains(a.Text, "hush") || !strings.Contains(a.Text, `"limited":true`) {
			t.Errorf("reach of shop: %s", a.Text)
		}
	}
	if a := w.Want(200, "GET", "/apis/registry.istio.io/v1/reach?from=outside", "", root); !strings.Contains(a.Text, "bank") || !strings.Contains(a.Text, "no proxy of the workload is connected") {
		t.Errorf("reach of all: %s", a.Text)
	}
	w.Want(400, "GET", "/apis/registry.istio.io/v1/reach?to=namespace/bank", "", ed)
	w.Want(400, "GET", "/apis/registry.istio.io/v1/reach?to=a/b", "", root)
	w.Want(400, "GET", "/apis/registry.istio.io/v1/reach?limit=10001", "", root)
	w.Want(200, "POST", "/apis/registry.istio.io/v1/preview", rule, ed, servertest.AsJSON)
	w.Want(200, "POST", "/apis/registry.istio.io/v1/preview?proxiesIn=shop", rule, ed, servertest.AsJSON)
	if a := w.Want(200, "GET", "/debug/problems?namespace=shop", "", ed); strings.Contains(a.Text, "limited") || strings.Contains(a.Text, "bank") || !strings.Contains(a.Text, `"own"`) {
		t.Errorf("problems of shop: %s", a.Text)
	}
	if a := w.Want(200, "GET", "/debug/problems", "", ed); !strings.Contains(a.Text, `"limited":true`) {
		t.Errorf("problems of all that may be seen: %s", a.Text)
	}
	if a := w.Want(200, "GET", "/debug/problems", "", vic); strings.Contains(a.Text, "limited") || !strings.Contains(a.Text, "bank") {
		t.Errorf("problems of all: %s", a.Text)
	}
	w.Want(400, "GET", "/debug/problems?namespace=A/B", "", vic)
}

// reachable is a service with one instance.
func reachable(namespace, address string) string {
	return fmt.Sprintf(`{"apiVersion":"networking.istio.io/v1","kind":"ServiceEntry","metadata":{"name":"web"},"spec":{"hosts":["web.%s.svc.cluster.local"],"location":"MESH_INTERNAL","resolution":"STATIC",`+
		`"ports":[{"number":80,"name":"http","protocol":"HTTP"}],"endpoints":[{"address":%q,"serviceAccount":"web"}]}}`, namespace, address)
}

// TestHistoryNeedsItsRight: a user that may list objects, but not read their history, neither
// sees what they were nor rolls them back.
func TestHistoryNeedsItsRight(t *testing.T) {
	w := governed(t)
	made(w, root, ruleOf("shop", "own"))
	made(w, root, roleOf("Role", "shop", "present", `{"apiGroups":["config.istio.io"],"resources":["routerules"],"verbs":["*"]}`))
	made(w, root, bindingOf("RoleBinding", "shop", "present", "Role", "present", "nil"))
	eventually(w, nil_, 200, rulesIn("shop"))
	w.Want(403, "GET", "/apis/registry.istio.io/v1/changes?since=1&kind=RouteRule&namespace=shop", "", nil_)
	w.Want(403, "POST", "/apis/registry.istio.io/v1/rollbacks", `{"spec":{"revision":"1","namespace":"shop","kind":"RouteRule"}}`, nil_, servertest.AsJSON)
	w.Want(200, "GET", "/apis/registry.istio.io/v1/changes?since=1&kind=RouteRule&namespace=shop", "", ed)
}

// TestForeignNamespaceIsClosed lets an editor of the namespace shop try everything on the
// namespace bank. Nothing is answered, nothing is changed, and no answer depends on what
// exists there.
func TestForeignNamespaceIsClosed(t *testing.T) {
	w := governed(t)
	made(w, root, ruleOf("bank", "vault-7", `,"labels":{"secret":"vault-8"}`))
	made(w, root, ruleOf("shop", "own"))
	before := w.Want(200, "GET", rulesIn("bank")+"/vault-7", "", root).Text
	revision := w.Want(200, "GET", rulesIn("bank"), "", root).Object(t).Metadata.ResourceVersion
	all := "/apis/config.istio.io/v1alpha2/routerules"
	op := func(verb, more string) string {
		return servertest.Transaction(fmt.Sprintf(`{"verb":%q,"target":{"kind":"RouteRule","namespace":"bank","name":"NAME"}%s}`, verb, more))
	}
	const patch = `,"patchType":"application/merge-patch+json","patch":{"spec":{"precedence":7}}`
	for _, tc := range []struct{ method, path, body, headers string }{
		{"GET", rulesIn("bank"), "", ""},
		{"GET", all, "", ""},
		{"GET", all + "?fieldSelector=metadata.namespace%3Dshop", "", ""},
		{"GET", rulesIn("bank") + "?labelSelector=secret", "", ""},
		{"GET", rulesIn("bank") + "?limit=1", "", ""},
		{"GET", rulesIn("bank") + "?resourceVersion=0", "", ""},
		{"GET", rulesIn("bank"), "", "Accept: application/json;as=Table;v=v1;g=meta.k8s.io"},
		{"GET", rulesIn("bank"), "", "Accept: application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"},
		{"GET", rulesIn("bank"), "", "Accept: application/yaml"},
		{"HEAD", rulesIn("bank"), "", ""},
		{"GET", rulesIn("bank") + "?watch=true&timeoutSeconds=1", "", ""},
		{"GET", rulesIn("bank") + "?watch=1&timeoutSeconds=1", "", ""},
		{"GET", all + "?watch=true&timeoutSeconds=1", "", "Accept: text/event-stream"},
		{"GET", "/apis/registry.istio.io/v1/watch?namespace=bank&timeoutSeconds=1", "", ""},
		{"GET", "/apis/registry.istio.io/v1/watch?kinds=RouteRule&timeoutSeconds=1", "", "Accept: text/event-stream"},
		{"GET", servertest.Changes + "?since=1&namespace=bank", "", ""},
		{"GET", servertest.Changes + "?since=1&kind=RouteRule&namespace=bank&name=NAME", "", ""},
		{"GET", servertest.Changes + "?since=1", "", ""},
		{"GET", rulesIn("bank") + "/NAME", "", ""},
		{"GET", rulesIn("bank") + "/NAME/status", "", ""},
		{"GET", rulesIn("bank") + "/NAME/history", "", ""},
		{"GET", rulesIn("bank") + "/NAME/history/" + revision, "", ""},
		{"GET", rulesIn("bank") + "/NAME?watch=true", "", ""},
		{"POST", rulesIn("bank"), ruleOf("bank", "NAME"), servertest.AsJSON},
		{"POST", rulesIn("bank") + "?dryRun=All", ruleOf("bank", "NAME"), servertest.AsJSON},
		{"PUT", rulesIn("bank") + "/NAME", ruleOf("bank", "NAME"), servertest.AsJSON},
		{"PUT", rulesIn("bank") + "/NAME?dryRun=All", ruleOf("bank", "NAME"), servertest.AsJSON},
		{"PATCH", rulesIn("bank") + "/NAME", `{"spec":{"precedence":7}}`, "Content-Type: application/merge-patch+json"},
		{"PATCH", rulesIn("bank") + "/NAME", `[{"op":"test","path":"/spec/precedence","value":7}]`, "Content-Type: application/json-patch+json"},
		{"PATCH", rulesIn("bank") + "/NAME?fieldManager=me", ruleOf("bank", "NAME"), "Content-Type: application/apply-patch+yaml"},
		{"DELETE", rulesIn("bank") + "/NAME", "", ""},
		{"DELETE", rulesIn("bank") + "/NAME", `{"preconditions":{"resourceVersion":"1"}}`, servertest.AsJSON},
		{"DELETE", rulesIn("bank"), "", ""},
		{"DELETE", rulesIn("bank") + "?labelSelector=secret&dryRun=All", "", ""},
		{"POST", servertest.Transactions, op("delete", ""), servertest.AsJSON},
		{"POST", servertest.Transactions, op("patch", patch), servertest.AsJSON},
		{"POST", servertest.Transactions + "?dryRun=All", op("patch", patch), servertest.AsJSON},
		{"POST", servertest.Transactions, servertest.Transaction(`{"verb":"create","object":` + ruleOf("bank", "NAME") + `}`), servertest.AsJSON},
		{"POST", servertest.Transactions, servertest.Transaction(`{"verb":"update","object":` + ruleOf("bank", "NAME") + `}`), servertest.AsJSON},
		{"POST", servertest.Transactions, servertest.Transaction(`{"verb":"apply","object":` + ruleOf("bank", "NAME") + `}`), servertest.AsJSON},
		{"POST", servertest.Transactions, servertest.Transaction(`{"verb":"apply","fieldManager":"me","object":` + ruleOf("bank", "NAME") + `}`), servertest.AsJSON},
		{"POST", servertest.Transactions, servertest.Transaction(`{"verb":"update","object":`+ruleOf("shop", "own")+`}`, `{"verb":"delete","target":{"kind":"RouteRule","namespace":"bank","name":"NAME"}}`), servertest.AsJSON},
		{"POST", servertest.Rollbacks, `{"spec":{"revision":"1","namespace":"bank"}}`, servertest.AsJSON},
		{"POST", servertest.Rollbacks, `{"spec":{"revision":"1","namespace":"bank","kind":"RouteRule","name":"NAME"}}`, servertest.AsJSON},
		{"POST", servertest.Rollbacks + "?dryRun=All", `{"spec":{"revision":"1","namespace":"bank","kind":"RouteRule","steps":true}}`, servertest.AsJSON},
		{"GET", "/apis/registry.istio.io/v1/references?object=RouteRule/bank/NAME", "", ""},
		{"GET", "/apis/registry.istio.io/v1/proxies?object=RouteRule/bank/NAME", "", ""},
		{"GET", "/apis/registry.istio.io/v1/proxies/sidecar~10.0.0.1~a.bank~bank.svc.cluster.local/config/all", "", ""},
		{"GET", "/apis/registry.istio.io/v1/proxies/sidecar~10.0.0.1~a.bank~bank.svc.cluster.local/route", "", ""},
		{"GET", "/apis/registry.istio.io/v1/standings?local=true", "", ""},
		{"POST", "/apis/registry.istio.io/v1/preview", ruleOf("bank", "NAME"), servertest.AsJSON},
		{"POST", "/apis/registry.istio.io/v1/preview", strings.Replace(ruleOf("bank", "NAME"), `"name":`, `"resourceVersion":"1","name":`, 1), servertest.AsJSON},
		{"POST", "/apis/registry.istio.io/v1/preview?without=RouteRule/bank/NAME", ruleOf("shop", "own"), servertest.AsJSON},
		{"POST", "/apis/registry.istio.io/v1/preview?proxiesIn=bank", ruleOf("shop", "own"), servertest.AsJSON},
		{"GET", "/debug/problems?namespace=bank", "", ""},
		{"GET", "/metrics", "", ""},
	} {
		var texts [2]string
		for i, name := range []string{"vault-7", "no-such-rule"} {
			a := w.Do(tc.method, strings.ReplaceAll(tc.path, "NAME", name), strings.ReplaceAll(tc.body, "NAME", name), slices.DeleteFunc([]string{ed, tc.headers}, func(h string) bool { return h == "" })...)
			texts[i] = strings.ReplaceAll(a.Text, name, "NAME")
			if a.StatusCode != http.StatusForbidden || strings.Contains(texts[i], "vault") {
				t.Errorf("%s %s: %d %s", tc.method, tc.path, a.StatusCode, a.Text)
			}
		}
		if texts[0] != texts[1] {
			t.Errorf("%s %s shows what exists:\n%s\n%s", tc.method, tc.path, texts[0], texts[1])
		}
	}
	if a := w.Want(200, "GET", "/debug/problems", "", ed); strings.Contains(a.Text, "vault") || strings.Contains(a.Text, "bank") {
		t.Errorf("problems: %s", a.Text)
	}
	if after := w.Want(200, "GET", rulesIn("bank")+"/vault-7", "", root).Text; withoutStatus(after) != withoutStatus(before) {
		t.Errorf("changed from %s\nto %s", before, after)
	}
	for _, text := range []string{ruleOf("shop", "more")} {
		made(w, ed, text)
	}
	w.Want(200, "GET", rulesIn("shop"), "", ed)
	w.Want(403, "GET", pathOf("Role", "shop"), "", ed)
	w.Want(200, "GET", pathOf("Role", "shop"), "", adam)
	w.Want(403, "GET", "/debug/pprof/heap", "", ed)
	w.Want(200, "GET", "/debug/pprof/heap", "", root)
}

// withoutStatus returns an object without its status.
func withoutStatus(text string) string {
	before, _, _ := strings.Cut(text, `,"status":`)
	return before
}

const (
	deleteSecrets = `{"apiGroups":["registry.istio.io"],"resources":["secrets"],"verbs":["delete"]}`
	readStandings = `{"apiGroups":["registry.istio.io"],"resources":["standings"],"verbs":["get"]}`
	everything    = `{"apiGroups":["*"],"resources":["*"],"verbs":["*"]}`
)

// TestNobodyGivesMoreThanTheyHave tries each way by which an admin of a namespace could give
// rights that they lack. All are refused, and change nothing.
func TestNobodyGivesMoreThanTheyHave(t *testing.T) {
	w := governed(t)
	// What adam may give.
	made(w, adam, roleOf("Role", "shop", "cleaner", deleteSecrets))
	made(w, adam, bindingOf("RoleBinding", "shop", "cleaners", "Role", "cleaner", "nil"))
	made(w, adam, bindingOf("RoleBinding", "shop", "editors", "ClusterRole", "edit", "nil"))
	// The history of the role has a version with more rights than the present one.
	made(w, root, roleOf("Role", "shop", "old", everything))
	old := w.Want(200, "GET", pathOf("Role", "shop")+"/old", "", root).Object(t).Metadata.ResourceVersion
	w.Want(200, "PUT", pathOf("Role", "shop")+"/old", roleOf("Role", "shop", "old", deleteSecrets), root, servertest.AsJSON)
	made(w, root, roleOf("ClusterRole", "", "all", everything))
	made(w, root, roleOf("Role", "shop", "strong", everything))
	made(w, root, bindingOf("RoleBinding", "shop", "strongs", "ClusterRole", "all", "root"))
	const note = `{"metadata":{"annotations":{"note":"x"}}}`
	revision := func() string {
		return w.Want(200, "GET", "/apis/rbac.authorization.k8s.io/v1/roles", "", root).Object(t).Metadata.ResourceVersion
	}
	begin := revision()
	role, merge := pathOf("Role", "shop")+"/cleaner", "Content-Type: application/merge-patch+json"
	more := roleOf("Role", "shop", "cleaner", readStandings)
	mine := bindingOf("RoleBinding", "shop", "mine", "Role", "cleaner", "adam")
	in := func(verb, object string) string { return fmt.Sprintf(`{"verb":%q,"object":%s}`, verb, object) }
	for name, a := range map[string]servertest.Answer{
		"a role":                     post(w, adam, roleOf("Role", "shop", "big", everything), ""),
		"a role, tried":              post(w, adam, roleOf("Role", "shop", "big", everything), "?dryRun=All"),
		"one right more":             w.Do("PUT", role, more, adam, servertest.AsJSON),
		"a patch":                    w.Do("PATCH", role, `{"rules":[`+readStandings+`]}`, adam, merge),
		"a JSON patch":               w.Do("PATCH", role, `[{"op":"add","path":"/rules/-","value":`+readStandings+`}]`, adam, "Content-Type: application/json-patch+json"),
		"server-side apply":          w.Do("PATCH", role+"?fieldManager=me&force=true", more, adam, "Content-Type: application/apply-patch+yaml"),
		"a new role, applied":        w.Do("PATCH", pathOf("Role", "shop")+"/big?fieldManager=me", roleOf("Role", "shop", "big", everything), adam, "Content-Type: application/apply-patch+yaml"),
		"a binding of all":           post(w, adam, bindingOf("RoleBinding", "shop", "mine", "ClusterRole", "all", "adam"), ""),
		"a binding of nothing":       post(w, adam, bindingOf("RoleBinding", "shop", "mine", "ClusterRole", "comes-later", "adam"), ""),
		"a binding everywhere":       post(w, adam, bindingOf("ClusterRoleBinding", "", "mine", "ClusterRole", "edit", "adam"), ""),
		"a cluster role":             post(w, adam, roleOf("ClusterRole", "", "small", deleteSecrets), ""),
		"another role of a binding":  w.Do("PATCH", pathOf("RoleBinding", "shop")+"/cleaners", `{"roleRef":{"kind":"ClusterRole","name":"all"}}`, adam, merge),
		"an annotation of a role":    w.Do("PATCH", pathOf("Role", "shop")+"/strong", note, adam, merge),
		"a label of a role":          w.Do("PATCH", pathOf("Role", "shop")+"/strong", strings.Replace(note, "annotations", "labels", 1), adam, merge),
		"an annotation of a binding": w.Do("PATCH", pathOf("RoleBinding", "shop")+"/strongs", note, adam, merge),
		"a label of a binding":       w.Do("PATCH", pathOf("RoleBinding", "shop")+"/strongs", strings.Replace(note, "annotations", "labels", 1), adam, merge),
		"raise and bind":             w.Do("POST", servertest.Transactions, servertest.Transaction(in("update", roleOf("Role", "shop", "cleaner", everything)), in("create", mine)), adam, servertest.AsJSON),
		"make and bind":              w.Do("POST", servertest.Transactions, servertest.Transaction(in("create", roleOf("Role", "shop", "big", everything)), in("create", bindingOf("RoleBinding", "shop", "mine", "Role", "big", "adam"))), adam, servertest.AsJSON),
		"raise, by a patch": w.Do("POST", servertest.Transactions, servertest.Transaction(`{"verb":"patch","target":{"kind":"Role","namespace":"shop","name":"cleaner"},
			"patchType":"application/merge-patch+json","patch":{"rules":[`+everything+`]}}`, in("create", mine)), adam, servertest.AsJSON),
		"roll back to more":  w.Do("POST", servertest.Rollbacks, `{"spec":{"revision":"`+old+`","namespace":"shop","kind":"Role","name":"old"}}`, adam, servertest.AsJSON),
		"roll back in steps": w.Do("POST", servertest.Rollbacks, `{"spec":{"revision":"`+old+`","namespace":"shop","kind":"Role","name":"old","steps":true}}`, adam, servertest.AsJSON),
	} {
		if a.StatusCode != http.StatusForbidden {
			t.Errorf("%s: %d %s", name, a.StatusCode, a.Text)
		}
	}
	if now := revision(); now != begin {
		t.Errorf("something was changed: revision %s, then %s", begin, now)
	}
	// The words of Kubernetes.
	a := post(w, adam, roleOf("Role", "shop", "big", readStandings), "")
	if st := a.Failure(t); !strings.Contains(st.Message, `user "adam" (groups=["system:authenticated"]) is attempting to grant RBAC permissions not currently held:`) ||
		!strings.Contains(st.Message, `{APIGroups:["registry.istio.io"], Resources:["standings"], Verbs:["get"]}`) {
		t.Errorf("%s", a.Text)
	}
	// With the verbs escalate and bind it is allowed.
	made(w, root, roleOf("ClusterRole", "", "giver", `{"apiGroups":["rbac.authorization.k8s.io"],"resources":["roles","clusterroles"],"verbs":["escalate","bind"]}`))
	made(w, root, bindingOf("RoleBinding", "shop", "givers", "ClusterRole", "giver", "adam"))
	for deadline := time.Now().Add(10 * time.Second); ; {
		if a = post(w, adam, roleOf("Role", "shop", "big", everything), ""); a.StatusCode == http.StatusCreated {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("with escalate: %s", a.Text)
		}
	}
	made(w, adam, bindingOf("RoleBinding", "shop", "mine", "ClusterRole", "all", "adam"))
}

// TestAggregatedRolesGiveNothingNew checks that who writes a ClusterRole whose label another
// one aggregates needs its rights, and that an aggregationRule takes all rights.
func TestAggregatedRolesGiveNothingNew(t *testing.T) {
	w := governed(t)
	made(w, root, `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"sum"},"rules":[],
		"aggregationRule":{"clusterRoleSelectors":[{"matchLabels":{"to":"sum"}}]}}`)
	made(w, root, roleOf("ClusterRole", "", "part", `{"apiGroups":["config.istio.io"],"resources":["routerules"],"verbs":["create"]}`, `,"labels":{"to":"sum"}`))
	made(w, root, bindingOf("RoleBinding", "bank", "sums", "ClusterRole", "sum", "nil"))
	made(w, root, roleOf("ClusterRole", "", "writer", `{"apiGroups":["rbac.authorization.k8s.io"],"resources":["clusterroles"],"verbs":["create","update","patch"]}`))
	made(w, root, bindingOf("ClusterRoleBinding", "", "writers", "ClusterRole", "writer", "vic"))
	for deadline := time.Now().Add(10 * time.Second); post(w, nil_, ruleOf("bank", "r"), "").StatusCode != http.StatusCreated; {
		if time.Now().After(deadline) {
			t.Fatal("an aggregated right has no effect")
		}
	}
	for name, text := range map[string]string{
		"a part":             roleOf("ClusterRole", "", "more", everything, `,"labels":{"to":"sum"}`),
		"an aggregationRule": `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"sum-2"},"aggregationRule":{"clusterRoleSelectors":[{"matchLabels":{"to":"sum-2"}}]}}`,
	} {
		if a := post(w, vic, text, ""); a.StatusCode != http.StatusForbidden || !strings.Contains(a.Text, "attempting to grant") {
			t.Errorf("%s: %d %s", name, a.StatusCode, a.Text)
		}
	}
	// To remove an aggregationRule takes all rights, too.
	made(w, root, `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"sum-3"},"aggregationRule":{"clusterRoleSelectors":[{"matchLabels":{"to":"none"}}]}}`)
	if a := w.Do("PATCH", pathOf("ClusterRole", "")+"/sum-3", `{"aggregationRule":null}`, vic, "Content-Type: application/merge-patch+json"); a.StatusCode != http.StatusForbidden {
		t.Errorf("without its aggregationRule: %d %s", a.StatusCode, a.Text)
	}
	// A label makes the rights of a role a part of another one.
	made(w, root, roleOf("ClusterRole", "", "free", everything))
	if a := w.Do("PATCH", pathOf("ClusterRole", "")+"/free", `{"metadata":{"labels":{"to":"sum"}}}`, vic, "Content-Type: application/merge-patch+json"); a.StatusCode != http.StatusForbidden {
		t.Errorf("a label: %d %s", a.StatusCode, a.Text)
	}
}

// TestRunningWatchesLoseTheirRight checks that a watch ends soon after the role is gone by
// which it was allowed.
func TestRunningWatchesLoseTheirRight(t *testing.T) {
	outside.Slow(t)
	w := governed(t)
	for _, path := range []string{rulesIn("shop") + "?watch=true", "/apis/registry.istio.io/v1/watch?kinds=RouteRule&namespace=shop"} {
		ended := watchAs(w, path, ed)
		w.Want(200, "DELETE", pathOf("RoleBinding", "shop")+"/eds", "", root)
		ends(w, path, ended)
		made(w, root, bindingOf("RoleBinding", "shop", "eds", "ClusterRole", "edit", "ed"))
		eventually(w, ed, 200, rulesIn("shop"))

		// The right of the one that it acts as remains; the right to act so does not.
		actors := pathOf("ClusterRoleBinding", "") + "/actors"
		made(w, root, bindingOf("ClusterRoleBinding", "", "actors", "ClusterRole", "cluster-admin", "nil"))
		eventually(w, nil_, 200, rulesIn("bank"))
		ended = watchAs(w, path, nil_, "Impersonate-User: ed")
		w.Want(200, "DELETE", actors, "", root)
		ends(w, path+" as another user", ended)
	}
}

// watchAs starts a watch with headers. The channel is closed when it ends.
func watchAs(w *servertest.World, path string, headers ...string) <-chan struct{} {
	w.Helper()
	req, err := http.NewRequestWithContext(w.Context(), http.MethodGet, w.URL+path, nil)
	if err != nil {
		w.Fatal(err)
	}
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil || resp.StatusCode != http.StatusOK {
		w.Fatal(resp, err)
	}
	w.Cleanup(func() { resp.Body.Close() })
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for in := bufio.NewScanner(resp.Body); in.Scan(); {
		}
	}()
	return ended
}

func ends(w *servertest.World, path string, ended <-chan struct{}) {
	w.Helper()
	select {
	case <-ended:
	case <-time.After(15 * time.Second):
		w.Errorf("%s goes on without a right", path)
	}
}

// TestImpersonation checks that a client acts as somebody else only by right, and is never
// taken for itself when it lacks that.
func TestImpersonation(t *testing.T) {
	w := governed(t)
	as := func(user string) string { return "Impersonate-User: " + user }
	w.Want(200, "GET", rulesIn("shop"), "", root, as("ed"))
	w.Want(403, "GET", rulesIn("bank"), "", root, as("ed"))
	w.Want(200, "GET", rulesIn("bank"), "", root, as("nobody"), "Impersonate-Group: "+identity.Masters)
	w.Want(403, "GET", rulesIn("shop"), "", ed, as("ed"))
	w.Want(403, "GET", rulesIn("shop"), "", vic, as("root"), "Impersonate-Group: "+identity.Masters)
	w.Want(400, "GET", rulesIn("shop"), "", root, "Impersonate-Group: x")
	w.Want(400, "GET", rulesIn("shop"), "", root, as("a"), as("b"))
	w.Want(400, "GET", rulesIn("shop"), "", root, "Impersonate-Uid: x")
	w.Want(400, "GET", rulesIn("shop"), "", root, as("ed"), "Impersonate-Uid: x", "Impersonate-Uid: y")
	w.Want(400, "GET", rulesIn("shop"), "", root, "Impersonate-Extra-Scopes: x")
	made(w, root, roleOf("ClusterRole", "", "actor", `{"apiGroups":[""],"resources":["users"],"resourceNames":["ed"],"verbs":["impersonate"]}`))
	made(w, root, bindingOf("ClusterRoleBinding", "", "actors", "ClusterRole", "actor", "nil"))
	for deadline := time.Now().Add(10 * time.Second); w.Do("GET", rulesIn("shop"), "", nil_, as("ed")).StatusCode != http.StatusOK; {
		if time.Now().After(deadline) {
			t.Fatal("the right has no effect")
		}
	}
	w.Want(403, "GET", rulesIn("shop"), "", nil_, as("adam"))
	w.Want(403, "GET", rulesIn("shop"), "", nil_, as("ed"), "Impersonate-Group: shop")
}

// TestImpersonatedFacts checks that the uid and further facts of somebody else need rights of
// their own, for each value, and that the identity has them.
func TestImpersonatedFacts(t *testing.T) {
	w := governed(t)
	as := []string{"Impersonate-User: ed", "Impersonate-Uid: 7", "Impersonate-Extra-Scopes: read", "Impersonate-Extra-Scopes: write", "Impersonate-Extra-Example.com%2fTeam: a"}
	who := func(user string, headers ...string) authentication.UserInfo {
		t.Helper()
		var review authentication.SelfSubjectReview
		a := w.Want(201, "POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", "{}", append([]string{user, servertest.AsJSON}, headers...)...)
		if err := json.Unmarshal([]byte(a.Text), &review); err != nil {
			t.Fatal(err)
		}
		return review.Status.UserInfo
	}
	got := who(root, as...)
	if got.UID != "7" || !slices.Equal(got.Extra["scopes"], []string{"read", "write"}) || !slices.Equal(got.Extra["example.com/team"], []string{"a"}) || len(got.Extra) != 2 {
		t.Errorf("%+v", got)
	}
	if got := who(root, as[0]); got.UID != "" || len(got.Extra) != 0 {
		t.Errorf("without more headers: %+v", got)
	}
	rule := func(resource, names string) string {
		return `{"apiGroups":["","authentication.k8s.io"],"resources":["` + resource + `"],"resourceNames":[` + names + `],"verbs":["impersonate"]}`
	}
	made(w, root, roleOf("ClusterRole", "", "actor", rule("users", `"ed"`)+","+rule("uids", `"7"`)+","+rule("userextras/scopes", `"read"`)))
	made(w, root, bindingOf("ClusterRoleBinding", "", "actors", "ClusterRole", "actor", "nil"))
	for deadline := time.Now().Add(10 * time.Second); w.Do("GET", rulesIn("shop"), "", nil_, as[0]).StatusCode != http.StatusOK; {
		if time.Now().After(deadline) {
			t.Fatal("the right has no effect")
		}
	}
	w.Want(200, "GET", rulesIn("shop"), "", append([]string{nil_}, as[:3]...)...)
	for refused, headers := range map[string][]string{
		`impersonate resource "userextras/scopes"`:           as[:4],
		`impersonate resource "userextras/example.com/team"`: {as[0], as[4]},
		`impersonate resource "uids"`:                        {as[0], "Impersonate-Uid: 8"},
		`impersonate resource "userextras/credential-id"`:    {as[0], "Impersonate-Extra-Credential-Id: JTI=x"},
	} {
		if a := w.Want(403, "GET", rulesIn("shop"), "", append([]string{nil_}, headers...)...); !strings.Contains(a.Text, strings.ReplaceAll(refused, `"`, `\"`)) {
			t.Errorf("%s: %s", refused, a.Text)
		}
	}
}

// TestImpersonatedGroups checks which groups somebody has that a client acts as: those of
// Kubernetes.
func TestImpersonatedGroups(t *testing.T) {
	w := governed(t)
	const accounts = "system:serviceaccounts"
	for _, tc := range []struct {
		user         string
		groups, want []string
	}{
		{"ed", nil, []string{identity.Authenticated}},
		{"ed", []string{"a"}, []string{"a", identity.Authenticated}},
		{"ed", []string{identity.Authenticated}, []string{identity.Authenticated}},
		{identity.Anonymous, []string{"a"}, []string{"a", identity.Unauthenticated}},
		{identity.Anonymous, []string{identity.Authenticated}, []string{identity.Authenticated, identity.Unauthenticated}},
		{"system:serviceaccount:shop:a", nil, []string{accounts, accounts + ":shop", identity.Authenticated}},
		{"system:serviceaccount:shop:a", []string{"a"}, []string{"a", identity.Authenticated}},
		{"system:serviceaccount:shop:a:b", nil, []string{identity.Authenticated}},
		{"system:serviceaccount:shop:", nil, []string{identity.Authenticated}},
		{"system:serviceaccount::a", nil, []string{identity.Authenticated}},
		{"system:serviceaccount:Shop:a", nil, []string{identity.Authenticated}},
		{"system:serviceaccount:shop:A_b", nil, []string{identity.Authenticated}},
	} {
		headers := []string{root, servertest.AsJSON, "Impersonate-User: " + tc.user}
		for _, group := range append(slices.Clone(tc.groups), identity.Masters) { // So that all may ask.
			headers = append(headers, "Impersonate-Group: "+group)
		}
		want := append(slices.Clone(tc.want), identity.Masters)
		if tc.groups == nil {
			headers, want = headers[:3], tc.want
		}
		review := struct {
			Status struct{ UserInfo struct{ Groups []string } }
		}{}
		if err := json.Unmarshal([]byte(w.Want(201, "POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", `{}`, headers...).Text), &review); err != nil {
			t.Fatal(err)
		}
		got := review.Status.UserInfo.Groups
		slices.Sort(got)
		if slices.Sort(want); !slices.Equal(got, want) {
			t.Errorf("%s of %q: %q, want %q", tc.user, tc.groups, got, want)
		}
	}
	// A right on ServiceAccounts is none on users whose names only begin like theirs.
	made(w, root, roleOf("Role", "shop", "actor", `{"apiGroups":[""],"resources":["serviceaccounts"],"verbs":["impersonate"]}`))
	made(w, root, bindingOf("RoleBinding", "shop", "actors", "Role", "actor", "nil"))
	for deadline := time.Now().Add(10 * time.Second); w.Do("GET", "/version", "", nil_, "Impersonate-User: system:serviceaccount:shop:a").StatusCode != http.StatusOK; {
		if time.Now().After(deadline) {
			t.Fatal("the right has no effect")
		}
	}
	w.Want(403, "GET", "/version", "", nil_, "Impersonate-User: system:serviceaccount:shop:a:b")
}

// TestNamespacesHaveNames checks the right to a namespace, by its name, and that to list them.
func TestNamespacesHaveNames(t *testing.T) {
	w := governed(t)
	made(w, root, roleOf("ClusterRole", "", "one", `{"apiGroups":[""],"resources":["namespaces"],"resourceNames":["shop"],"verbs":["get"]}`))
	made(w, root, bindingOf("ClusterRoleBinding", "", "ones", "ClusterRole", "one", "nil"))
	eventually(w, nil_, 200, "/api/v1/namespaces/shop")
	w.Want(403, "GET", "/api/v1/namespaces/bank", "", nil_)
	made(w, root, roleOf("ClusterRole", "", "any", `{"apiGroups":[""],"resources":["namespaces"],"verbs":["get"]}`))
	made(w, root, bindingOf("ClusterRoleBinding", "", "anys", "ClusterRole", "any", "nil"))
	eventually(w, nil_, 200, "/api/v1/namespaces/bank")
	w.Want(403, "GET", "/api/v1/namespaces", "", nil_)
	w.Want(404, "GET", "/api/v1/namespaces", "", vic)
}

// TestRulesForHostsOfOthers checks that a rule for a host of another namespace, and one that
// names its Gateway, takes a right there.
func TestRulesForHostsOfOthers(t *testing.T) {
	w := governed(t)
	entry := func(namespace, host string) string {
		return fmt.Sprintf(`{"apiVersion":"networking.istio.io/v1","kind":"ServiceEntry","metadata":{"name":"e","namespace":%q},
			"spec":{"hosts":[%q],"ports":[{"number":80,"name":"http","protocol":"HTTP"}],"resolution":"STATIC","endpoints":[{"address":"10.0.0.1"}]}}`, namespace, host)
	}
	virtual := func(name, host, gateway string) string {
		return fmt.Sprintf(`{"apiVersion":"networking.istio.io/v1","kind":"VirtualService","metadata":{"name":%q,"namespace":"shop"},
			"spec":{"hosts":[%q],"gateways":[%q],"http":[{"route":[{"destination":{"host":"web"}}]}]}}`, name, host, gateway)
	}
	made(w, root, strings.Replace(entry("bank", "*.pay.example"), `"e"`, `"pay"`, 1))
	made(w, root, strings.Replace(entry("shop", "own.pay.example"), `"e"`, `"own"`, 1))
	made(w, root, entry("bank", "api.bank.example"))
	made(w, root, strings.Replace(entry("bank", "ledger.bank.svc.cluster.local"), `"e"`, `"ledger"`, 1))
	made(w, ed, entry("shop", "web.shop.example"))
	for deadline := time.Now().Add(10 * time.Second); post(w, ed, virtual("probe", "api.bank.example", "mesh"), "?dryRun=All").StatusCode != http.StatusForbidden; {
		if time.Now().After(deadline) {
			t.Fatal("a rule for a host of another namespace is stored")
		}
	}
	rule := `{"apiVersion":"config.istio.io/v1alpha2","kind":"RouteRule","metadata":{"name":"r","namespace":"shop"},"spec":{"destination":{"name":"ledger","namespace":"bank"},"route":[{"weight":100}]}}`
	for name, text := range map[string]string{
		"host": virtual("a", "API.bank.example", "mesh"), "wildcard": virtual("a", "*.bank.example", "mesh"), "under a wildcard": virtual("a", "card.pay.example", "mesh"),
		"wildcard under another": virtual("a", "*.eu.pay.example", "mesh"), "short": virtual("a", "ledger.bank", "mesh"),
		"route rule": rule, "gateway": virtual("a", "new.example", "bank/edge"),
		"policy": `{"apiVersion":"networking.istio.io/v1","kind":"DestinationRule","metadata":{"name":"d","namespace":"shop"},"spec":{"host":"ledger.bank.svc.cluster.local"}}`,
	} {
		a := post(w, ed, text, "")
		if a.StatusCode != http.StatusForbidden || !strings.Contains(a.Text, `in the namespace \"bank\"`) {
			t.Errorf("%s: %d %s", name, a.StatusCode, a.Text)
		}
	}
	made(w, ed, virtual("own", "web.shop.example", "mesh"))
	made(w, ed, virtual("own-part", "own.pay.example", "mesh"))
	made(w, ed, virtual("new", "new.example", "edge"))
	made(w, root, roleOf("Role", "bank", "guests", `{"apiGroups":["networking.istio.io"],"resources":["serviceentries"],"verbs":["route"]},{"apiGroups":["networking.istio.io"],"resources":["gateways"],"resourceNames":["edge"],"verbs":["attach"]}`))
	made(w, root, bindingOf("RoleBinding", "bank", "guests", "Role", "guests", "ed"))
	for deadline := time.Now().Add(10 * time.Second); post(w, ed, virtual("a", "api.bank.example", "bank/edge"), "").StatusCode != http.StatusCreated; {
		if time.Now().After(deadline) {
			t.Fatal("the verbs have no effect")
		}
	}
	if a := post(w, ed, virtual("b", "api.bank.example", "bank/other"), ""); a.StatusCode != http.StatusForbidden {
		t.Errorf("another Gateway: %d %s", a.StatusCode, a.Text)
	}
}

// TestReviewsFollowRoles checks what the reviews of Kubernetes answer about roles.
func TestReviewsFollowRoles(t *testing.T) {
	w := governed(t)
	review := func(who, path, spec string) string {
		return w.Want(201, "POST", "/apis/"+path, `{"spec":`+spec+`}`, who, servertest.AsJSON).Text
	}
	const access = "authorization.k8s.io/v1/selfsubjectaccessreviews"
	in := func(namespace string) string {
		return `{"resourceAttributes":{"verb":"create","group":"config.istio.io","resource":"routerules","namespace":"` + namespace + `"}}`
	}
	if got := review(ed, access, in("shop")); !strings.Contains(got, `"allowed":true,"reason":"RBAC: allowed by RoleBinding \"eds/shop\" of ClusterRole \"edit\" to User \"ed\""`) {
		t.Error(got)
	}
	if got := review(ed, access, in("bank")); !strings.Contains(got, `"allowed":false`) {
		t.Error(got)
	}
	if got := review(ed, access, `{"nonResourceAttributes":{"verb":"get","path":"/metrics"}}`); !strings.Contains(got, `"allowed":false`) {
		t.Error(got)
	}
	if got := review(vic, "authorization.k8s.io/v1/selfsubjectrulesreviews", `{"namespace":"shop"}`); !strings.Contains(got, `{"verbs":["get","list","watch"],"apiGroups":["config.istio.io","networking.istio.io","security.istio.io"],"resources":["*"]}`) ||
		!strings.Contains(got, `"/apis/*"`) {
		t.Error(got)
	}
	if got := w.Want(201, "POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", `{}`, ed, servertest.AsJSON).Text; !strings.Contains(got, `"userInfo":{"username":"ed","uid":"1","groups":["system:authenticated"]}`) {
		t.Error(got)
	}
	// A review of a resource without a name is not one of a path.
	made(w, root, roleOf("ClusterRole", "", "paths", `{"nonResourceURLs":["*"],"verbs":["*"]}`))
	made(w, root, bindingOf("ClusterRoleBinding", "", "paths", "ClusterRole", "paths", "nil"))
	eventually(w, nil_, 200, "/metrics")
	if got := review(nil_, access, `{"resourceAttributes":{"verb":"get"}}`); !strings.Contains(got, `"allowed":false`) {
		t.Error(got)
	}
	if got := review(ed, access, `{"nonResourceAttributes":{"verb":"get","path":"/healthz"}}`); !strings.Contains(got, `"allowed":true`) {
		t.Error(got)
	}
	w.Want(403, "POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", `{"spec":{"user":"adam"}}`, ed, servertest.AsJSON)
	if got := review(root, "authorization.k8s.io/v1/subjectaccessreviews", strings.Replace(in("shop"), "{", `{"user":"adam",`, 1)); !strings.Contains(got, `"allowed":true`) {
		t.Error(got)
	}
}

// TestKubectlHasRoles uses the server with an unmodified kubectl and tokens, which it sends
// over TLS only.
func TestKubectlHasRoles(t *testing.T) {
	outside.Slow(t)
	withTool(t, "kubectl")
	runScriptsAt(t, "testdata/script/access", func(env *testscript.Env) string {
		ts := httptest.NewTLSServer(governed(t).Handler)
		env.Defer(ts.Close)
		ca := filepath.Join(env.WorkDir, "ca.pem")
		if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ts.Certificate().Raw}), 0o600); err != nil {
			t.Fatal(err)
		}
		env.Setenv("CA", ca)
		for name, header := range map[string]string{"ROOT": root, "ED": ed} {
			env.Setenv(name, strings.TrimPrefix(header, "Authorization: Bearer "))
		}
		return ts.URL
	})
}
