package export_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/cli"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/clitest"
	"github.com/pilot-api/pilot-api/cmd/istioctl/root"
	"github.com/pilot-api/pilot-api/internal/meshgen"
	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/internal/selfsigned"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
	"github.com/pilot-api/pilot-api/store/etcd"
	"github.com/pilot-api/pilot-api/store/etcd/etcdtest"
	"github.com/pilot-api/pilot-api/store/memory"
)

// TestExportComesBack: what is exported of one server and applied to an empty one
// makes the same objects there, of whatever kind, by a file and by a folder.
func TestExportComesBack(t *testing.T) {
	outside.Slow(t)
	authority := selfsigned.NewAuthority(t, t.TempDir()).AuthorityPEM(t)
	db := etcdtest.Start(t).Client()
	stores, seen := 0, make(map[string]bool)
	rapid.Check(t, func(t *rapid.T) {
		var from, byFile, byFolder store.Interface
		for _, s := range []*store.Interface{&from, &byFile, &byFolder} {
			stores++
			*s = etcd.New(db, fmt.Sprintf("/store-%d", stores), slog.New(slog.DiscardHandler))
		}
		for _, o := range append(meshgen.Objects(t), authorities(t, authority), securityObject(t, schema.KindAuthorizationPolicy), securityObject(t, schema.KindPeerAuthentication), securityObject(t, schema.KindRequestAuthentication)) {
			o = elsewhere(t, o)
			if schema.Validate(o).Err() != nil {
				continue // As one of an older version may be; it is right again before it is written.
			}
			if _, err := from.Create(t.Context(), o); err != nil {
				t.Fatal(err)
			}
			seen[o.Kind.Kind] = true
		}
		dir, err := os.MkdirTemp("", "export")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		for output, to := range map[string]store.Interface{"all.yaml": byFile, "all/": byFolder} {
			output = dir + "/" + output
			runOn(t, from, "export", "-A", "-o", output)
			runOn(t, to, "apply", "-R", "-f", output)
			if got, want := list(t, to), list(t, from); got != want {
				t.Fatalf("applied from %s:\n%s\nwant\n%s", output, got, want)
			}
		}
	})
	for _, kind := range schema.MeshKinds() {
		if !seen[kind.Kind] {
			t.Errorf("no %s was drawn", kind.Kind)
		}
	}
}

// authorities is a Secret that has no key.
func authorities(t *rapid.T, authority string) *schema.Object {
	kind, _ := schema.KindByName("Secret")
	o, problems := schema.Decode(fmt.Appendf(nil, "apiVersion: %s\nkind: Secret\nmetadata: {name: authorities}\nspec: {caCertificates: %q}\n",
		kind.APIVersion(), authority), schema.Options{})
	if o == nil {
		t.Fatal(problems.Err())
	}
	return o
}

// securityObject is an object of a kind of which meshgen draws none.
func securityObject(t *rapid.T, kind string) *schema.Object {
	specs := map[string][]string{
		schema.KindAuthorizationPolicy:   {"{}", "{action: DENY, rules: [{to: [{operation: {paths: ['/a*', '/{*}/b']}}]}]}", "{rules: [{when: [{key: 'request.headers[x]', values: ['1', 'yes']}]}]}"},
		schema.KindPeerAuthentication:    {"{}", "{mtls: {mode: STRICT}}", "{selector: {matchLabels: {a: b}}, portLevelMtls: {'80': {mode: DISABLE}}}"},
		schema.KindRequestAuthentication: {"{}", "{jwtRules: [{issuer: 'https://a.example', fromHeaders: [{name: x, prefix: 'JWT '}], outputClaimToHeaders: [{header: y, claim: a.b}]}]}"},
	}[kind]
	of, _ := schema.KindByName(kind)
	o, problems := schema.Decode(fmt.Appendf(nil, "apiVersion: %s\nkind: %s\nmetadata: {name: drawn}\nspec: %s\n",
		of.APIVersion(), kind, rapid.SampledFrom(specs).Draw(t, kind)), schema.Options{})
	if o == nil {
		t.Fatal(problems.Err())
	}
	return o
}

// elsewhere is an object in one of two namespaces, with words that YAML takes for
// something else.
func elsewhere(t *rapid.T, o *schema.Object) *schema.Object {
	meta := o.Meta
	meta.Namespace = rapid.SampledFrom([]string{"default", "books"}).Draw(t, "namespace")
	meta.Annotations = map[string]string{"note": rapid.OneOf(
		rapid.SampledFrom([]string{"yes", "~", "0x1F", "1e3", "- a\n# b\n", "a: b", "---\n", " x ", "\ttab", "\u2028", "\u007f\u0080\u0085\ufeff\uffff\U0010ffff"}), rapid.StringN(0, 20, -1)).Draw(t, "note")}
	moved, err := o.WithMeta(meta)
	if err != nil {
		t.Fatal(err)
	}
	return moved
}

// list is what is stored, without what a server sets.
func list(t *rapid.T, s store.Interface) string {
	l, err := s.List(t.Context(), store.Scope{}, store.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, o := range l.Items {
		fmt.Fprintf(&text, "%s %q %q %s\n", o.Key(), o.Meta.Labels, o.Meta.Annotations, o.SpecJSON())
	}
	return text.String()
}

func runOn(t *rapid.T, s store.Interface, args ...string) {
	srv := httptest.NewServer(clitest.NewServer(s).Handler())
	defer srv.Close()
	var out, errs bytes.Buffer
	c := &cli.Program{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, Getenv: clitest.Env(srv.URL)}
	if code := root.Run(t.Context(), c, args); code != cli.ExitDone {
		t.Fatalf("istioctl %s: exit %d\n%s%s", strings.Join(args, " "), code, &errs, &out)
	}
}

// TestExportIsOneState: what is written between two pages is in none of them.
func TestExportIsOneState(t *testing.T) {
	server := clitest.Start(t)
	clitest.Apply(t, server.URL(), clitest.ManyRules(cli.PageSize+1))
	pages := 0
	handler := clitest.NewServer(server.Store).Handler()
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("continue") {
			pages++
			clitest.Apply(t, server.URL(), clitest.Rule(fmt.Sprintf("z%d", pages), "v1"))
		}
		handler.ServeHTTP(w, r)
	}))
	defer front.Close()
	var out, errs bytes.Buffer
	c := &cli.Program{Stdout: &out, Stderr: &errs, Getenv: clitest.Env(front.URL), StderrIsTerminal: true}
	if code := root.Run(t.Context(), c, []string{"export"}); code != cli.ExitDone {
		t.Fatalf("exit %d: %s", code, &errs)
	}
	if n := strings.Count(out.String(), "kind: RouteRule"); pages == 0 || n != cli.PageSize+1 || strings.Contains(out.String(), "name: z1") {
		t.Errorf("%d objects in %d further pages", n, pages)
	}
	if !strings.Contains(errs.String(), fmt.Sprintf("\r\033[K%d objects", cli.PageSize)) {
		t.Errorf("no progress in %q", &errs)
	}
}

// lossy is a store with a value that cannot be read.
type lossy struct{ *memory.Store }

func (lossy) Unreadable(scope store.Scope) []store.Unreadable {
	u := store.Unreadable{Key: schema.Key{Kind: "Gateway", Namespace: "default", Name: "edge"}, Place: "a", Revision: 1, Why: "a bit was flipped"}
	if !scope.Contains(u.Key) {
		return nil
	}
	return []store.Unreadable{u}
}

// TestExportIsWholeOrNone: an export without an object that is stored is no backup.
func TestExportIsWholeOrNone(t *testing.T) {
	api := httptest.NewServer(clitest.NewServer(lossy{memory.New()}).Handler())
	t.Cleanup(api.Close)
	file := filepath.Join(t.TempDir(), "all.yaml")
	_, stderr, code := clitest.Run(t, api.URL, "", "export", "-A", "-o", file)
	if _, err := os.Stat(file); code != 1 || !errors.Is(err, fs.ErrNotExist) || !strings.Contains(stderr, "Gateway default/edge") || !strings.Contains(stderr, "nothing was written") {
		t.Errorf("code %d, file: %v\n%s", code, err, stderr)
	}
	if _, stderr, code := clitest.Run(t, api.URL, "", "export", "-n", "other"); code != 0 {
		t.Errorf("another namespace: code %d\n%s", code, stderr)
	}
	if _, stderr, _ := clitest.Run(t, api.URL, "", "get", "gateways"); !strings.Contains(stderr, "Gateway default/edge") {
		t.Errorf("get says nothing of it: %s", stderr)
	}
}
