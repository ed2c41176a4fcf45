package e2e

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/internal/outside"
)

// router is an Envoy at the edge, which opens the ports of Gateways.
const router = "router~127.0.0.60~gateway-1.istio-system~istio-system.svc.cluster.local"

const routerInstance = `apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: istio-ingressgateway, namespace: istio-system}
spec:
  hosts: [istio-ingressgateway.istio-system.svc.cluster.local]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: 15443, name: tls, protocol: TCP}]
  endpoints: [{address: 127.0.0.60, labels: {istio: ingressgateway}}]
`

func TestGateway(t *testing.T) {
	outside.Slow(t)
	t.Parallel()
	w := open(t, bookinfo, edge)
	assert(t, w, gatewayRows)
	others(t, w)
}

// others are routers that a Gateway does not select: they open no port of it,
// while it is served.
func others(t *testing.T, w *World) {
	if _, err := w.Pilot.Istioctl(t.Context(), "apply", "-f", w.file("rules/bookinfo-gateway")); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Pilot.Published(t.Context()), w.Sidecar.Settle(t.Context())); err != nil {
		t.Fatal(err)
	}
	for name, options := range map[string][]string{"no labels": nil, "other labels": {"--labels", "istio=egressgateway"}} {
		other, err := StartSidecar(t.Context(), w.Pilot, t.TempDir(), w.moved.Replace(router), options...)
		if err != nil {
			t.Fatal(err)
		}
		if err := until(t.Context(), "an answer about listeners", other.Process, func(ctx context.Context) error {
			n, err := other.Counter(ctx, "^listener_manager.lds.update_success$")
			if err == nil && n == 0 {
				err = errors.New("none yet")
			}
			return err
		}); err != nil {
			t.Error(err)
		}
		for sidecar, want := range map[*Sidecar]bool{w.Sidecar: true, other: false} {
			taken, err := sidecar.taken(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if opened := len(taken["routes/"+w.gatewayPort()]) > 0; opened != want {
				t.Errorf("%s: has the routes of the Gateway: %v, want %v", name, opened, want)
			}
		}
		if err := other.Stop(); err != nil {
			t.Error(err)
		}
	}
}

func TestGatewayOverV1(t *testing.T) {
	outside.Slow(t)
	t.Parallel()
	assert(t, open(t, bookinfo, edgeOverV1), gatewayRows)
}

var gatewayRows = []Row{
	{
		Rules:  []string{"bookinfo-gateway"},
		Should: "productpage for its paths, 404 for others",
		Ask: paths("productpage", "/productpage", "/static/bookinfo.css", "/login", "/logout", "/api/v1/products/0",
			"/", "/productpage/0", "/api/v1/product"),
		Did: onlyBelow("/productpage", "/static/bookinfo.css", "/login", "/logout", "/api/v1/products/0"),
	},
	{
		Rules:  []string{"certmanager-gateway"},
		Should: "cert-manager-resolver for challenges, 404 for others",
		Ask:    paths("cert-manager-resolver", "/.well-known/acme-challenge/token", "/.well-known/other", "/productpage"),
		Did:    onlyBelow("/.well-known/acme-challenge/token"),
	},
}

// edge is the way in from outside the mesh, by a port that a Gateway opens.
func edge(ctx context.Context, w *World) (err error) {
	w.atGateway()
	w.Sidecar, err = StartSidecar(ctx, w.Pilot, w.Dir, w.moved.Replace(router), "--labels", "istio=ingressgateway")
	return err
}

// edgeOverV1 states no labels: the router has those of an instance.
func edgeOverV1(ctx context.Context, w *World) error {
	w.atGateway()
	file := filepath.Join(w.Dir, "router.yaml")
	if err := os.WriteFile(file, []byte(w.moved.Replace(routerInstance)), 0o600); err != nil {
		return err
	}
	if _, err := w.Pilot.Istioctl(ctx, "create", "-f", file); err != nil {
		return err
	}
	return startBridged(ctx, w, w.moved.Replace(router))
}

// atGateway sends every request to the gateway, whatever its host.
func (w *World) atGateway() {
	at := "127.0.0.1:" + w.gatewayPort()
	w.client = asking(&http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, network, at)
	}})
}

// gatewayPort is the one that the router opens.
func (w *World) gatewayPort() string {
	return strings.TrimSuffix(strings.TrimPrefix(w.moved.Replace(gatewayPort), "number: "), ",")
}

// paths asks the service for each in turn.
func paths(service string, paths ...string) func(int) Ask {
	return func(i int) Ask { return Ask{Service: service, Path: paths[i%len(paths)]} }
}

// onlyBelow holds when the service answers for these paths and nobody for
// others.
func onlyBelow(paths ...string) func(*Traffic) (string, string) {
	open := map[string]bool{}
	for _, path := range paths {
		open[path] = true
	}
	return func(t *Traffic) (string, string) {
		what := func(a *Answer) string { return a.Path + " " + status(a) }
		return t.tally(what), t.all("as they should be", func(a *Answer) bool {
			if !open[a.Path] {
				return a.Status == http.StatusNotFound
			}
			return a.Echo == Echo{Service: a.Service, Version: a.Echo.Version, Path: a.Path}
		})
	}
}
