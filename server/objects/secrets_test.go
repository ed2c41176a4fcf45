package objects_test

import (
	"github.com/pilot-api/pilot-api/server/servertest"

	"context"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/internal/selfsigned"
	"github.com/pilot-api/pilot-api/server"
	"github.com/pilot-api/pilot-api/store"
	"github.com/pilot-api/pilot-api/store/memory"
)

const secretsPath = "/apis/registry.istio.io/v1/namespaces/default/secrets"

// TestNobodyReadsAKeyBack searches every output of every request for a key.
func TestNobodyReadsAKeyBack(t *testing.T) {
	outside.Slow(t)
	w := servertest.StartReplica(t, memory.New())
	authority := selfsigned.NewAuthority(t, t.TempDir())
	certificate, key := authority.PEM(t, "a.example")
	newCertificate, newKey := authority.PEM(t, "b.example")
	secret := func(annotations map[string]string, certificate, key string) string {
		text, err := json.Marshal(map[string]any{
			"apiVersion": "registry.istio.io/v1", "kind": "Secret", "metadata": map[string]any{"name": "a", "annotations": annotations},
			"spec": map[string]string{"certificate": certificate, "privateKey": key},
		})
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	ask := func(code int, method, path, body string, headers ...string) string {
		t.Helper()
		if body != "" && !strings.HasPrefix(strings.Join(headers, ""), "Content-Type") {
			headers = append(headers, "Content-Type: application/json")
		}
		text := w.Want(code, method, path, body, headers...).Text
		for _, secret := range []string{key, newKey} {
			for line := range strings.Lines(secret) {
				if line = strings.TrimSpace(line); !strings.Contains(line, "-----") && strings.Contains(text, line) {
					t.Errorf("%s %s shows the key", method, path)
				}
			}
		}
		return text
	}
	const merge, list = "Content-Type: application/merge-patch+json", "Content-Type: application/json-patch+json"
	ask(http.StatusCreated, "POST", "/apis/networking.istio.io/v1/namespaces/default/gateways", servertest.Edge)
	ask(http.StatusCreated, "POST", "/apis/networking.istio.io/v1/namespaces/default/virtualservices", servertest.Bound)
	whole := secret(map[string]string{"kubectl.kubernetes.io/last-applied-configuration": secret(nil, certificate, key)}, certificate, key)
	ask(http.StatusCreated, "POST", secretsPath+"?dryRun=All", whole)
	ask(http.StatusOK, "POST", "/apis/registry.istio.io/v1/preview", whole)
	ask(http.StatusCreated, "POST", secretsPath, whole)
	ask(http.StatusConflict, "POST", secretsPath, whole)
	read := func() string { return ask(http.StatusOK, "GET", secretsPath+"/a", "") }
	shown := read()
	if !strings.Contains(shown, "(kept: sha256:") || strings.Count(shown, "(kept: sha256:") != 2 {
		t.Errorf("no marks in %s", shown)
	}
	accepts := []string{"application/json", "application/yaml", "application/json;as=Table;v=v1;g=meta.k8s.io"}
	for _, accept := range accepts {
		for _, path := range []string{secretsPath + "/a", secretsPath, "/apis/registry.istio.io/v1/secrets"} {
			ask(http.StatusOK, "GET", path, "", "Accept: "+accept)
		}
		if !strings.Contains(accept, "yaml") {
			ask(http.StatusOK, "GET", secretsPath+"?watch=true&timeoutSeconds=1&resourceVersion=1", "", "Accept: "+accept)
		}
		ask(http.StatusOK, "GET", secretsPath+"?includeObject=Object", "", "Accept: "+accept)
	}
	// Writing the answer of a read, with a change, keeps the key.
	ask(http.StatusOK, "PUT", secretsPath+"/a", strings.Replace(shown, `"name":"a"`, `"name":"a","labels":{"b":"c"}`, 1))
	ask(http.StatusOK, "PATCH", secretsPath+"/a", `{"metadata":{"labels":{"d":"e"}}}`, merge)
	ask(http.StatusOK, "PATCH", secretsPath+"/a", `[{"op":"add","path":"/metadata/labels/f","value":"g"}]`, list)
	if again := read(); !strings.Contains(again, `"generation":1`) {
		t.Errorf("the key is another one: %s", again)
	}
	// An invalid key is refused, and the error repeats nothing of it.
	quoted, err := json.Marshal(newKey)
	if err != nil {
		t.Fatal(err)
	}
	ask(http.StatusUnprocessableEntity, "PATCH", secretsPath+"/a", `{"spec":{"privateKey":`+string(quoted)+`}}`, merge)
	ask(http.StatusUnprocessableEntity, "PATCH", secretsPath+"/a", `{"spec":{"privateKey":[`+string(quoted)+`]}}`, merge)
	ask(http.StatusUnprocessableEntity, "PATCH", secretsPath+"/a", `{"spec":{"privateKey":"(kept: sha256:0123456789abcdef)"}}`, merge)
	ask(http.StatusUnprocessableEntity, "PATCH", secretsPath+"/a", `{"metadata":{"annotations":{"note":`+string(quoted)+`}}}`, merge)
	ask(http.StatusOK, "PUT", secretsPath+"/a", secret(nil, newCertificate, newKey))
	const router = "router~10.9.9.9~router.default~default.svc.cluster.local"
	at := "/apis/registry.istio.io/v1/proxies/" + router + "/config/"
	for _, path := range []string{"all", "secrets", "all?summary=true", "secrets?summary=true"} {
		text := ask(http.StatusOK, "GET", at+path, "")
		if !strings.Contains(text, "default/a") || !strings.Contains(text, "CN=b.example") {
			t.Errorf("%s: %s", path, text)
		}
	}
	ask(http.StatusOK, "GET", "/debug/problems", "")
	ask(http.StatusOK, "GET", "/metrics", "")
	// A proxy receives it over the socket, but only if its configuration refers to it.
	private := private(w)
	poll := func(node, names string) string {
		return private.Want(http.StatusOK, "POST", "/v3/discovery:secrets", `{"node":{"id":"`+node+`"},"resource_names":[`+names+`]}`, servertest.AsJSON).Text
	}
	if text := ask(http.StatusForbidden, "POST", "/v3/discovery:secrets", `{"node":{"id":"`+router+`"},"resource_names":["default/a"]}`); !strings.Contains(text, "istioctl bootstrap") {
		t.Errorf("over TCP the router is told %s", text)
	}
	line := strings.Split(newKey, "\n")[1]
	if text := poll(router, `"default/a"`); !strings.Contains(text, line) {
		t.Errorf("the router is told %s", text)
	}
	for _, text := range []string{poll(router, `"default/b"`), poll("sidecar~10.1.0.1~a.default~default.svc.cluster.local", `"default/a"`)} {
		if strings.Contains(text, line) {
			t.Errorf("told to whom it does not concern: %s", text)
		}
	}
	// An earlier version is shown with marks, and a rollback restores its key.
	_, after, _ := strings.Cut(shown, `"resourceVersion":"`)
	first, _, _ := strings.Cut(after, `"`)
	if text := ask(http.StatusOK, "GET", secretsPath+"/a/history", ""); strings.Count(text, `"privateKey":"(kept: sha256:`) < 4 {
		t.Errorf("the history is %s", text)
	}
	for _, accept := range accepts[:2] {
		ask(http.StatusOK, "GET", secretsPath+"/a/history/"+first, "", "Accept: "+accept)
	}
	ask(http.StatusOK, "GET", "/apis/registry.istio.io/v1/changes?since="+first, "")
	back := `{"spec":{"revision":` + first + `,"namespace":"default","kind":"Secret","name":"a"}}`
	ask(http.StatusCreated, "POST", servertest.Rollbacks+"?dryRun=All", back)
	ask(http.StatusCreated, "POST", servertest.Rollbacks, back)
	if text := ask(http.StatusOK, "GET", at+"secrets", ""); !strings.Contains(text, "CN=a.example") {
		t.Errorf("after a rollback the secret is %s", text)
	}
	if text := poll(router, `"default/a"`); !strings.Contains(text, strings.Split(key, "\n")[1]) {
		t.Errorf("after a rollback the router is told %s", text)
	}
	ask(http.StatusOK, "DELETE", secretsPath+"/a", "")
	ask(http.StatusUnprocessableEntity, "POST", secretsPath, shown)
}

// private returns a server with the same proxies, which is asked over its private
// listener.
func private(w *servertest.World) *servertest.World {
	w.Helper()
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { os.RemoveAll(dir) })
	socket, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		w.Fatal(err)
	}
	open, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		w.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	s := server.New(server.Options{Store: store.Strict(w.Store), Reads: w.Store, Discovery: w.Discovery})
	go func() { ended <- s.Serve(ctx, open, socket) }()
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket.Addr().String())
	}}}
	w.Cleanup(func() {
		client.CloseIdleConnections()
		cancel()
		if err := <-ended; err != nil {
			w.Error(err)
		}
	})
	out := *w
	out.URL, out.Client = "http://pilot-api", client
	return &out
}

// TestKeysWithheldFromPolls checks that a proxy which polls over TCP receives no
// private key, that its status and the objects behind the key say so, and that
// nothing else changes. Over the socket it receives the key, and the conditions
// clear.
func TestKeysWithheldFromPolls(t *testing.T) {
	w := servertest.StartReplica(t, memory.New())
	authority := selfsigned.NewAuthority(t, t.TempDir())
	certificate, key := authority.PEM(t, "a.example")
	create := func(path, text string) { w.Want(http.StatusCreated, "POST", path, text, servertest.AsJSON) }
	for name, spec := range map[string]map[string]string{
		"a":        {"certificate": certificate, "privateKey": key},
		"a-cacert": {"caCertificates": authority.AuthorityPEM(t)},
	} {
		text, err := json.Marshal(map[string]any{"apiVersion": "registry.istio.io/v1", "kind": "Secret", "metadata": map[string]any{"name": name}, "spec": spec})
		if err != nil {
			t.Fatal(err)
		}
		create(secretsPath, string(text))
	}
	create("/apis/networking.istio.io/v1/namespaces/default/gateways", strings.Replace(servertest.Edge, "SIMPLE", "MUTUAL", 1))
	create("/apis/networking.istio.io/v1/namespaces/default/virtualservices", servertest.Bound)
	create("/apis/networking.istio.io/v1/namespaces/default/serviceentries", declared)
	create("/apis/networking.istio.io/v1/namespaces/default/virtualservices", strings.NewReplacer(`"web"`, `"other"`, `"edge"`, `"mesh"`).Replace(servertest.Bound))

	const router = "router~10.9.9.9~router.default~default.svc.cluster.local"
	version := ""
	poll := func(over *servertest.World, code int, kind, names string) string {
		t.Helper()
		return over.Want(code, "POST", "/v3/discovery:"+kind, `{"version_info":"`+version+`","node":{"id":"`+router+`"},"resource_names":[`+names+`]}`, servertest.AsJSON).Text
	}
	private := private(w)
	w.Want(http.StatusOK, "GET", "/debug/problems", "") // It waits until all of this is published.
	var listeners struct {
		Version string `json:"version_info"`
	}
	if err := json.Unmarshal([]byte(poll(w, http.StatusOK, "listeners", "")), &listeners); err != nil {
		t.Fatal(err)
	}
	version = listeners.Version // The proxy comes back, and counts as one.
	poll(w, http.StatusNotModified, "listeners", "")
	version = ""
	for _, names := range []string{`"default/a"`, `"default/a/ca","default/a"`, ``} {
		if text := poll(w, http.StatusForbidden, "secrets", names); !strings.HasPrefix(text, "private keys are sent only over") || strings.Contains(text, "BEGIN") {
			t.Errorf("%s: %s", names, text)
		}
	}
	status := func() string {
		return w.Want(http.StatusOK, "GET", "/apis/registry.istio.io/v1/proxies/"+router, "").Text
	}
	programmed := func(path string, done func(text string) bool) {
		t.Helper()
		until(w, path, func() (string, bool) {
			text := w.Want(http.StatusOK, "GET", "/apis/"+path, "", "Accept: application/json").Text
			return text, done(text)
		})
	}
	const gateway, withheld = "networking.istio.io/v1/namespaces/default/gateways/edge", "is not sent its secrets: default/a: private keys"
	if text := status(); !strings.Contains(text, `"secrets":{"state":"REJECTED","error":"default/a: private keys are sent only`) {
		t.Errorf("the proxy is %s", text)
	}
	blamed := func(text string) bool { return strings.Contains(text, withheld) }
	programmed(gateway, blamed)
	programmed("registry.istio.io/v1/namespaces/default/secrets/a", blamed)
	programmed("networking.istio.io/v1/namespaces/default/virtualservices/other", func(text string) bool {
		if blamed(text) {
			t.Fatalf("another object is %s", text)
		}
		return strings.Contains(text, `"reason":"NoProxies"`)
	})
	if text := w.Want(http.StatusOK, "GET", "/debug/problems", "").Text; !strings.Contains(text, withheld) {
		t.Errorf("the problems are %s", text)
	}

	if text := poll(private, http.StatusOK, "secrets", `"default/a"`); !strings.Contains(text, "BEGIN PRIVATE KEY") {
		t.Errorf("over the socket: %s", text)
	}
	if text := status(); strings.Contains(text, "private keys") {
		t.Errorf("with the key the proxy is %s", text)
	}
	programmed(gateway, func(text string) bool { return !blamed(text) })
	// Authorities are no secret.
	if text := poll(w, http.StatusOK, "secrets", `"default/a/ca"`); !strings.Contains(text, "BEGIN CERTIFICATE") {
		t.Errorf("the authorities are %s", text)
	}
}

// declared is a service at the host of the VirtualServices.
const declared = `{"apiVersion":"networking.istio.io/v1","kind":"ServiceEntry","metadata":{"name":"a"},"spec":{"hosts":["a.example"],"ports":[{"number":80,"name":"http","protocol":"HTTP"}],"resolution":"DNS"}}`

// until looks repeatedly until it sees what it should.
func until(w *servertest.World, what string, look func() (seen string, done bool)) {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), time.Minute)
	defer cancel()
	for {
		seen, done := look()
		if done {
			return
		}
		if ctx.Err() != nil {
			w.Fatalf("%s stays %s", what, seen)
		}
	}
}
