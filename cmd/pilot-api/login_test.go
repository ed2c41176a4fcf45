package main

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pilot-api/pilot-api/internal/oidcissuer"
	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/internal/testbed"
)

// loggedIn is a server with an issuer, at which people log in with istioctl.
type loggedIn struct {
	*secured
	issuer *oidcissuer.Issuer
	bin    string
}

func startWithIssuer(t *testing.T) *loggedIn {
	t.Helper()
	bin := t.TempDir()
	if err := testbed.Build(bin, "istioctl"); err != nil {
		t.Fatal(err)
	}
	ca := filepath.Join(bin, "issuer.pem")
	issuer := oidcissuer.New(t, ca)
	s := startSecured(t, "--oidc-issuer", issuer.URL, "--oidc-client-id", oidcissuer.ClientID, "--oidc-ca", ca, "--oidc-groups-claim", "groups")
	return &loggedIn{s, issuer, bin}
}

// run runs a program with further variables of its environment.
func (l *loggedIn) run(t *testing.T, program string, environment []string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Dir = l.bin
	cmd.Env = append([]string{"HOME=" + l.bin, "ISTIOCTL_CONFIG=" + filepath.Join(l.bin, "config"), "PATH=" + l.bin + ":" + os.Getenv("PATH")}, environment...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (l *loggedIn) istioctl(t *testing.T, args ...string) (string, error) {
	t.Helper()
	return l.run(t, filepath.Join(l.bin, "istioctl"), nil, args...)
}

// must runs istioctl.
func (l *loggedIn) must(t *testing.T, args ...string) {
	t.Helper()
	if out, err := l.istioctl(t, args...); err != nil {
		t.Fatalf("istioctl %q: %v: %s", args, err, out)
	}
}

// browser writes a program that opens a page as a browser does, and keeps what it shows in a
// file.
func (l *loggedIn) browser(t *testing.T) (program, shows string) {
	t.Helper()
	program, shows = filepath.Join(l.bin, "browser"), filepath.Join(l.bin, "shown")
	script := fmt.Sprintf("#!/bin/sh\nexec curl -sS -L --cacert %s -o %s \"$1\"\n", filepath.Join(l.bin, "issuer.pem"), shows)
	if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	return program, shows
}

// TestIstioctlLogsIn has a person log in at an issuer, by a code and in a browser: the server
// knows them from then on, no other context uses their token, and kubectl uses it as well.
func TestIstioctlLogsIn(t *testing.T) {
	outside.Slow(t)
	l := startWithIssuer(t)
	for _, name := range []string{"prod", "other"} {
		l.must(t, "config", "set-context", name, "--server", "https://"+l.api, "--certificate-authority", l.at("authority.crt"))
	}
	if out, err := l.istioctl(t, "login", "prod", "--exec-credential"); err == nil || !strings.Contains(out, "istioctl login") {
		t.Errorf("a credential without a login: %v: %s", err, out)
	}
	l.must(t, "login", "prod", "--oidc-issuer", l.issuer.URL, "--oidc-client-id", "pilot", "--oidc-ca", "issuer.pem")
	browser, shows := l.browser(t)
	if out, err := l.run(t, filepath.Join(l.bin, "istioctl"), []string{"BROWSER=" + browser}, "login", "prod"); err != nil || strings.Contains(out, "code ") {
		t.Fatalf("in a browser: %v: %s", err, out)
	}
	if shown, err := os.ReadFile(shows); err != nil || !strings.Contains(string(shown), "terminal") {
		t.Errorf("the browser shows %q, %v", shown, err)
	}
	if out, err := l.istioctl(t, "whoami", "--context", "prod"); err != nil || !strings.Contains(out, l.issuer.URL+"#eve") || !strings.Contains(out, "shop") {
		t.Errorf("%v: %s", err, out)
	}
	if out, err := l.istioctl(t, "whoami", "--context", "other"); err == nil || strings.Contains(out, "eve") {
		t.Errorf("another context: %s", out)
	}
	if out, err := l.istioctl(t, "get", "routerules", "--context", "prod"); err == nil || !strings.Contains(out, "eve") {
		t.Errorf("without a role: %v: %s", err, out)
	}
	t.Run("kubectl", func(t *testing.T) { l.kubectlUsesTheLogin(t) })
}

// kubeconfig writes a file with a user, and returns its name.
func (l *loggedIn) kubeconfig(t *testing.T, user string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://%s", certificate-authority: %s}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
current-context: c
users: [{name: u, user: {%s}}]
`, l.api, l.at("authority.crt"), user)
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// kubectlUsesTheLogin has an unmodified kubectl send tokens of the issuer, of istioctl as its
// credential plugin and of a kubeconfig, while the issuer replaces its key. The groups of the
// token give the rights, and no request fails.
func (l *loggedIn) kubectlUsesTheLogin(t *testing.T) {
	kubectl := outside.Tool(t, "kubectl")
	binding := `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding","metadata":{"name":"shop"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"view"},
		"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"Group","name":"shop"}]}`
	if a := l.send(t, l.client(t, ""), http.MethodPost, l.api, "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings", binding, adasToken); a.StatusCode != http.StatusCreated {
		t.Fatal(a.text)
	}
	plugin := l.kubeconfig(t, fmt.Sprintf(`exec: {apiVersion: client.authentication.k8s.io/v1, command: %s, args: [login, prod, --exec-credential], interactiveMode: Never}`, filepath.Join(l.bin, "istioctl")))
	old := l.kubeconfig(t, "token: "+l.issuer.Token(nil))
	ask := func(config string, args ...string) (string, error) {
		return l.run(t, kubectl, nil, append([]string{"--kubeconfig", config}, args...)...)
	}
	for _, config := range []string{plugin, old} {
		if out, err := ask(config, "auth", "whoami"); err != nil || !strings.Contains(out, l.issuer.URL+"#eve") || !strings.Contains(out, "shop") {
			t.Errorf("whoami: %v: %s", err, out)
		}
		if out, err := ask(config, "get", "routerules"); err != nil {
			t.Errorf("in the namespace of the role: %v: %s", err, out)
		}
		if out, err := ask(config, "get", "routerules", "-n", "bank"); err == nil || !strings.Contains(out, "Forbidden") || !strings.Contains(out, "#eve") {
			t.Errorf("in another namespace: %v: %s", err, out)
		}
	}
	// The server asks for keys once in ten seconds, so the new one is published before it signs.
	l.issuer.Publish(t)
	for published := time.Now(); time.Since(published) < 11*time.Second; {
		for _, config := range []string{plugin, old} {
			if out, err := ask(config, "get", "routerules"); err != nil {
				t.Fatalf("while the new key is published: %v: %s", err, out)
			}
		}
	}
	l.issuer.Sign()
	for range 3 {
		for _, config := range []string{plugin, old, l.kubeconfig(t, "token: "+l.issuer.Token(nil))} {
			if out, err := ask(config, "get", "routerules"); err != nil {
				t.Fatalf("after the new key signs: %v: %s", err, out)
			}
		}
	}
	stranger := oidcissuer.New(t, filepath.Join(t.TempDir(), "ca.pem"))
	forged := l.kubeconfig(t, "token: "+stranger.Token(map[string]any{"iss": l.issuer.URL}))
	if out, err := ask(forged, "get", "routerules"); err == nil || !strings.Contains(out, "Unauthorized") && !strings.Contains(out, "logged in") {
		t.Errorf("a token under a foreign key: %v: %s", err, out)
	}
}
