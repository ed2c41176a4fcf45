package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/internal/testbed"
	"github.com/pilot-api/pilot-api/store"
)

// outage is how long etcd is away.
const outage = 5 * time.Second

// While etcd is away writes wait or are refused, and discovery goes on as before; when it
// is back all goes on by itself.
func TestEtcdGone(t *testing.T) {
	outside.Slow(t)
	for _, c := range []struct {
		name       string
		goes, back func(*testbed.Member) error
	}{
		{
			name: "killed", // Connections are refused.
			goes: func(e *testbed.Member) error { e.Kill(); return nil },
			back: func(e *testbed.Member) error { return e.Start() },
		},
		{
			name: "frozen", // Connections stay, and nothing comes back.
			goes: func(e *testbed.Member) error { e.Pause(); return nil },
			back: func(e *testbed.Member) error { e.Resume(); return nil },
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			etcd := startEtcd(t)
			pilot := openPilot(t, "--data-dir", t.TempDir(), "--etcd-endpoints", etcd.URL())
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

// surviveOutage returns when etcd was away and a write has succeeded again. All
// the while, what needs no etcd is asked for.
func surviveOutage(t *testing.T, pilot *Pilot, before []byte) {
	t.Helper()
	written := make(chan error, 1)
	go func() { written <- writeThrough(t, pilot) }()
	pace := time.NewTicker(20 * time.Millisecond)
	defer pace.Stop()
	for polls := 0; ; polls++ {
		if now := clusters(t, pilot); !bytes.Equal(now, before) {
			t.Fatalf("discovery changed from\n%s\nto\n%s", before, now)
		}
		for _, path := range []string{"/healthz", rulesPath + "?resourceVersion=0"} {
			if _, err := fetch(t.Context(), pilot.URL+path); err != nil {
				t.Fatal(err)
			}
		}
		select {
		case err := <-written:
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("discovery answered %d polls meanwhile", polls)
			return
		case <-pace.C:
		}
	}
}

// writeThrough creates one rule after the other until etcd is back and has
// taken one; those that were acknowledged must then be there. Each must be acknowledged or
// refused with 503 before the client gives up. A write that is under way when etcd goes
// away or comes back may be told instead that its outcome is unknown.
func writeThrough(t *testing.T, pilot *Pilot) error {
	var acknowledged []object
	begin, unknown := time.Now(), 0
	for i := 0; time.Since(begin) < outage || len(acknowledged) == 0; i++ {
		o := rule(i)
		ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
		status, body, err := create(ctx, pilot.URL+rulesPath, o)
		cancel()
		switch {
		case err != nil:
			return fmt.Errorf("a write got no answer: %w", err)
		case status == http.StatusCreated:
			acknowledged = append(acknowledged, o)
		case outcomeUnknown(body) && unknown < 2:
			unknown++
		case status != http.StatusServiceUnavailable || !isStatus(body):
			return fmt.Errorf("a write got %d, want 201, or 503 with a Status\n%s", status, body)
		case time.Since(begin) > outage+patience:
			return fmt.Errorf("no write succeeded within %v of etcd's return", patience)
		}
	}
	for _, o := range acknowledged {
		if err := readBack(t.Context(), pilot.URL+rulesPath+"/"+o.Metadata.Name); err != nil {
			return fmt.Errorf("an acknowledged write is gone: %w", err)
		}
	}
	return nil
}

// readBack reads an object that is stored. A server refuses reads with 503 until its next
// question to etcd is answered, which can be after the first write has succeeded.
func readBack(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	pace := time.NewTicker(20 * time.Millisecond)
	defer pace.Stop()
	for {
		_, err := fetch(ctx, url)
		if err == nil || !strings.Contains(err.Error(), http.StatusText(http.StatusServiceUnavailable)) {
			return err
		}
		select {
		case <-pace.C:
		case <-ctx.Done():
			return err
		}
	}
}

// outcomeUnknown reports whether an answer says that a write may or may not be done.
func outcomeUnknown(body []byte) bool {
	var s metav1.Status
	return json.Unmarshal(body, &s) == nil && errors.Is(store.FromStatus(&s), store.ErrOutcomeUnknown)
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
