package main

import (
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/internal/testbed"
)

// TestIstioctlRevokesTokens revokes one token of an account: its running watch ends, it proves
// nothing any more, and another token of the account still does.
func TestIstioctlRevokesTokens(t *testing.T) {
	outside.Slow(t)
	bin := t.TempDir()
	if err := testbed.Build(bin, "istioctl"); err != nil {
		t.Fatal(err)
	}
	s := startSecured(t, "--audit-log", filepath.Join(bin, "audit.log"))
	s.account(t, "ci")
	binding := `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding","metadata":{"name":"ci"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"edit"},
		"subjects":[{"kind":"ServiceAccount","namespace":"shop","name":"ci"}]}`
	if a := s.send(t, s.client(t, "bob"), http.MethodPost, s.api, "/apis/rbac.authorization.k8s.io/v1/namespaces/shop/rolebindings", binding, ""); a.StatusCode != http.StatusCreated {
		t.Fatal(a.text)
	}
	run := func(args ...string) (stdout, stderr string, err error) {
		var out, errs strings.Builder
		cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "istioctl"), append(args, "--server", "https://"+s.api, "--certificate-authority", s.at("authority.crt"))...)
		cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = bin, []string{"HOME=" + bin}, &out, &errs
		err = cmd.Run()
		return out.String(), errs.String(), err
	}
	bob := []string{"--client-certificate", s.at("bob.crt"), "--client-key", s.at("bob.key"), "-n", "shop"}
	create := func(file string) (token, says string) {
		token, says, err := run(append([]string{"token", "create", "ci"}, bob...)...)
		if err == nil {
			err = os.WriteFile(filepath.Join(bin, file), []byte(token), 0o600)
		}
		if err != nil {
			t.Fatal(err, says)
		}
		return strings.TrimSpace(token), says
	}
	bad, _ := create("bad.token")
	good, says := create("good.token")
	const shop = "/apis/config.istio.io/v1alpha2/namespaces/shop/routerules"
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+s.api+shop+"?watch=true", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+bad)
	watch, err := s.client(t, "").Do(r)
	if err != nil || watch.StatusCode != http.StatusOK {
		t.Fatal(watch, err)
	}
	defer watch.Body.Close()
	if out, says, err := run("token", "revoke", "--from", "bad.token", "--token-file", "good.token"); err == nil || !strings.Contains(says, `cannot delete resource "serviceaccounts/token"`) {
		t.Errorf("an account that may not revoke: %v %s%s", err, out, says)
	}
	if out, says, err := run(append([]string{"token", "revoke", "--from", "bad.token"}, bob...)...); err != nil || !strings.Contains(out, "of serviceaccount/ci revoked in namespace shop") {
		t.Fatal(err, out, says)
	}
	_, _ = io.ReadAll(watch.Body) // It returns when the watch ends.
	if a := s.get(t, s.api, shop, bad, ""); a.StatusCode != http.StatusUnauthorized || !strings.Contains(a.text, "revoked") {
		t.Errorf("the revoked token: %d %s", a.StatusCode, a.text)
	}
	if a := s.send(t, s.client(t, ""), http.MethodDelete, s.api, shop+"/none", "", good); a.StatusCode != http.StatusNotFound {
		t.Errorf("another token of the account: %d %s", a.StatusCode, a.text)
	}
	id := s.tokenID(t, good)
	if !strings.Contains(says, id) {
		t.Errorf("the ID %s is not in %q", id, says)
	}
	for _, tc := range []struct{ account, id string }{{"ci", "x"}, {"nobody", id}} {
		if out, says, err := run(append([]string{"token", "revoke", tc.account, tc.id}, bob...)...); err == nil || !strings.Contains(says, "no token can have") {
			t.Errorf("%v: %v %s%s", tc, err, out, says)
		}
	}
	if out, says, err := run(append([]string{"token", "revoke", "ci", id}, bob...)...); err != nil {
		t.Fatal(err, out, says)
	}
	if a := s.get(t, s.api, shop, good, ""); a.StatusCode != http.StatusUnauthorized {
		t.Errorf("revoked by its ID: %d", a.StatusCode)
	}
	audited, err := os.ReadFile(filepath.Join(bin, "audit.log"))
	if err != nil || !strings.Contains(string(audited), `"verb":"delete","resource":"serviceaccounts","subresource":"token","namespace":"shop","name":"ci"`) || !strings.Contains(string(audited), id) {
		t.Errorf("%v: %s", err, audited)
	}
	if used := `"credentialID":"JTI=` + id + `"`; !strings.Contains(string(audited), used) {
		t.Errorf("no event has %s", used)
	}
	if strings.Contains(string(audited), bad) || strings.Contains(string(audited), good) {
		t.Error("a token is in the audit log")
	}
}
