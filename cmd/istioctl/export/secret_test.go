package export_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/cli"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/clitest"
	"github.com/pilot-api/pilot-api/internal/selfsigned"
)

// TestExportHasNoPrivateKeys: an export leaves out a Secret with a private key. With
// --include-secrets it has a placeholder instead of the key, which only a server that has
// the key accepts.
func TestExportHasNoPrivateKeys(t *testing.T) {
	dir := t.TempDir()
	authority := selfsigned.NewAuthority(t, dir)
	authority.Issue(t, "shop.example.com")
	certificate, key := authority.PEM(t, "shop.example.com")
	secret := fmt.Sprintf("apiVersion: registry.istio.io/v1\nkind: Secret\nmetadata: {name: shop}\nspec:\n  certificate: %q\n  privateKey: %q\n", certificate, key)

	server, other := clitest.Start(t), clitest.Start(t)
	clitest.Apply(t, server.URL(), secret+"---\n"+clitest.Rule("one", "v1"))
	export := func(flags ...string) string {
		t.Helper()
		stdout, stderr, code := clitest.Run(t, server.URL(), "", append([]string{"export"}, flags...)...)
		if code != cli.ExitDone {
			t.Fatalf("export %v: exit %d: %s", flags, code, stderr)
		}
		if strings.Contains(stdout, "PRIVATE KEY") {
			t.Errorf("export %v has the key:\n%s", flags, stdout)
		}
		return stdout
	}
	if text := export(); strings.Contains(text, "kind: Secret") || !strings.Contains(text, "kind: RouteRule") {
		t.Errorf("want the RouteRule alone:\n%s", text)
	}
	text := export("--include-secrets")
	if !strings.Contains(text, "privateKey: '(kept: sha256:") && !strings.Contains(text, "privateKey: (kept: sha256:") {
		t.Errorf("no placeholder:\n%s", text)
	}
	if out := clitest.Apply(t, server.URL(), text); !strings.Contains(out, "secret/shop unchanged") {
		t.Errorf("the server that has the key: %s", out)
	}
	if _, stderr, code := clitest.Run(t, other.URL(), text, "apply", "-f", "-"); code != cli.ExitFailed || !strings.Contains(stderr, "privateKey") {
		t.Errorf("a server without the key: exit %d: %s", code, stderr)
	}
}
