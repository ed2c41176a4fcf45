package server_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/server"
	"github.com/pilot-api/pilot-api/server/servertest"
	"github.com/pilot-api/pilot-api/store/memory"
)

const proxiesPath = "/apis/registry.istio.io/v1/proxies"

// connectIn opens the stream of a proxy that subscribes to nothing.
func connectIn(w *servertest.World, id, namespace string) *discovery.Stream {
	w.Helper()
	node, err := discovery.NewNode(id, namespace, nil)
	if err != nil {
		w.Fatal(err)
	}
	st, err := w.Discovery.Connect(node, discovery.Delta)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(st.Close)
	return st
}

// nodeIn returns the id of a proxy of a namespace.
func nodeIn(role, name, namespace string) string {
	return role + "~10.0.0.1~" + name + "." + namespace + "~" + namespace + ".svc.cluster.local"
}

// TestProxiesOfANamespace checks that a user with a role in one namespace sees the proxies
// there and their configuration, at all replicas, and of all others not even whether they
// exist.
func TestProxiesOfANamespace(t *testing.T) {
	far := servertest.StartReplica(t, memory.New())
	w := governed(t, func(o *server.Options) {
		o.Peers = &servertest.Register{Known: map[string]string{"far": far.URL}}
	})
	w.Want(200, "GET", "/debug/problems", "", root) // It waits for a configuration.
	far.Want(200, "GET", "/debug/problems", "")
	made(w, root, ruleOf("shop", "own"))
	made(w, root, ruleOf("bank", "vault"))
	for _, at := range []*servertest.World{w, far} {
		name := map[*servertest.World]string{w: "here", far: "far"}[at]
		connectIn(at, nodeIn("sidecar", name, "shop"), "")
		connectIn(at, nodeIn("sidecar", name, "bank"), "")
		connectIn(at, nodeIn("router", name, "shop"), "")
		// Of two proxies with one id, the one of the other namespace asks last.
		connectIn(at, nodeIn("sidecar", name+"-twice", "shop"), "")
		connectIn(at, nodeIn("sidecar", name+"-twice", "shop"), "bank")
		connectIn(at, nodeIn("sidecar", name+"-gone", "shop"), "").Close()
		connectIn(at, nodeIn("sidecar", name+"-gone", "bank"), "").Close()
	}

	count := func(who, query string) (nodes int, namespaces map[string]int, warning string) {
		a := w.Want(200, "GET", proxiesPath+query, "", who)
		var found []struct{ Namespace string }
		if err := json.Unmarshal([]byte(a.Text), &found); err != nil {
			t.Fatal(err)
		}
		namespaces = map[string]int{}
		for _, p := range found {
			namespaces[p.Namespace]++
		}
		return len(found), namespaces, a.Header.Get("Warning")
	}
	for _, tc := range []struct {
		who, query string
		shop, bank int
	}{
		{vic, "", 6, 4}, {ed, "", 6, 0}, {nil_, "", 0, 0},
		{vic, "?disconnected=true", 8, 6}, {ed, "?disconnected=true", 8, 0},
		{ed, "?object=RouteRule/shop/own", 0, 0},
	} {
		n, in, warning := count(tc.who, tc.query)
		if n != tc.shop+tc.bank || in["shop"] != tc.shop || in["bank"] != tc.bank {
			t.Errorf("%s %q: %d proxies in %v, want %d of shop and %d of bank", tc.who, tc.query, n, in, tc.shop, tc.bank)
		}
		if limited := strings.Contains(warning, "there may be others"); limited != (tc.who != vic) {
			t.Errorf("%s %q: warning %q", tc.who, tc.query, warning)
		}
	}
	w.Want(403, "GET", proxiesPath+"?object=RouteRule/bank/vault", "", ed)

	for _, of := range []string{"here", "far"} {
		for _, tc := range []struct {
			node string
			want map[string]int // by what is asked
		}{
			{nodeIn("sidecar", of, "shop"), map[string]int{"": 200, "/config/all": 200, "/route": 200}},
			{nodeIn("router", of, "shop"), map[string]int{"": 200, "/config/all": 200, "/route": 200}},
			{nodeIn("sidecar", of+"-twice", "shop"), map[string]int{"": 200, "/config/all": 200, "/route": 200}},
			{nodeIn("sidecar", of+"-unknown", "shop"), map[string]int{"": 404, "/config/all": 200, "/route": 200, "/config/all?labels=app=x": 200}},
			{nodeIn("router", of+"-unknown", "shop"), map[string]int{"": 404, "/config/all": 403, "/route": 403, "/config/all?labels=istio=ingressgateway": 403}},
		} {
			for path, want := range tc.want {
				a := w.Want(want, "GET", proxiesPath+"/"+tc.node+path, "", ed)
				if want == http.StatusOK && (strings.Contains(a.Text, "bank") || !strings.Contains(a.Text, `"namespace":"shop"`)) {
					t.Errorf("%s%s: %s", tc.node, path, a.Text)
				}
				w.Want(403, "GET", proxiesPath+"/"+tc.node+path, "", nil_)
			}
		}
		for _, path := range []string{"", "/config/all", "/route", "/route?url=http://x/", "?disconnected=true"} {
			is := w.Want(403, "GET", proxiesPath+"/"+nodeIn("sidecar", of, "bank")+path, "", ed).Text
			isNot := w.Want(403, "GET", proxiesPath+"/"+nodeIn("sidecar", of, "none")+path, "", ed).Text
			if strings.ReplaceAll(is, "bank", "none") != isNot {
				t.Errorf("%q shows what exists:\n%s\n%s", path, is, isNot)
			}
			w.Want(200, "GET", proxiesPath+"/"+nodeIn("sidecar", of, "bank")+path, "", vic)
		}
	}

	// A right to one node by its name, in one namespace.
	made(w, root, roleOf("Role", "bank", "one", `{"apiGroups":["registry.istio.io"],"resources":["proxies","proxies/config"],"resourceNames":["`+nodeIn("sidecar", "here", "bank")+`"],"verbs":["get"]}`))
	made(w, root, bindingOf("RoleBinding", "bank", "ones", "Role", "one", "ed"))
	eventually(w, ed, 200, proxiesPath+"/"+nodeIn("sidecar", "here", "bank")+"/config/all")
	w.Want(403, "GET", proxiesPath+"/"+nodeIn("sidecar", "here", "bank")+"/route", "", ed)
	w.Want(403, "GET", proxiesPath+"/"+nodeIn("sidecar", "far", "bank")+"/config/all", "", ed)
}
