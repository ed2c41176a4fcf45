package scale_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/pilot-api/pilot-api/client"
	"github.com/pilot-api/pilot-api/internal/scale"
	"github.com/pilot-api/pilot-api/internal/testbed"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// row is a size of the table in docs/operations.md.
type row struct {
	services, namespaces, proxies int
	exportTo                      string
	calls                         int // hosts on demand that each workload calls; 0 for all hosts
}

func (r row) String() string {
	to := map[string]string{".": "private", "*": "for-all"}[r.exportTo]
	name := fmt.Sprintf("services=%d/namespaces=%d/proxies=%d/rules=%s", r.services, r.namespaces, r.proxies, to)
	if r.calls > 0 {
		name += fmt.Sprintf("/calls=%d", r.calls)
	}
	return name
}

func (r row) settings() string {
	if r.calls > 0 {
		return "onDemand: hosts\n"
	}
	return "onDemand: off\n"
}

// BenchmarkScale measures a server and its proxies from the first connection on:
//
//   - sync-s, sync-cpu-s: until all proxies have everything, and the server's processor time
//   - MiB: the server's resident memory then
//   - route-ms, endpoint-ms: until all proxies that a change concerns have it
//   - service-ms, service-cpu-ms: the same of a new service, and the processor time
//   - ready-s, again-s: after kill -9, until the server is ready, and until all proxies
//     are in sync again
//   - resent: resources that were sent to the proxies that returned
func BenchmarkScale(b *testing.B) {
	rows := []row{
		{1000, 50, 1000, ".", 0}, {1000, 50, 50, "*", 0},
		{5000, 100, 200, ".", 0}, {5000, 100, 200, "*", 0}, {5000, 100, 200, ".", 20}, {5000, 100, 200, "*", 20},
		{20000, 100, 50, ".", 0}, {20000, 100, 50, "*", 0}, {20000, 100, 50, ".", 20}, {20000, 100, 50, "*", 20},
	}
	for _, r := range rows {
		b.Run(r.String(), func(b *testing.B) {
			for b.Loop() {
				measure(b, r)
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

// TestScale runs the benchmark with a small mesh.
func TestScale(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs a server")
	}
	measure(t, row{20, 4, 8, ".", 0})
	measure(t, row{20, 4, 8, ".", 5})
}

// world is a server with its proxies.
type world struct {
	testing.TB
	ctx     context.Context
	mesh    scale.Mesh
	server  *testbed.Server
	client  *client.Client
	proxies []*scale.Proxy
}

func measure(tb testing.TB, r row) {
	w := newWorld(tb, r)
	start, cpu := time.Now(), w.server.CPU()
	leave := w.connect()
	w.allRun(0)
	w.report(time.Since(start), time.Second, "sync-s")
	w.report(w.server.CPU()-cpu, time.Second, "sync-cpu-s")
	now, _ := w.server.Memory()
	w.metric(float64(now)/(1<<20), "MiB")

	w.report(w.change(w.mesh.Rule(0, "6s")), time.Millisecond, "route-ms")
	w.report(w.change(w.mesh.WithInstances(1, 5)), time.Millisecond, "endpoint-ms")
	w.addService()
	leave()
	w.restart()
}

func newWorld(tb testing.TB, r row) *world {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), 20*time.Minute)
	tb.Cleanup(cancel)
	dir := tb.TempDir()
	must(tb, testbed.Build(dir, "pilot-api"))
	settings := dir + "/mesh.yaml"
	must(tb, os.WriteFile(settings, []byte(r.settings()), 0o600))
	server, err := testbed.NewServer(dir, "server", dir+"/pilot-api", "--data-dir", dir+"/data", "--mesh-config", settings)
	must(tb, err)
	must(tb, server.Start())
	tb.Cleanup(server.Kill)
	must(tb, server.Ready(ctx))
	c, err := client.New(server.URL, client.Options{Retries: 100})
	must(tb, err)
	w := &world{TB: tb, ctx: ctx, server: server, client: c, mesh: scale.Mesh{Services: r.services, Namespaces: r.namespaces, ExportTo: r.exportTo}}
	must(tb, w.mesh.Create(ctx, c))
	for n := range r.proxies {
		p := scale.NewProxy(w.mesh.Node(n))
		p.Calls = w.mesh.Calls(n, r.calls)
		w.proxies = append(w.proxies, p)
	}
	return w
}

// connect connects all proxies, each on a connection of its own. The returned function
// ends their streams.
func (w *world) connect() (leave func()) {
	ctx, cancel := context.WithCancel(w.ctx)
	g := &errgroup.Group{}
	for _, p := range w.proxies {
		g.Go(func() error {
			conn, err := grpc.NewClient(w.server.XDS, grpc.WithTransportCredentials(insecure.NewCredentials()),
				grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(1<<30)))
			if err != nil {
				return err
			}
			defer conn.Close()
			for ctx.Err() == nil {
				if err := p.Run(ctx, conn); ctx.Err() == nil {
					w.Logf("%s connects again: %v", p.Node, err)
				}
				pause(ctx)
			}
			return nil
		})
	}
	return func() {
		cancel()
		if err := g.Wait(); err != nil {
			w.Error(err)
		}
	}
}

// allRun waits until the server says that all proxies run a revision, or a later one.
func (w *world) allRun(revision int64) {
	w.Helper()
	must(w, w.server.Until(w.ctx, "all proxies to be in sync", func(ctx context.Context) error {
		found, err := w.client.Proxies(ctx)
		if err != nil {
			return err
		}
		waiting := slices.IndexFunc(w.proxies, func(p *scale.Proxy) bool { return p.Answered.Load() < int64(len(p.Calls)) })
		behind := slices.IndexFunc(found, func(p client.Proxy) bool { return p.Revision < max(1, revision) || !synced(p) })
		switch {
		case len(found) < len(w.proxies):
			pause(ctx)
			return fmt.Errorf("%d of %d proxies are connected", len(found), len(w.proxies))
		case waiting >= 0:
			pause(ctx)
			p := w.proxies[waiting]
			return fmt.Errorf("%s was answered %d of %d hosts", p.Node, p.Answered.Load(), len(p.Calls))
		case behind >= 0:
			pause(ctx)
			return fmt.Errorf("%s is at %d, %v", found[behind].Node, found[behind].Revision, found[behind].Types)
		}
		return nil
	}))
}

// pause waits between two tries, so that these take little of the machine.
func pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(100 * time.Millisecond):
	}
}

// synced reports whether a proxy has acked everything of all types that it must have.
func synced(p client.Proxy) bool {
	for _, name := range []string{"clusters", "listeners", "routes", "endpoints"} {
		if p.Types[name].State != "SYNCED" {
			return false
		}
	}
	return true
}

// change updates an object and returns the time until all proxies run it.
func (w *world) change(o *schema.Object) time.Duration {
	w.Helper()
	stored, err := w.client.Get(w.ctx, o.Key(), store.ReadOptions{})
	must(w, err)
	o, err = o.WithMeta(stored.Meta)
	must(w, err)
	start := time.Now()
	stored, err = w.client.Update(w.ctx, o)
	must(w, err)
	w.allRun(revisionOf(w, stored))
	return time.Since(start)
}

func (w *world) addService() {
	w.Helper()
	start, cpu := time.Now(), w.server.CPU()
	must(w, w.mesh.CreateService(w.ctx, w.client, w.mesh.Services))
	revision, err := w.client.Revision(w.ctx)
	must(w, err)
	w.allRun(revision)
	w.report(time.Since(start), time.Millisecond, "service-ms")
	w.report(w.server.CPU()-cpu, time.Millisecond, "service-cpu-ms")
}

// restart kills the server, and connects the proxies again when it is ready.
func (w *world) restart() {
	w.Helper()
	w.server.Kill()
	start := time.Now()
	must(w, w.server.Start())
	must(w, w.server.Ready(w.ctx))
	w.report(time.Since(start), time.Second, "ready-s")
	for _, p := range w.proxies {
		p.Received.Store(0)
		p.Answered.Store(0)
	}
	leave := w.connect()
	defer leave()
	w.allRun(0)
	w.report(time.Since(start), time.Second, "again-s")
	var resent int64
	for _, p := range w.proxies {
		resent += p.Received.Load()
	}
	w.metric(float64(resent), "resent")
}

func (w *world) report(d, unit time.Duration, name string) { w.metric(float64(d)/float64(unit), name) }

func (w *world) metric(value float64, name string) {
	if b, ok := w.TB.(*testing.B); ok {
		b.ReportMetric(value, name)
	}
}

func revisionOf(tb testing.TB, o *schema.Object) int64 {
	revision, err := strconv.ParseInt(o.Meta.ResourceVersion, 10, 64)
	must(tb, err)
	return revision
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil && !errors.Is(err, context.Canceled) {
		tb.Fatal(err)
	}
}
