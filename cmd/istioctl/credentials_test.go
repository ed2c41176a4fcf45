package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/cli"
	"github.com/pilot-api/pilot-api/cmd/istioctl/root"
	"github.com/pilot-api/pilot-api/internal/selfsigned"
)

// identified is a server that says which credentials a request has, and the files of
// credentials for it.
type identified struct {
	url, dir string
}

func startIdentified(t *testing.T) *identified {
	t.Helper()
	dir := t.TempDir()
	known := selfsigned.NewAuthority(t, dir)
	known.Issue(t, "127.0.0.1")
	known.IssueUser(t, time.Hour, "root")
	known.IssueUser(t, time.Hour, "ada")
	i := &identified{dir: dir}
	selfsigned.Write(t, i.at("eve.crt"), i.at("eve.key"))
	if err := os.Mkdir(i.at("other"), 0o700); err != nil {
		t.Fatal(err)
	}
	selfsigned.NewAuthority(t, i.at("other")).IssueUser(t, time.Hour, "mallory") // An authority of the same name.
	for name, text := range map[string]string{
		"token": "of-file\n", "env-token": "of-env-file", "empty": "\n", "lines": "one\ntwo\n", "yaml": "resources:\n- name: t\n",
	} {
		if err := os.WriteFile(i.at(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	api := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var has []string
		for _, c := range r.TLS.PeerCertificates {
			has = append(has, "certificate "+c.Subject.CommonName)
		}
		if token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
			has = append(has, "token "+token)
		}
		fmt.Fprintf(w, `{"status": {"userInfo": {"username": %q}}}`, strings.Join(has, ", "))
	}))
	pair, err := tls.LoadX509KeyPair(i.at("127.0.0.1.crt"), i.at("127.0.0.1.key"))
	if err != nil {
		t.Fatal(err)
	}
	api.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.VerifyClientCertIfGiven, ClientCAs: x509.NewCertPool()}
	api.TLS.ClientCAs.AddCert(known.Certificate)
	api.Config.ErrorLog = log.New(io.Discard, "", 0)
	api.StartTLS()
	t.Cleanup(api.Close)
	i.url = api.URL
	return i
}

func (i *identified) at(name string) string { return filepath.Join(i.dir, name) }

// run runs a command line in which DIR stands for the folder of the files, with variables of
// the environment such as NAME=DIR/value.
func (i *identified) run(t *testing.T, env, line string) (out string, code int) {
	t.Helper()
	vars := map[string]string{"ISTIOCTL_CONFIG": i.at("config.yaml"), "ISTIOCTL_CERTIFICATE_AUTHORITY": i.at("authority.crt")}
	for _, v := range strings.Fields(env) {
		name, value, _ := strings.Cut(v, "=")
		vars[name] = strings.ReplaceAll(value, "DIR", i.dir)
	}
	args := strings.Fields(strings.ReplaceAll(line, "DIR", i.dir))
	for n, arg := range args {
		args[n] = strings.Trim(arg, `"`)
	}
	var both bytes.Buffer
	c := &cli.Program{Stdin: strings.NewReader(""), Stdout: &both, Stderr: &both, Getenv: func(name string) string { return vars[name] }}
	code = root.Run(t.Context(), c, args)
	return both.String(), code
}

// TestCredentialsNearerToTheCommand sends one kind of credentials only: those of flags, else
// those of the environment, else those of the context.
func TestCredentialsNearerToTheCommand(t *testing.T) {
	i := startIdentified(t)
	for name, flags := range map[string]string{
		"cert": "--client-certificate DIR/root.crt --client-key DIR/root.key", "token": "--token-file DIR/token", "none": "",
	} {
		if out, code := i.run(t, "", "config set-context "+name+" --server "+i.url+" "+flags); code != cli.ExitDone {
			t.Fatal(out)
		}
	}
	const cert, byAda = "--client-certificate DIR/ada.crt --client-key DIR/ada.key", "ISTIOCTL_CLIENT_CERTIFICATE=DIR/ada.crt ISTIOCTL_CLIENT_KEY=DIR/ada.key"
	for _, c := range []struct{ context, env, flags, want string }{
		{"cert", "", "", "certificate root"},
		{"cert", "", "--token t1", "token t1"},
		{"cert", "", "--token-file DIR/token", "token of-file"},
		{"cert", "ISTIOCTL_TOKEN=t2", "", "token t2"},
		{"cert", "ISTIOCTL_TOKEN_FILE=DIR/env-token", "", "token of-env-file"},
		{"cert", byAda, "", "certificate ada"},
		{"token", "", "", "token of-file"},
		{"token", "", cert, "certificate ada"},
		{"token", byAda, "", "certificate ada"},
		{"token", byAda, "--token t3", "token t3"},
		{"none", byAda, "--token-file DIR/token", "token of-file"},
		{"none", "ISTIOCTL_TOKEN=t4", cert, "certificate ada"},
		{"none", "ISTIOCTL_TOKEN_FILE=DIR/env-token", "--token t5", "token t5"},
		{"none", "", "", ""},
	} {
		out, code := i.run(t, c.env, "whoami --context "+c.context+" "+c.flags)
		if user, _, _ := strings.Cut(out, "\n"); code != cli.ExitDone || strings.TrimSpace(strings.TrimPrefix(user, "user:")) != c.want {
			t.Errorf("context %s, environment %q, flags %q: want %q, exit %d: %s", c.context, c.env, c.flags, c.want, code, out)
		}
	}
}

// TestCredentialsThatContradict are refused before anything is sent.
func TestCredentialsThatContradict(t *testing.T) {
	i := startIdentified(t)
	text := "contexts:\n- {name: both, server: " + i.url + ", tokenFile: token, clientCertificate: ada.crt, clientKey: ada.key}\n" +
		"- {name: logged, server: " + i.url + ", tokenFile: token, login: {issuer: 'https://127.0.0.1:1', clientID: c}}\n"
	if err := os.WriteFile(i.at("config.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	const cert = "--client-certificate DIR/ada.crt --client-key DIR/ada.key"
	for _, c := range []struct {
		env, flags, want string
		code             int
	}{
		{"", cert + " --token t", "--token and --client-certificate: each says who you are", cli.ExitUsage},
		{"", cert + " --token-file DIR/token", "--token-file and --client-certificate", cli.ExitUsage},
		{"", "--token t --token-file DIR/token", "--token and --token-file", cli.ExitUsage},
		{"ISTIOCTL_TOKEN=t ISTIOCTL_CLIENT_CERTIFICATE=DIR/ada.crt ISTIOCTL_CLIENT_KEY=DIR/ada.key", "", "ISTIOCTL_TOKEN and ISTIOCTL_CLIENT_CERTIFICATE", cli.ExitUsage},
		{"ISTIOCTL_TOKEN=t ISTIOCTL_TOKEN_FILE=DIR/token", "", "ISTIOCTL_TOKEN and ISTIOCTL_TOKEN_FILE", cli.ExitUsage},
		{"", "--client-certificate DIR/ada.crt", "--client-certificate is given without --client-key", cli.ExitUsage},
		{"ISTIOCTL_CLIENT_KEY=DIR/ada.key", "", "ISTIOCTL_CLIENT_KEY is given without ISTIOCTL_CLIENT_CERTIFICATE", cli.ExitUsage},
		{"", "--context both", "tokenFile of context both and clientCertificate of context both", cli.ExitFailed},
		{"", "--context logged", "tokenFile of context logged and login of context logged", cli.ExitFailed},
	} {
		out, code := i.run(t, c.env, "whoami "+c.flags)
		if code != c.code || !strings.Contains(out, c.want) {
			t.Errorf("environment %q, flags %q: want %d %q, got %d: %s", c.env, c.flags, c.code, c.want, code, out)
		}
	}
}

// TestCredentialsThatAreWrong are no faults of the network.
func TestCredentialsThatAreWrong(t *testing.T) {
	i := startIdentified(t)
	for flags, want := range map[string]string{
		"--token-file DIR/nope":                                     "error: --token-file: open DIR/nope: no such file or directory",
		"--token-file DIR/empty":                                    "error: --token-file: DIR/empty is empty: it must have one line with a token",
		"--token-file DIR/lines":                                    "error: --token-file: DIR/lines has no token: it must have one line with a token, without blanks",
		"--token-file DIR/yaml":                                     "error: --token-file: DIR/yaml has no token: it must have one line with a token, without blanks",
		"--token a\u00e9":                                           "error: --token has no token: it must have one line with a token, without blanks",
		"--certificate-authority DIR/nope":                          "error: --certificate-authority: open DIR/nope: no such file or directory",
		"--certificate-authority DIR/yaml":                          "error: --certificate-authority: DIR/yaml: no certificate in it",
		"--client-certificate DIR/nope --client-key DIR/ada.key":    "error: --client-certificate, --client-key: open DIR/nope: no such file or directory",
		"--client-certificate DIR/eve.crt --client-key DIR/eve.key": `error: --client-certificate: the server does not accept DIR/eve.crt, whose issuer is ""`,
		"--client-certificate DIR/other/mallory.crt --client-key DIR/other/mallory.key": "error: " + i.url + " refuses the TLS connection: tls: unknown certificate authority",
	} {
		out, code := i.run(t, "", "whoami --server "+i.url+" "+flags)
		if want = strings.ReplaceAll(want, "DIR", i.dir) + "\n"; code != cli.ExitFailed || out != want {
			t.Errorf("%s: want %q, got %d %q", flags, want, code, out)
		}
	}
}

// TestNewCredentialsOfAContext replace the old ones.
func TestNewCredentialsOfAContext(t *testing.T) {
	i := startIdentified(t)
	set := "config set-context c --server " + i.url
	const cert = " --client-certificate DIR/ada.crt --client-key DIR/ada.key"
	for _, step := range []struct{ flags, want string }{
		{" --token-file DIR/token", "token of-file"}, {cert, "certificate ada"}, {" --token-file DIR/token", "token of-file"}, {` --token-file ""`, ""},
	} {
		if out, code := i.run(t, "", set+step.flags); code != cli.ExitDone {
			t.Fatal(out)
		}
		if out, code := i.run(t, "", "whoami --context c"); code != cli.ExitDone || !strings.HasPrefix(strings.Join(strings.Fields(out), " "), "user: "+step.want) {
			t.Errorf("after%s: %d %s", step.flags, code, out)
		}
	}
	for _, flags := range []string{cert + " --token-file DIR/token", " --client-key DIR/ada.key", " --token t"} {
		if out, code := i.run(t, "", set+flags); code != cli.ExitUsage {
			t.Errorf("%s: %d %s", flags, code, out)
		}
	}
}

// TestRedirectsGetNoCredentials follows a redirect of a server to itself, and none to another
// server.
func TestRedirectsGetNoCredentials(t *testing.T) {
	got := make(chan string, 10)
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got <- r.Header.Get("Authorization") }))
	t.Cleanup(other.Close)
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasPrefix(r.URL.Path, "/away"):
			http.Redirect(w, r, other.URL+r.URL.Path, http.StatusTemporaryRedirect)
		case strings.HasPrefix(r.URL.Path, "/here"):
			http.Redirect(w, r, "/there"+r.URL.Path, http.StatusTemporaryRedirect)
		default:
			fmt.Fprintf(w, `{"status": {"userInfo": {"username": %q}}}`, r.Header.Get("Authorization"))
		}
	}))
	t.Cleanup(api.Close)
	i := &identified{dir: t.TempDir()}
	run := func(line string) (string, int) { return i.run(t, "ISTIOCTL_CERTIFICATE_AUTHORITY=", line) }
	if out, code := run("whoami --token t --server " + api.URL + "/here"); code != cli.ExitDone || !strings.Contains(out, "Bearer t") {
		t.Errorf("to itself: %d %s", code, out)
	}
	want := fmt.Sprintf("error: %s redirects to %s, which gets no credentials: name that server with --server if you trust it\n", api.URL, other.URL)
	for _, verb := range []string{"whoami", "get rr", "delete rr a"} {
		out, code := run(verb + " --token t --server " + api.URL + "/away")
		if code != cli.ExitFailed || !strings.HasSuffix(out, strings.TrimPrefix(want, "error")) || strings.Contains(out, "may or may not") {
			t.Errorf("%s: want %q, got %d %q", verb, want, code, out)
		}
	}
	select {
	case header := <-got:
		t.Errorf("the other server got %q", header)
	default:
	}
}
