package inspect_test

import (
	"github.com/pilot-api/pilot-api/server/servertest"

	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/internal/simulated"
	"github.com/pilot-api/pilot-api/server"
	"github.com/pilot-api/pilot-api/store/memory"
)

// pair returns two replicas. The first knows the other, and a third one that does
// not answer.
func pair(t *testing.T) (here, far *servertest.World, known *servertest.Register) {
	mem := memory.New()
	far = servertest.StartReplica(t, mem)
	broken := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(broken.Close)
	known = &servertest.Register{Known: map[string]string{"far": far.URL, "broken": broken.URL}}
	here = servertest.StartReplica(t, mem, func(o *server.Options) { o.Peers = known })
	here.Want(http.StatusCreated, "POST", "/apis/networking.istio.io/v1/namespaces/default/serviceentries", simulated.Reviews, servertest.AsYAML)
	far.Want(http.StatusOK, "GET", "/debug/problems", "")
	return here, far, known
}

// connectNode opens the stream of a proxy that subscribes to nothing.
func connectNode(w *servertest.World, id string, labels map[string]string) {
	w.Helper()
	node, err := discovery.NewNode(id, "", labels)
	if err != nil {
		w.Fatal(err)
	}
	st, err := w.Discovery.Connect(node, discovery.Delta)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(st.Close)
}

// TestConfigOfAProxyElsewhere checks that the replica of a proxy answers for its
// configuration, with the labels that the proxy states there.
func TestConfigOfAProxyElsewhere(t *testing.T) {
	here, far, known := pair(t)
	here.Want(http.StatusCreated, "POST", "/apis/networking.istio.io/v1/namespaces/default/gateways", `apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: edge}
spec:
  selector: {istio: ingressgateway}
  servers:
  - port: {number: 8081, name: http, protocol: HTTP}
    hosts: ["*"]
`, servertest.AsYAML)
	const node = "router~10.0.0.9~edge-1.default~default.svc.cluster.local"
	connectNode(far, node, map[string]string{"istio": "ingressgateway"})
	path := "/apis/registry.istio.io/v1/proxies/" + node
	for _, what := range []string{"/config/listeners", "/config/listeners?summary=true"} {
		got := here.Want(http.StatusOK, "GET", path+what, "")
		if !strings.Contains(got.Text, "8081") || !strings.Contains(got.Text, `"known":true`) {
			t.Errorf("%s: %s", what, got.Text)
		}
		if warned := got.Header.Get("Warning"); !strings.Contains(warned, "replica broken does not answer") {
			t.Errorf("%s: warned of %q", what, warned)
		}
	}
	if got := here.Want(http.StatusOK, "GET", path+"/route", ""); !strings.Contains(got.Text, `"known":true`) {
		t.Errorf("routes: %s", got.Text)
	}
	known.Leave("broken")
	if got := here.Want(http.StatusOK, "GET", path+"/config/listeners?local=true", ""); strings.Contains(got.Text, "8081") {
		t.Errorf("of this replica alone: %s", got.Text)
	}
	stranger := strings.Replace(path, "edge-1", "edge-2", 1)
	got := here.Want(http.StatusOK, "GET", stranger+"/config/listeners", "")
	if !strings.Contains(got.Text, `"known":false`) || got.Header.Get("Warning") != "" {
		t.Errorf("of nobody: %q %s", got.Header.Get("Warning"), got.Text)
	}
}

// TestPreviewOfAllReplicas checks that a preview has each change once, for the
// proxies of all replicas, and names the replicas that do not answer.
func TestPreviewOfAllReplicas(t *testing.T) {
	here, far, known := pair(t)
	const rule = `apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: r}
spec: {hosts: [reviews], http: [{match: [{headers: {who: {regex: "<a&b>"}}}], timeout: 3s, route: [{destination: {host: reviews}}]}]}
`
	ask := func(query string) (p discovery.Preview, missing []string) {
		t.Helper()
		got := here.Want(http.StatusOK, "POST", "/apis/registry.istio.io/v1/preview"+query, rule, servertest.AsYAML)
		var told struct {
			discovery.Preview
			Missing []string `json:"missing"`
		}
		if err := json.Unmarshal([]byte(got.Text), &told); err != nil {
			t.Fatal(err)
		}
		return told.Preview, told.Missing
	}
	far.Connect(1)
	if p, missing := ask(""); p.Proxies != 1 || len(p.Changes) != 1 || len(missing) != 1 || !strings.Contains(missing[0], "broken") {
		t.Errorf("of the other one: %+v, missing %v", p, missing)
	}
	known.Leave("broken")
	here.Connect(2)
	p, missing := ask("")
	if p.Proxies != 2 || len(p.Changes) != 1 || p.Changes[0].Proxies != 2 || len(p.Changes[0].Nodes) != 2 || len(missing) > 0 {
		t.Errorf("of both: %+v, missing %v", p, missing)
	}
	if p, _ := ask("?local=true"); p.Proxies != 1 {
		t.Errorf("of this one: %+v", p)
	}
}

// TestProblemsOfAllReplicas checks that the problems include what proxies of
// another replica refuse.
func TestProblemsOfAllReplicas(t *testing.T) {
	here, far, _ := pair(t)
	p := far.Connect(1)
	p.Refuse(discovery.RouteType, "half a request")
	made := here.Create("split")
	far.Watch("&statusEvents=true").Until(made.Metadata.ResourceVersion, "Rejected")
	got := here.Want(http.StatusOK, "GET", "/debug/problems", "")
	if strings.Count(got.Text, "half a request") != 1 || !strings.Contains(got.Text, p.Node) {
		t.Errorf("%s", got.Text)
	}
	if warned := got.Header.Get("Warning"); !strings.Contains(warned, "replica broken does not answer, its problems are missing here") {
		t.Errorf("warned of %q", warned)
	}
	if got := here.Want(http.StatusOK, "GET", "/debug/problems?local=true", ""); strings.Contains(got.Text, "half a request") {
		t.Errorf("of this replica: %s", got.Text)
	}
}

// TestLostInV1ByAProxyElsewhere checks that in a namespace without objects, the
// replica of the proxy reports it.
func TestLostInV1ByAProxyElsewhere(t *testing.T) {
	here, far, known := pair(t)
	known.Leave("broken")
	here.Want(http.StatusCreated, "POST", "/apis/networking.istio.io/v1/namespaces/default/destinationrules", `apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: hashed}
spec: {host: reviews, exportTo: [books], trafficPolicy: {loadBalancer: {consistentHash: {useSourceIp: true}}}}
`, servertest.AsYAML)
	connectNode(far, "sidecar~10.0.0.9~web-1.books~books.svc.cluster.local", nil)
	for at, want := range map[*servertest.World]bool{here: false, far: true} {
		got := at.Want(http.StatusOK, "GET", "/debug/problems?api=v1", "")
		if told := strings.Contains(got.Text, `"name":"hashed"`) && strings.Contains(got.Text, string(diag.LostInV1)); told != want {
			t.Errorf("told by the replica that has the proxy %t: %t: %s", want, told, got.Text)
		}
	}
}
