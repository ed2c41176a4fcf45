package ads_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/discovery"
	bootstraps "github.com/pilot-api/pilot-api/envoy"
	"github.com/pilot-api/pilot-api/envoy/envoytest"
	"github.com/pilot-api/pilot-api/internal/outside"
	meshes "github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/server/ads"
)

// demand is a mesh with hosts on demand, and a real Envoy whose workload calls them at a port
// of this machine.
type demand struct {
	*source
	t         *testing.T
	address   string // of the server
	settings  *meshes.Settings
	port      int // at which the Envoy takes calls
	publisher *discovery.Publisher
	metrics   *prometheus.Registry
	stop      func()
}

const caller = "sidecar~10.9.0.1~a.default~default.svc.cluster.local"

// startDemand starts the server, and an Envoy that is ready and has called nothing. Its Sidecar
// may say what it learns on demand.
func startDemand(t *testing.T, mesh meshes.OnDemandMode, sidecar string) *demand {
	outside.Slow(t)
	program := outside.Tool(t, "envoy")
	d := &demand{source: newSource(), t: t, port: freePort(t), address: fmt.Sprintf("127.0.0.1:%d", freePort(t)), settings: meshes.DefaultSettings()}
	d.settings.OnDemand, d.settings.ProxyListenPort, d.settings.AccessLogFile = mesh, freePort(t), ""
	d.settings.EnableTracing = false
	d.put(d.sidecar(sidecar))
	d.start()
	o := bootstraps.DefaultBootstrap()
	o.NodeID, o.Server, o.XDS, o.API, o.AdminPort = caller, "http://"+d.address, []string{d.address}, bootstraps.Delta, freePort(t)
	text, err := bootstraps.Bootstrap(o)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "bootstrap.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, "-c", file, "--use-dynamic-base-id", "--concurrency", "2", "-l", "warning")
	envoytest.Run(t, cmd, "/ready")
	return d
}

// sidecar returns the Sidecar of the Envoy, with the annotation if it is not empty.
func (d *demand) sidecar(onDemand string) *schema.Object {
	d.t.Helper()
	o := object("Sidecar", "default", fmt.Sprintf(
		`{"egress":[{"port":{"number":%d,"protocol":"HTTP","name":"http"},"bind":"127.0.0.1","captureMode":"NONE","hosts":["*/*"]}]}`, d.port))
	if onDemand == "" {
		return o
	}
	meta := o.Meta
	meta.Annotations = map[string]string{schema.OnDemandAnnotation: onDemand}
	o, err := o.WithMeta(meta)
	if err != nil {
		d.t.Fatal(err)
	}
	return o
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// start starts a server that knows nothing of the Envoy.
func (d *demand) start() {
	d.t.Helper()
	listener, err := net.Listen("tcp", d.address)
	if err != nil {
		d.t.Fatal(err)
	}
	d.metrics = prometheus.NewRegistry()
	d.publisher = discovery.New(discovery.Options{Source: d.source, Settings: d.settings, HoldOff: time.Millisecond})
	server := ads.New(ads.Options{Discovery: d.publisher, Registry: d.metrics})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{}, 2)
	go func() { _ = d.publisher.Run(ctx); done <- struct{}{} }()
	go func() { _ = server.Serve(ctx, listener); done <- struct{}{} }()
	d.stop = sync.OnceFunc(func() { cancel(); <-done; <-done })
	d.t.Cleanup(d.stop)
	d.until("the server is ready", d.publisher.Ready)
}

// until waits for a condition that nobody announces.
func (d *demand) until(what string, holds func() bool) {
	d.t.Helper()
	for end := time.Now().Add(time.Minute); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			d.t.Fatalf("it is not so after a minute: %s", what)
		}
	}
}

// untilOpen waits until the Envoy takes calls.
func (d *demand) untilOpen() {
	d.t.Helper()
	d.until("the Envoy takes calls", func() bool {
		conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", d.port))
		if err != nil {
			return false
		}
		return conn.Close() == nil
	})
}

// change publishes objects.
func (d *demand) change(objects ...*schema.Object) {
	d.t.Helper()
	d.put(objects...)
	d.published()
}

func (d *demand) published() {
	d.t.Helper()
	if err := d.publisher.Await(d.t.Context(), d.revision); err != nil {
		d.t.Fatal(err)
	}
}

// service returns a service whose instance answers with its name.
func (d *demand) service(host, name string) *schema.Object {
	backend := envoytest.Serve(d.t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %d", name, len(body))
	})
	return object("ServiceEntry", strings.TrimPrefix(host, "*."), fmt.Sprintf(
		`{"hosts":[%q],"location":"MESH_INTERNAL","resolution":"STATIC","ports":[{"number":%d,"name":"http","protocol":"HTTP"}],"endpoints":[{"address":"127.0.0.1","ports":{"http":%d}}]}`,
		host, d.port, envoytest.Port(backend)))
}

// call sends a request with a body of some length, and returns the status and the text of the
// answer.
func (d *demand) call(host string, length int) string {
	d.t.Helper()
	r, err := http.NewRequestWithContext(d.t.Context(), http.MethodPost, fmt.Sprintf("http://127.0.0.1:%d/", d.port), strings.NewReader(strings.Repeat("x", length)))
	if err != nil {
		d.t.Fatal(err)
	}
	r.Host = host
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Minute}
	answer, err := client.Do(r)
	if err != nil {
		d.t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		d.t.Fatal(err)
	}
	return strings.TrimSpace(fmt.Sprint(answer.StatusCode, " ", string(body)))
}

func (d *demand) want(host, answer string) {
	d.t.Helper()
	if got := d.call(host, 0); got != answer {
		d.t.Errorf("%s answers %q, want %q", host, got, answer)
	}
}

// clusters returns the outbound clusters of services that the Envoy has, by name.
func (d *demand) clusters() (names []string) {
	d.t.Helper()
	node, err := discovery.NewNode(caller, "", nil)
	if err != nil {
		d.t.Fatal(err)
	}
	i, err := d.publisher.Inspect(node)
	if err != nil {
		d.t.Fatal(err)
	}
	all, err := i.Resources("clusters")
	if err != nil {
		d.t.Fatal(err)
	}
	for _, r := range all {
		if strings.HasPrefix(r.Name, "out.") {
			names = append(names, r.Name)
		}
	}
	return names
}

// pushes counts the responses that the server has sent, by type.
func (d *demand) pushes() map[string]float64 {
	d.t.Helper()
	all, err := d.metrics.Gather()
	if err != nil {
		d.t.Fatal(err)
	}
	out := map[string]float64{}
	for _, family := range all {
		if family.GetName() != "pilot_xds_pushes_total" {
			continue
		}
		for _, m := range family.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == "type" && m.GetCounter().GetValue() > 0 {
					out[l.GetValue()] += m.GetCounter().GetValue()
				}
			}
		}
	}
	return out
}

// TestHostsOnDemand is about a real Envoy. It has the hosts that its workload has called, and
// no others.
func TestHostsOnDemand(t *testing.T) {
	d := startDemand(t, meshes.OnDemandHosts, "")
	d.change(d.service("one.default.svc.cluster.local", "one"), d.service("two.default.svc.cluster.local", "two"),
		d.service("*.wild.example.com", "wild"), d.service("idle.default.svc.cluster.local", "idle"))
	d.untilOpen()

	t.Run("FirstRequest", func(t *testing.T) {
		if got := d.clusters(); len(got) > 0 {
			t.Errorf("before the first request it has %v", got)
		}
		if got := d.call("one.default.svc.cluster.local", 0); got != "200 one 0" {
			t.Errorf("the first request is answered %q", got)
		}
		if got := d.clusters(); len(got) != 1 {
			t.Errorf("after a request to one host it has %v", got)
		}
	})
	t.Run("FirstRequestWithABody", func(t *testing.T) {
		if got := d.call("two.default.svc.cluster.local", 300_000); got != "200 two 300000" {
			t.Errorf("the first request is answered %q", got)
		}
	})
	t.Run("OtherSpellings", func(t *testing.T) {
		for _, host := range []string{"ONE.default", "one:8080", "one.default.svc.cluster.local."} {
			d.want(host, "200 one 0")
		}
		if got := d.clusters(); len(got) != 2 {
			t.Errorf("other spellings make it have %v", got)
		}
	})
	t.Run("UnknownHost", func(t *testing.T) {
		d.want("unknown.example.com", "502")
		d.want("x@y", "403 RBAC: access denied")
	})
	t.Run("HostBeneathAWildcard", func(t *testing.T) {
		d.want("x.wild.example.com", "200 wild 0")
		d.change(d.service("y.wild.example.com", "exact"))
		d.want("y.wild.example.com", "200 exact 0")
		d.want("x.wild.example.com", "200 wild 0")
		exact := d.service("x.wild.example.com", "exact")
		d.change(exact)
		d.until("the exact host takes over", func() bool { return d.call("x.wild.example.com", 0) == "200 exact 0" })
		d.remove(exact)
		d.until("the wildcard takes over again", func() bool { return d.call("x.wild.example.com", 0) == "200 wild 0" })
	})
	t.Run("HostThatIsDeclaredLater", func(t *testing.T) {
		d.want("later.example.com", "502")
		later := d.service("later.example.com", "later")
		d.change(later)
		d.until("it is reached", func() bool { return d.call("later.example.com", 0) == "200 later 0" })
		d.remove(later)
		d.until("it is unknown again", func() bool { return d.call("later.example.com", 0) == "502" })
	})
	t.Run("Status", func(t *testing.T) {
		rule := object("VirtualService", "idle", `{"hosts":["idle.default.svc.cluster.local"],"http":[{"directResponse":{"status":418}}]}`)
		d.change(rule)
		ref := diag.Ref{Kind: "VirtualService", Namespace: metav1.NamespaceDefault, Name: "idle"}
		if all := d.publisher.Proxies(ref); len(all) > 0 {
			t.Errorf("a rule for a host that nobody has called concerns %v", all)
		}
		d.want("idle.default.svc.cluster.local", "418")
		if all := d.publisher.Proxies(ref); len(all) != 1 {
			t.Errorf("after a call it concerns %d proxies", len(all))
		}
	})
	t.Run("RefusedHost", func(t *testing.T) {
		// The file is on no proxy's machine, so the Envoy refuses the cluster.
		d.change(d.service("refused.default.svc.cluster.local", "refused"), object("DestinationRule", "refused",
			`{"host":"refused.default.svc.cluster.local","trafficPolicy":{"tls":{"mode":"SIMPLE","caCertificates":"/nowhere/ca.pem"}}}`))
		d.want("refused.default.svc.cluster.local", "503")
		d.want("one.default", "200 one 0")
	})
	t.Run("Restart", func(t *testing.T) {
		d.stop()
		d.want("one.default", "200 one 0")
		d.start()
		d.until("the Envoy is back", func() bool { return len(d.clusters()) > 2 })
		d.until("its hosts are answered", func() bool { return d.pushes()["vhds"] > 0 })
		d.want("two.default", "200 two 0")
		d.want("unknown.example.com", "502")
		sent := d.pushes()
		delete(sent, "vhds")
		// It is sent again what it has refused before.
		delete(sent, "cds")
		if len(sent) > 0 {
			t.Errorf("after a restart it is sent %v", sent)
		}
	})
}

// TestHostsOnDemandBySidecar is about a real Envoy whose Sidecar decides, whatever the mesh
// settings say, and changes its mind.
func TestHostsOnDemandBySidecar(t *testing.T) {
	d := startDemand(t, meshes.OnDemandOff, schema.OnDemandHosts)
	const one, two = "one.default.svc.cluster.local", "two.default.svc.cluster.local"
	d.change(d.service(one, "one"), d.service(two, "two"), d.service("uncalled.default.svc.cluster.local", "uncalled"))
	d.untilOpen()
	d.want(one, "200 one 0")
	if got := d.clusters(); len(got) != 1 {
		t.Errorf("after a request to one host it has %v", got)
	}
	d.change(d.sidecar(schema.OnDemandOff))
	d.until("it has all hosts", func() bool { return len(d.clusters()) == 3 })
	d.want(one, "200 one 0")
	d.want(two, "200 two 0")
	d.change(d.sidecar(schema.OnDemandHosts))
	d.until("it has only what it called", func() bool { return len(d.clusters()) < 3 })
	for range 20 {
		d.want(one, "200 one 0")
		d.want(two, "200 two 0")
	}
}

// TestSidecarWithoutHostsOnDemand: an Envoy whose Sidecar wants all hosts has them from the
// beginning.
func TestSidecarWithoutHostsOnDemand(t *testing.T) {
	d := startDemand(t, meshes.OnDemandHosts, schema.OnDemandOff)
	d.change(d.service("one.default.svc.cluster.local", "one"), d.service("two.default.svc.cluster.local", "two"))
	d.until("the Envoy has all hosts", func() bool { return len(d.clusters()) == 2 })
	d.untilOpen()
	d.want("two.default.svc.cluster.local", "200 two 0")
}
