package envoy_test

import (
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/envoy"
	"github.com/pilot-api/pilot-api/envoy/envoytest"
	"github.com/pilot-api/pilot-api/internal/outside"
)

// TestTwoProxiesOnOneMachine checks that two Envoys start if their bootstraps leave the admin
// port open, and that an Envoy does not start with the admin port of another.
func TestTwoProxiesOnOneMachine(t *testing.T) {
	first := startBootstrap(t, "sidecar~10.0.0.7~web-1.shop~shop.svc.cluster.local")
	second := startBootstrap(t, "sidecar~10.0.0.8~web-2.shop~shop.svc.cluster.local")
	for name, e := range map[string]*envoytest.Envoy{"web-1": first, "web-2": second} {
		var info struct {
			Node struct {
				ID       string `json:"id"`
				Locality struct {
					Region string `json:"region"`
				} `json:"locality"`
			} `json:"node"`
		}
		if err := json.Unmarshal([]byte(e.AdminText("/server_info")), &info); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(info.Node.ID, name) || info.Node.Locality.Region != "eu" {
			t.Errorf("at the port of %s: %+v", name, info)
		}
	}
	_, text, err := net.SplitHostPort(strings.TrimPrefix(first.Admin, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	cmd := envoyOf(t, bootstrapOf(func(o *envoy.BootstrapOptions) { o.AdminPort = port }))
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "Address already in use") {
		t.Errorf("with a port that is taken: %v\n%s", err, out)
	}
}

// startBootstrap runs an Envoy with the bootstrap of a node. No server is there for it.
func startBootstrap(t *testing.T, node string) *envoytest.Envoy {
	t.Helper()
	return envoytest.Run(t, envoyOf(t, bootstrapOf(func(o *envoy.BootstrapOptions) {
		o.NodeID, o.AdminPort, o.Locality = node, 0, "eu/eu-1"
	})), "/server_info")
}

func envoyOf(t *testing.T, o envoy.BootstrapOptions) *exec.Cmd {
	t.Helper()
	program := outside.Tool(t, "envoy")
	o.Server = "http://127.0.0.1:1" // No server is there.
	text, err := envoy.Bootstrap(o)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "envoy.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return exec.CommandContext(t.Context(), program, "-c", file, "--use-dynamic-base-id", "--concurrency", "1", "-l", "warning")
}
