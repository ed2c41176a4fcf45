package server_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/server/servertest"
)

// objectText returns the JSON of an object.
func objectText(kind, namespace, name, spec string) string {
	k, _ := schema.KindByName(kind)
	return fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"name":%q,"namespace":%q},"spec":%s}`, k.APIVersion(), kind, name, namespace, spec)
}

// TestObjectsOfOthersAreNotNamed has an editor of the namespace shop write objects that meet
// objects of the namespace bank, which the editor may not read. No answer names those: no
// warning of any way to write, no status, problem, preview or refusal. A user who may read them
// sees the names in warnings and problems.
func TestObjectsOfOthersAreNotNamed(t *testing.T) {
	w := governed(t)
	const hidden = "s3cret"
	const entry = `{"hosts":["vault.example.com"],"ports":[{"number":80,"name":"http","protocol":"HTTP"}],"resolution":"STATIC","endpoints":[{"address":"10.0.0.9"}]}`
	made(w, root, objectText("ServiceEntry", "bank", hidden+"-entry", entry))
	made(w, root, objectText("Gateway", "bank", hidden+"-edge", `{"selector":{"istio":"edge"},"servers":[{"port":{"number":80,"name":"tcp","protocol":"TCP"},"hosts":["*"]}]}`))
	made(w, root, objectText("Sidecar", "shop", "all", `{"egress":[{"hosts":["*/*"]}]}`))
	own := map[string]string{
		"VirtualService":  `{"hosts":["vault.example.com"],"http":[{"route":[{"destination":{"host":"vault.example.com"}}]}]}`,
		"DestinationRule": `{"host":"vault.example.com"}`,
		"EgressRule":      `{"destination":{"service":"vault.example.com"},"ports":[{"port":80,"protocol":"http"}]}`,
		"Gateway":         `{"selector":{"istio":"edge"},"servers":[{"port":{"number":80,"name":"http","protocol":"HTTP"},"hosts":["*"]}]}`,
	}
	clean := func(what string, a servertest.Answer) servertest.Answer {
		t.Helper()
		if text := a.Text + strings.Join(a.Header.Values("Warning"), "\n"); strings.Contains(text, hidden) {
			t.Errorf("%s shows what may not be read: %s", what, text)
		}
		return a
	}
	for _, kind := range []string{"VirtualService", "DestinationRule", "EgressRule"} {
		if a := clean(kind, post(w, ed, objectText(kind, "shop", "own", own[kind]), "")); a.StatusCode != http.StatusForbidden {
			t.Errorf("%s: %d %s", kind, a.StatusCode, a.Text)
		}
	}
	made(w, root, roleOf("Role", "bank", "guests", `{"apiGroups":["networking.istio.io"],"resources":["serviceentries"],"verbs":["route"]},
		{"apiGroups":["networking.istio.io"],"resources":["gateways"],"resourceNames":["none"],"verbs":["get"]}`))
	made(w, root, bindingOf("RoleBinding", "bank", "guests", "Role", "guests", "ed"))
	eventually(w, ed, 404, pathOf("Gateway", "bank")+"/none") // It sees the role.

	const unread = "because of an object of another namespace that you may not read"
	merge, apply := "Content-Type: application/merge-patch+json", servertest.ApplyPatch
	for kind, spec := range own {
		path, text := pathOf(kind, "shop"), objectText(kind, "shop", "own", spec)
		other := strings.Replace(text, `"name":"own"`, `"name":"own","labels":{"a":"b"}`, 1)
		in := func(verb, object string) string {
			return servertest.Transaction(fmt.Sprintf(`{"verb":%q,"object":%s}`, verb, object))
		}
		for _, door := range []struct {
			what, method, path, body, media string
			code                            int
		}{
			{"a dry run", "POST", path + "?dryRun=All", text, servertest.AsJSON, 201},
			{"a create", "POST", path, text, servertest.AsJSON, 201},
			{"an update", "PUT", path + "/own", other, servertest.AsJSON, 200},
			{"a patch", "PATCH", path + "/own", `{"metadata":{"labels":{"a":"c"}}}`, merge, 200},
			{"an apply", "PATCH", path + "/own?fieldManager=me&force=true", other, apply, 200},
			{"a transaction", "POST", servertest.Transactions, in("update", text), servertest.AsJSON, 201},
			{"a dry transaction", "POST", servertest.Transactions + "?dryRun=All", in("update", other), servertest.AsJSON, 201},
		} {
			a := clean(kind+": "+door.what, w.Do(door.method, door.path, door.body, ed, door.media))
			if a.StatusCode != door.code {
				t.Errorf("%s: %s: %d %s", kind, door.what, a.StatusCode, a.Text)
			}
			if warned := strings.Join(a.Header.Values("Warning"), "\n"); !strings.Contains(warned, unread) {
				t.Errorf("%s: %s warns %q", kind, door.what, warned)
			}
		}
		if a := w.Do("PUT", path+"/own?dryRun=All", other, root, servertest.AsJSON); !strings.Contains(strings.Join(a.Header.Values("Warning"), "\n"), hidden) {
			t.Errorf("%s: root is warned %q", kind, a.Header.Values("Warning"))
		}
	}

	w.Want(200, "GET", "/debug/problems", "", root) // It waits until everything is compiled.
	for kind, spec := range own {
		path := pathOf(kind, "shop")
		w.Want(200, "GET", path+"/own?freshStatus=true", "", ed)
		for _, what := range []string{"/own", "/own?freshStatus=true", "/own/status", "", "?includeObject=Object", "/own/history"} {
			for _, who := range []string{ed, root} {
				clean(kind+what, w.Want(200, "GET", path+what, "", who, "Accept: application/json;as=Table;g=meta.k8s.io;v=v1,application/json"))
				a := clean(kind+what, w.Want(200, "GET", path+what, "", who))
				if what == "/own?freshStatus=true" && !strings.Contains(a.Text, "because of an object of another namespace, which 'istioctl problems' names") {
					t.Errorf("%s: the status is %s", kind, a.Text)
				}
			}
		}
		clean(kind+" preview", w.Want(200, "POST", "/apis/registry.istio.io/v1/preview", objectText(kind, "shop", "own-2", spec), ed, servertest.AsJSON))
		clean(kind+" references", w.Want(200, "GET", "/apis/registry.istio.io/v1/references?object="+kind+"/shop/own", "", ed))
	}
	for _, path := range []string{"/debug/problems", "/debug/problems?namespace=shop", "/debug/problems?api=v1"} {
		if a := clean(path, w.Want(200, "GET", path, "", ed)); strings.Count(a.Text, unread) < len(own) {
			t.Errorf("%s: %s", path, a.Text)
		}
		if a := w.Want(200, "GET", path, "", vic); strings.Contains(a.Text, unread) || !strings.Contains(a.Text, hidden) {
			t.Errorf("%s for a user who may read all: %s", path, a.Text)
		}
	}
}

// TestGeneralMessages checks the message in place of one with names, for every code.
func TestGeneralMessages(t *testing.T) {
	for _, m := range diag.Messages {
		p := diag.Problem{Code: m.Code, Message: "VirtualService bank/vault is first"}.General("an object that you may not read")
		if len(p.Names()) > 0 || !strings.HasSuffix(p.Message, ", because of an object that you may not read") || strings.Contains(p.Message, ".,") {
			t.Errorf("%s: %s", m.Code, p.Message)
		}
	}
}
