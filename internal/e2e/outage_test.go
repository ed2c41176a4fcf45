package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"syscall"
	"testing"
	"time"
)

// outage is how long etcd is away.
const outage = 5 * time.Second

// While etcd is away writes wait or are refused with 503, and discovery goes on
// as before; when it is back all goes on by itself.
func TestEtcdGone(t *testing.T) {
	programs := installed(t)
	for _, c := range []struct {
		name       string
		goes, back func(*externalEtcd) error
	}{
		{
			name: "killed", // Connections are refused.
			goes: func(e *externalEtcd) error { e.kill(); return nil },
			back: (*externalEtcd).restart,
		},
		{
			name: "frozen", // Connections stay, and nothing comes back.
			goes: func(e *externalEtcd) error { return e.cmd.Process.Signal(syscall.SIGSTOP) },
			back: func(e *externalEtcd) error { return e.cmd.Process.Signal(syscall.SIGCONT) },
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			etcd := startEtcd(t)
			pilot, err := StartPilot(context.WithoutCancel(t.Context()), programs, t.TempDir(), "--etcd-endpoints", etcd.clients)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { pilot.stop() })
			addService(t, pilot, "before")

			before := clusters(t, pilot)
			if err := c.goes(etcd); err != nil {
				t.Fatal(err)
			}
			back := make(chan error, 1)
			time.AfterFunc(outage, func() { back <- c.back(etcd) })
			surviveOutage(t, pilot, before)
			if err := <-back; err != nil {
				t.Fatal(err)
			}
			addService(t, pilot, "after")
			if after := clusters(t, pilot); bytes.Equal(after, before) {
				t.Error("discovery does not tell of a service that came after the outage")
			}
		})
	}
}

// surviveOutage writes and polls until the outage is over and a write has
// succeeded again; what was acknowledged in between must be there.
func surviveOutage(t *testing.T, pilot *Pilot, before []byte) {
	t.Helper()
	begin := time.Now()
	pace := time.NewTicker(20 * time.Millisecond)
	defer pace.Stop()
	acknowledged, refused := map[string]bool{}, 0
	for i := 0; time.Since(begin) < outage || len(acknowledged) == 0; i++ {
		if time.Since(begin) > outage+patience {
			t.Fatalf("no write succeeded within %v of etcd's return", patience)
		}
		<-pace.C
		o := rule(i)
		ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
		status, body, err := create(ctx, pilot.URL+rulesPath, o)
		cancel()
		switch {
		case err != nil:
			t.Fatalf("a write got no answer: %v", err)
		case status == http.StatusCreated:
			acknowledged[o.Metadata.Name] = true
		case status == http.StatusServiceUnavailable && isStatus(body):
			refused++
		default:
			t.Fatalf("a write got %d, want 201 or 503 with a Status\n%s", status, body)
		}
		if now := clusters(t, pilot); !bytes.Equal(now, before) {
			t.Fatalf("discovery changed from\n%s\nto\n%s", before, now)
		}
		if _, err := fetch(t.Context(), pilot.URL+"/healthz"); err != nil {
			t.Fatal(err)
		}
	}
	stored := rules(t, pilot)
	for name := range acknowledged {
		if _, ok := stored[name]; !ok {
			t.Errorf("%s was acknowledged and is gone", name)
		}
	}
	t.Logf("%d writes acknowledged, %d refused", len(acknowledged), refused)
}

func isStatus(body []byte) bool {
	var s struct{ Kind, Message string }
	return json.Unmarshal(body, &s) == nil && s.Kind == "Status" && s.Message != ""
}

// clusters is what discovery tells a proxy.
func clusters(t *testing.T, pilot *Pilot) []byte {
	t.Helper()
	body, err := fetch(t.Context(), pilot.URL+"/v1/clusters/e2e/"+node)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// addService registers a service and returns when discovery knows it.
func addService(t *testing.T, pilot *Pilot, name string) {
	t.Helper()
	o := object{APIVersion: "networking.istio.io/v1", Kind: "ServiceEntry"}
	o.Metadata.Name = name
	o.Spec = fmt.Appendf(nil, `{"hosts":["%s.default.svc.cluster.local"],"location":"MESH_INTERNAL","resolution":"STATIC",
		"ports":[{"number":80,"name":"http","protocol":"HTTP"}],"endpoints":[{"address":"10.0.0.1"}]}`, name)
	status, body, err := create(t.Context(), pilot.URL+servicesPath, o)
	if err != nil || status != http.StatusCreated {
		t.Fatalf("creating %s: status %d, %v\n%s", name, status, err, body)
	}
	if err := pilot.Published(t.Context()); err != nil {
		t.Fatal(err)
	}
}
