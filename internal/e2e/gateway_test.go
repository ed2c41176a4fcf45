package e2e

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"testing"
)

// router is an Envoy at the edge, which opens the ports of Gateways.
const router = "router~127.0.0.60~gateway-1.istio-system~istio-system.svc.cluster.local"

func TestGateway(t *testing.T) {
	t.Parallel()
	assert(t, open(t, bookinfo, edge), gatewayRows)
}

func TestGatewayOverV1(t *testing.T) {
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
	w.Sidecar, err = StartSidecar(ctx, w.Pilot, w.Dir, w.moved.Replace(router))
	return err
}

func edgeOverV1(ctx context.Context, w *World) error {
	w.atGateway()
	return startBridged(ctx, w, w.moved.Replace(router))
}

// atGateway sends every request to the gateway, whatever its host.
func (w *World) atGateway() {
	var port int
	if _, err := fmt.Sscanf(w.moved.Replace(gatewayPort), "number: %d,", &port); err != nil {
		panic(err)
	}
	at := fmt.Sprintf("127.0.0.1:%d", port)
	w.client = asking(&http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, network, at)
	}})
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
