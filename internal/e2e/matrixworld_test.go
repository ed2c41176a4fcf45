package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/internal/selfsigned"
	"github.com/pilot-api/pilot-api/internal/testbed"
)

const rbacAPI = "rbac.authorization.k8s.io/v1"

// person is an identity that both servers are asked about.
type person struct {
	Name   string
	Groups []string
}

func (p person) String() string {
	if len(p.Groups) == 0 {
		return p.Name
	}
	return p.Name + " of " + strings.Join(p.Groups, ", ")
}

// authority is one of the two servers that are compared.
type authority struct {
	name   string
	url    string
	client *http.Client
}

// outcome is what a server answers.
type outcome struct {
	code int
	text []byte
}

// request is what both servers are asked.
type request struct {
	token  string  // "" for that of root
	as     *person // nil for the sender itself
	method string
	path   string
	media  string // the type of the body
	body   []byte
}

// do sends a request.
func (a authority) do(ctx context.Context, r request) (outcome, error) {
	req, err := http.NewRequestWithContext(ctx, r.method, a.url+r.path, bytes.NewReader(r.body))
	if err != nil {
		return outcome{}, err
	}
	if r.token == "" {
		r.token = tokenOf("root")
	}
	req.Header.Set("Authorization", "Bearer "+r.token)
	if r.body != nil {
		req.Header.Set("Content-Type", r.media)
	}
	if r.as != nil {
		if r.as.Name != "" {
			req.Header.Set("Impersonate-User", r.as.Name)
		}
		for _, group := range r.as.Groups {
			req.Header.Add("Impersonate-Group", group)
		}
	}
	resp, err := a.client.Do(req)
	if err != nil {
		return outcome{}, fmt.Errorf("%s: %w", a.name, err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return outcome{resp.StatusCode, text}, err
}

// pair has this server and a kube-apiserver, with the same roles and bindings.
type pair struct {
	ours, theirs authority
}

// both sends a request to both servers.
func (p pair) both(ctx context.Context, r request) (ours, theirs outcome, err error) {
	if ours, err = p.ours.do(ctx, r); err != nil {
		return ours, theirs, err
	}
	theirs, err = p.theirs.do(ctx, r)
	return ours, theirs, err
}

// openPair starts both servers. They end with the test, which is skipped if there is no
// kube-apiserver.
func openPair(t *testing.T) pair {
	t.Helper()
	o := testbed.KubernetesOptions{
		Server: outside.Optional(t, "kube-apiserver", "make matrix"), Aggregation: outside.Optional(t, "kube-aggregation", "make matrix"),
		Token: tokenOf("root"),
	}
	dir := t.TempDir()
	o.Tokens = filepath.Join(dir, "tokens")
	if err := os.WriteFile(o.Tokens, tokenFile(), 0o600); err != nil {
		t.Fatal(err)
	}
	selfsigned.NewAuthority(t, dir).Issue(t, "127.0.0.1")
	o.Authority, o.Certificate, o.Key = filepath.Join(dir, "authority.crt"), filepath.Join(dir, "127.0.0.1.crt"), filepath.Join(dir, "127.0.0.1.key")
	o.Etcd = startEtcd(t).URL()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 2*patience)
	defer cancel()
	kubernetes, err := testbed.StartKubernetes(ctx, dir, o)
	if kubernetes != nil {
		t.Cleanup(func() {
			if err := kubernetes.Close(); err != nil {
				t.Error(err)
			}
			if t.Failed() {
				t.Logf("kube-apiserver:\n%s", kubernetes.Server.Tail())
			}
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	pilot := openPilot(t, "--data-dir", t.TempDir(), "--token-file", o.Tokens)
	return pair{
		ours:   authority{"pilot-api", pilot.URL, &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16}}},
		theirs: authority{"kube-apiserver", kubernetes.URL, kubernetes.Client},
	}
}

// tokenFile returns the tokens of root and of the senders, which both servers know.
func tokenFile() []byte {
	lines := tokenOf("root") + ",root,1,system:masters\n"
	for _, name := range senders {
		lines += tokenOf(name) + "," + name + ",1\n"
	}
	return []byte(lines)
}

// manifest is a role or binding.
type manifest map[string]any

func (m manifest) kind() string     { return m["kind"].(string) }
func (m manifest) meta() manifest   { return m["metadata"].(map[string]any) }
func (m manifest) name() string     { return m.meta()["name"].(string) }
func (m manifest) isCluster() bool  { return strings.HasPrefix(m.kind(), "Cluster") }
func (m manifest) resource() string { return strings.ToLower(m.kind()) + "s" }

func (m manifest) namespace() string {
	namespace, _ := m.meta()["namespace"].(string)
	return namespace
}

// collection returns the path of the collection of the object.
func (m manifest) collection() string { return rbacPath(m.resource(), m.namespace()) }

// rbacPath returns the path of a resource of roles, in a namespace or, with "", in all.
func rbacPath(resource, namespace string) string {
	path := "/apis/" + rbacAPI
	if namespace != "" {
		path += "/namespaces/" + namespace
	}
	return path + "/" + resource
}

func (m manifest) json() []byte {
	m["apiVersion"] = rbacAPI
	text, err := json.Marshal(m)
	if err != nil {
		panic(err) // It was read from YAML.
	}
	return text
}

// copied returns a copy, to change.
func (m manifest) copied() manifest {
	var out manifest
	if err := json.Unmarshal(m.json(), &out); err != nil {
		panic(err) // It was written a moment ago.
	}
	return out
}

// parseManifest reads one object from YAML.
func parseManifest(t *testing.T, text string) manifest {
	t.Helper()
	var m manifest
	if err := yaml.Unmarshal([]byte(text), &m); err != nil || m["kind"] == nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return m
}

// readManifests reads the objects of a file.
func readManifests(t *testing.T, file string) (out []manifest) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "matrix", file))
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range strings.Split(string(text), "\n---\n") {
		out = append(out, parseManifest(t, one))
	}
	return out
}

// bindingTo returns a binding of a role to a user, in a namespace or, with "", everywhere.
func bindingTo(name, namespace, roleKind, role, user string) manifest {
	kind, meta := "ClusterRoleBinding", map[string]any{"name": name}
	if namespace != "" {
		kind, meta["namespace"] = "RoleBinding", namespace
	}
	return manifest{
		"kind": kind, "metadata": meta,
		"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": roleKind, "name": role},
		"subjects": []any{map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}},
	}
}

// store writes objects to both servers.
func (p pair) store(t *testing.T, objects ...manifest) {
	t.Helper()
	for _, o := range objects {
		ours, theirs, err := p.both(t.Context(), request{method: "POST", path: o.collection(), media: "application/json", body: o.json()})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range []outcome{ours, theirs} {
			if r.code != http.StatusCreated {
				t.Fatalf("%s %s: %d %s", o.kind(), o.name(), r.code, r.text)
			}
		}
	}
}
