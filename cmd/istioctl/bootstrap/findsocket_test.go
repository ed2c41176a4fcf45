package bootstrap_test

import (
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/client"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/cli"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/clitest"
)

// TestBootstrapFindsTheSocket: an Envoy asks over the socket of the server that it is
// meant for, where this user may open it. Else it asks over TCP, and a warning says why
// it gets no private keys.
func TestBootstrapFindsTheSocket(t *testing.T) {
	dir, err := os.MkdirTemp("", "") // The path of a socket must be short.
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket := func(name string) string {
		l, err := net.Listen("unix", filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		return filepath.Join(dir, name)
	}
	grpc, http1 := socket("grpc"), socket("http")
	link, text := filepath.Join(dir, "link"), filepath.Join(dir, "text")
	if err := os.Symlink(grpc, link); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(text, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var told any
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v3/discovery:sockets" {
			t.Errorf("%s is asked for", r.URL)
		}
		if told == nil {
			http.NotFound(w, r)
			return
		}
		_ = json.NewEncoder(w).Encode(told)
	}))
	t.Cleanup(api.Close)
	host := strings.TrimPrefix(api.URL, "http://")
	good := client.Sockets{Streams: "127.0.0.1:15999", GRPC: grpc, HTTP: http1}
	for name, c := range map[string]struct {
		told any
		args []string
		want string // the socket
		warn string
	}{
		"streams":                  {told: good, want: grpc},
		"state of the world":       {told: good, args: []string{"--api", "ads"}, want: grpc},
		"polls":                    {told: good, args: []string{"--api", "rest"}, want: http1},
		"its own streams":          {told: good, args: []string{"--xds", "localhost:15999"}, want: grpc},
		"streams of every address": {told: client.Sockets{Streams: "[::]:15999", GRPC: grpc}, args: []string{"--xds", "127.0.0.1:15999"}, want: grpc},
		"its own address":          {told: good, args: []string{"--api", "rest", "--xds", host}, want: http1},
		"other streams":            {told: good, args: []string{"--xds", "127.0.0.1:15010"}, warn: "127.0.0.1:15010 is not where the server"},
		"other machine":            {told: good, args: []string{"--xds", "10.0.0.1:15999"}, warn: "10.0.0.1:15999 is not where the server"},
		"replicas":                 {told: good, args: []string{"--xds", "127.0.0.1:15999,10.0.0.1:15999"}, warn: "only one that asks a server of its own machine"},
		"another server":           {told: good, args: []string{"--server", "http://mesh.example:8080"}, warn: "only one that asks a server of its own machine"},
		"not wanted":               {told: good, args: []string{"--socket=false"}, warn: "--socket=false"},
		"none":                     {told: client.Sockets{}, warn: "the server has no socket for it"},
		"older server":             {told: nil, warn: "the server does not say where its socket is"},
		"no server":                {args: []string{"--server", "http://127.0.0.1:1"}, warn: "nothing answers at http://127.0.0.1:1"},
		"nothing there":            {told: client.Sockets{GRPC: filepath.Join(dir, "gone")}, warn: "no such file"},
		"a file":                   {told: client.Sockets{GRPC: text}, warn: "is not the path of a socket"},
		"a link":                   {told: client.Sockets{GRPC: link}, warn: "is not the path of a socket"},
		"a relative path":          {told: client.Sockets{GRPC: "."}, warn: "is not the path of a socket"},
		"gRPC has no secrets":      {told: good, args: []string{"--api", "grpc"}},
		"v1 has no secrets":        {told: good, args: []string{"--api", "v1"}},
		"a certificate":            {told: good, args: []string{"--xds-ca", "a", "--xds-cert", "b", "--xds-key", "c"}},
	} {
		t.Run(name, func(t *testing.T) {
			told = c.told
			stdout, stderr, code := clitest.Run(t, api.URL, "", append([]string{"bootstrap", "sidecar~10.0.0.1~a~b"}, c.args...)...)
			if code != cli.ExitDone {
				t.Fatalf("exit %d: %s", code, stderr)
			}
			if _, path, _ := strings.Cut(stdout, "path: "); strings.SplitN(path, "\n", 2)[0] != c.want {
				t.Errorf("want the socket %q:\n%s", c.want, stdout)
			}
			if c.warn == "" && stderr != "" || !strings.Contains(stderr, c.warn) {
				t.Errorf("want the warning %q, got %s", c.warn, stderr)
			}
		})
	}
}
