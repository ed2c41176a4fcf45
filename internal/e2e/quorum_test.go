package e2e

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/internal/testbed"
)

const payService = `apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: pay}
spec: {hosts: [pay.example], location: MESH_INTERNAL, resolution: STATIC, ports: [{number: 80, name: http, protocol: HTTP}], endpoints: [{address: 10.9.0.1}]}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: pay}
spec: {hosts: [pay.example], http: [{timeout: 7s, route: [{destination: {host: pay.example}}]}, {route: [{destination: {host: nowhere.example}}]}]}
`

// TestReadsWithoutQuorum: with two of three members of etcd stopped, each verb of
// istioctl that shows something shows the last known state, says so with its revision and
// age, and succeeds. Writes fail and say that nothing was written. When the members are
// back, all is as before.
func TestReadsWithoutQuorum(t *testing.T) {
	outside.Slow(t)
	programs(t) // Building takes none of the time.
	ctx, cancel := context.WithTimeout(t.Context(), 6*patience)
	defer cancel()
	etcd, err := testbed.StartEtcd(ctx, t.TempDir(), 3)
	if etcd != nil {
		t.Cleanup(etcd.Close)
	}
	if err != nil {
		t.Fatal(err)
	}
	var members []string
	for _, m := range etcd.Members {
		members = append(members, m.URL())
	}
	pilot := openPilot(t, "--data-dir", t.TempDir(), "--etcd-endpoints", strings.Join(members, ","))
	file := filepath.Join(t.TempDir(), "pay.yaml")
	if err := os.WriteFile(file, []byte(payService), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := pilot.Istioctl(ctx, "apply", "-f", file); err != nil {
		t.Fatal(err)
	}
	if err := pilot.Published(ctx); err != nil {
		t.Fatal(err)
	}

	etcd.Members[1].Kill()
	etcd.Members[2].Kill()
	proxy := "sidecar~10.9.0.9~web-1.default~default.svc.cluster.local"
	outdated := regexp.MustCompile(`(?m)^Warning: the store has not answered for [0-9ms]+: this is the last known state, of revision [0-9]+$`)
	for _, c := range []struct{ shows, verb string }{
		{"pay.example", "get virtualservice"},
		{"timeout: 7s", "get virtualservice pay -o yaml"},
		{"serviceentry", "get all -A -o name"},
		{"pay.example", "describe virtualservice pay"},
		{"PA0101", "problems"},
		{"PA0101", "analyze"},
		{"7s", "route --from " + proxy + " http://pay.example/"},
		{"pay.example", "proxy-config clusters " + proxy},
		{"create", "history virtualservice pay"},
	} {
		var out, errs bytes.Buffer
		cmd := exec.CommandContext(ctx, pilot.programs.Istioctl, append(strings.Fields(c.verb), "--server", pilot.URL)...)
		cmd.Stdout, cmd.Stderr = &out, &errs
		err := cmd.Run()
		if c.verb == "analyze" && cmd.ProcessState.ExitCode() == 1 {
			err = nil // It found problems.
		}
		if err != nil || !strings.Contains(out.String(), c.shows) || len(outdated.FindAllString(errs.String(), -1)) != 1 {
			t.Errorf("%s: %v, stderr %q, stdout\n%s", c.verb, err, &errs, &out)
		}
	}
	for _, verb := range []string{"apply -f ", "apply --owner shop --prune -f ", "replace -f ", "delete -f "} {
		_, err := pilot.Istioctl(ctx, append(strings.Fields(verb), file)...)
		if err == nil || !strings.Contains(err.Error(), "the store has not answered for ") {
			t.Errorf("%s: %v", verb, err)
		}
	}
	if _, err := pilot.Istioctl(ctx, "get", "virtualservice", "nobody"); err == nil {
		t.Error("an object that is not known is shown")
	}

	for _, m := range etcd.Members[1:] {
		if err := m.Start(); err != nil {
			t.Fatal(err)
		}
	}
	if err := until(ctx, "a write", pilot.Process, func(ctx context.Context) error {
		_, err := pilot.Istioctl(ctx, "apply", "--owner", "shop", "-f", file)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(ctx, pilot.programs.Istioctl, "get", "virtualservice", "--server", pilot.URL).CombinedOutput()
	if err != nil || bytes.Contains(out, []byte("last known")) {
		t.Errorf("after the outage: %v: %s", err, out)
	}
}
