package inspect_test

import (
	"github.com/pilot-api/pilot-api/server/servertest"

	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/internal/simulated"
	"github.com/pilot-api/pilot-api/mesh"
)

// TestProblemsOfWhatWasJustWritten checks that a client that writes an object and
// then asks sees its problems.
func TestProblemsOfWhatWasJustWritten(t *testing.T) {
	outside.Slow(t)
	w := servertest.Followed(t)
	for i := range 25 {
		name := fmt.Sprintf("rule-%d", i)
		w.Create(name)
		var found struct {
			Revision int64
			Problems []struct{ Object struct{ Name string } }
		}
		answer := w.Do("GET", "/debug/problems", "")
		if err := json.Unmarshal([]byte(answer.Text), &found); err != nil {
			t.Fatal(err)
		}
		told := false
		for _, p := range found.Problems {
			told = told || p.Object.Name == name
		}
		if !told {
			t.Fatalf("nothing about %s, whose service is not there, at revision %d", name, found.Revision)
		}
	}
}

func TestProblemsOfARevision(t *testing.T) {
	w := servertest.Followed(t)
	for query, code := range map[string]int{
		"":                                 http.StatusOK,
		"?resourceVersion=0":               http.StatusOK,
		"?resourceVersion=1":               http.StatusOK,
		"?resourceVersion=99&timeout=20ms": http.StatusGatewayTimeout,
		"?resourceVersion=newest":          http.StatusBadRequest,
		"?revision=1":                      http.StatusBadRequest,
		"?api=v1":                          http.StatusOK,
		"?api=v2":                          http.StatusBadRequest,
	} {
		if got := w.Do("GET", "/debug/problems"+query, ""); got.StatusCode != code {
			t.Errorf("%q: status %d, want %d: %s", query, got.StatusCode, code, got.Text)
		}
	}
}

// TestProblemsOfIdleGateways checks that a Gateway that no connected router serves is a
// problem, until one comes, and that a Gateway with a mistake of its own is only that.
func TestProblemsOfIdleGateways(t *testing.T) {
	w := servertest.Followed(t)
	for name, protocol := range map[string]string{"edge": "HTTP", "unlike": "UDP"} {
		body := fmt.Sprintf(`{"apiVersion": "networking.istio.io/v1", "kind": "Gateway", "metadata": {"name": %q}, "spec":
			{"selector": {"istio": "edge"}, "servers": [{"port": {"number": 80, "name": "p", "protocol": %q}, "hosts": ["*"]}]}}`, name, protocol)
		if a := w.Do("POST", "/apis/networking.istio.io/v1/namespaces/default/gateways", body, "Content-Type: application/json"); a.StatusCode != http.StatusCreated {
			t.Fatal(a.Text)
		}
	}
	idle := func(query string) (names []string) {
		var found struct{ Problems diag.List }
		if err := json.Unmarshal([]byte(w.Do("GET", "/debug/problems"+query, "").Text), &found); err != nil {
			t.Fatal(err)
		}
		for _, p := range found.Problems {
			if p.Code == diag.SelectsNothing {
				names = append(names, p.Object.Name)
			}
		}
		return names
	}
	if got := idle(""); !slices.Equal(got, []string{"edge"}) {
		t.Errorf("without a router, %q are idle", got)
	}
	if got := idle("?local=true"); got != nil {
		t.Errorf("this replica says of all replicas that %q are idle", got)
	}
	router := mesh.Node{ID: "router~10.9.0.1~edge-1.default~default.svc.cluster.local", Labels: mesh.Labels{"istio": "edge"}.String()}
	p, err := simulated.ConnectNode(w.Discovery, router)
	if err != nil {
		t.Fatal(err)
	}
	if got := idle(""); got != nil {
		t.Errorf("with a router, %q are idle", got)
	}
	p.Leave()
	if got := idle(""); !slices.Equal(got, []string{"edge"}) {
		t.Errorf("after the router has left, %q are idle", got)
	}
}
