package discovery_test

import (
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pilot-api/pilot-api/credential"
	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/internal/selfsigned"
	"github.com/pilot-api/pilot-api/mesh"
)

// files is a discovery.Files that a test changes.
type files struct {
	mu      sync.Mutex
	holds   map[string]mesh.FileSecret
	changed chan struct{}
}

func (f *files) Secrets() *mesh.FileSecrets {
	f.mu.Lock()
	defer f.mu.Unlock()
	return mesh.NewFileSecrets(f.holds)
}

func (f *files) Changed() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.changed
}

func (f *files) set(name string, secret mesh.FileSecret) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.holds = map[string]mesh.FileSecret{name: secret}
	close(f.changed)
	f.changed = make(chan struct{})
}

// TestFilesArePublished: what changes in files reaches proxies and problems, at the
// revision that there is.
func TestFilesArePublished(t *testing.T) {
	authority := selfsigned.NewAuthority(t, t.TempDir())
	issue := func(host string) mesh.FileSecret {
		certificate, key := authority.PEM(t, host)
		return mesh.FileSecret{Pair: credential.Pair{Certificate: certificate, Key: credential.NewKey(key)}}
	}
	first, second := issue("first.example"), issue("second.example")
	synctest.Test(t, func(t *testing.T) {
		settings := mesh.DefaultSettings()
		settings.SecretFiles = map[string]mesh.SecretFile{"default/a": {CertificateFile: "/a.crt", KeyFile: "/a.key"}}
		from := &files{changed: make(chan struct{})}
		s := follow(t, newObjects(
			object(t, "Gateway", "edge", `{"servers":[{"port":{"number":443,"name":"https","protocol":"HTTPS"},"hosts":["*"],"tls":{"mode":"SIMPLE","credentialName":"a"}}]}`),
			object(t, "VirtualService", "web", `{"hosts":["a.example"],"gateways":["edge"],"http":[{"directResponse":{"status":204}}]}`),
		), discovery.Options{Settings: settings, Files: from})
		const router = "router~10.9.0.7~edge.default~default.svc.cluster.local"
		told := func() string {
			a, err := s.V3Secrets(discovery.Node{ID: router}, "", nil)
			if err != nil {
				t.Fatal(err)
			}
			return string(a.Body)
		}
		if text := told(); strings.Contains(text, "default/a") {
			t.Errorf("before there are files: %s", text)
		}
		for _, secret := range []mesh.FileSecret{first, second} {
			from.set("default/a", secret)
			time.Sleep(pause)
			if text := told(); !strings.Contains(text, strings.Split(secret.Pair.Key.Reveal(), "\n")[1]) || s.Revision() != 1 {
				t.Errorf("at revision %d: %s", s.Revision(), text)
			}
		}
		second.Problem = "keyFile is odd"
		from.set("default/a", second)
		time.Sleep(pause)
		if problems := s.Report().Problems; len(problems) != 1 || !strings.Contains(problems.Error(), "secretFiles[default/a]: keyFile is odd") {
			t.Errorf("problems: %v", problems)
		}
	})
}
