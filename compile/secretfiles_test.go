package compile_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/compile"
	"github.com/pilot-api/pilot-api/credential"
	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/internal/selfsigned"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

const filedEdge = `
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: edge}
spec:
  servers:
  - port: {number: 443, name: https, protocol: HTTPS}
    hosts: [a.example]
    tls: {mode: SIMPLE, credentialName: filed}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: hosts}
spec:
  hosts: [a.example]
  gateways: [edge]
  http: [{directResponse: {status: 204}}]
`

// filed is a mesh of which one secret is in files.
type filed struct {
	t         *testing.T
	authority *selfsigned.Authority
	compiler  *compile.Compiler
	snapshot  *mesh.Snapshot
	view      mesh.Traits
}

func openFiled(t *testing.T) *filed {
	settings := mesh.DefaultSettings()
	settings.SecretFiles = map[string]mesh.SecretFile{"default/filed": {CertificateFile: "/a.crt", KeyFile: "/a.key"}}
	m := &filed{
		t: t, authority: selfsigned.NewAuthority(t, t.TempDir()), compiler: compile.NewCompiler(),
		snapshot: mesh.NewSnapshot(1, settings, objects(t, filedEdge)),
	}
	m.view = m.snapshot.TraitsOf(proxy(t, "router~10.9.9.9~edge.default~default.svc.cluster.local"))
	return m
}

func (m *filed) issue() credential.Pair {
	certificate, key := m.authority.PEM(m.t, "a.example")
	return credential.Pair{Certificate: certificate, Key: credential.NewKey(key)}
}

// compile is what follows when the files hold this, which is the same as if nothing
// had been before.
func (m *filed) compile(holds mesh.FileSecret, changes ...schema.Change) (*ir.Config, diag.List) {
	m.t.Helper()
	m.snapshot = m.snapshot.Next(m.snapshot.Revision, changes).
		WithFiles(mesh.NewFileSecrets(map[string]mesh.FileSecret{"default/filed": holds}))
	m.compiler.Advance(m.snapshot)
	config, own := m.compiler.Proxy(m.view)
	problems := append(m.compiler.Problems(), own...)
	fresh, all := compile.Proxy(m.snapshot, m.view)
	for _, list := range []diag.List{problems, all} {
		slices.SortFunc(list, func(a, b diag.Problem) int { return strings.Compare(a.String(), b.String()) })
	}
	if config.String() != fresh.String() || problems.Error() != all.Error() {
		m.t.Errorf("step by step it is\n%s\n%s\nand from scratch\n%s\n%s", config, problems.Error(), fresh, all.Error())
	}
	return config, problems
}

func TestSecretFromFiles(t *testing.T) {
	m := openFiled(t)
	first, second := m.issue(), m.issue()
	closed, problems := m.compile(mesh.FileSecret{Problem: "keyFile is empty"})
	if len(closed.Secrets) > 0 || !strings.Contains(problems.Error(), "secretFiles[default/filed]: keyFile is empty") ||
		!strings.Contains(problems.Error(), "secretFiles of the mesh settings has files for default/filed, and they cannot be used") {
		t.Errorf("without files: %s, problems %v", closed, problems)
	}
	before, problems := m.compile(mesh.FileSecret{Pair: first})
	if len(before.Secrets) != 1 || !before.Secrets[0].Key.Equal(first.Key) || len(problems) > 0 {
		t.Fatalf("with files: %s, problems %v", before, problems)
	}
	after, problems := m.compile(mesh.FileSecret{Pair: second, Problem: "keyFile is odd"})
	if !after.Secrets[0].Key.Equal(second.Key) || len(problems) != 1 {
		t.Errorf("with other files: %s, problems %v", after, problems)
	}
	for i, l := range after.Listeners {
		if l != before.Listeners[i] {
			t.Errorf("listener at port %d is another one", l.Port)
		}
	}
}

// TestSecretFileBeforeSecret: what the settings name in files comes from nowhere else,
// and the object says so.
func TestSecretFileBeforeSecret(t *testing.T) {
	m := openFiled(t)
	own, other := m.issue(), m.issue()
	object := objectIn(t, "default", "Secret", "filed", spec{"certificate": other.Certificate, "privateKey": other.Key.Reveal()})
	config, problems := m.compile(mesh.FileSecret{Pair: own}, schema.Change{After: object})
	if len(config.Secrets) != 1 || !config.Secrets[0].Key.Equal(own.Key) {
		t.Errorf("the secret is not that of the files: %v", config.Secrets)
	}
	if len(problems) != 1 || problems[0].Object != object.Key().Ref() || !strings.Contains(problems[0].Message, "secretFiles") {
		t.Errorf("problems: %v", problems)
	}
	if config, _ = m.compile(mesh.FileSecret{}); len(config.Secrets) > 0 {
		t.Errorf("files that are no good are replaced by an object: %v", config.Secrets)
	}
}
