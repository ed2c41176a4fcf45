package e2e

import (
	"context"
	"net"
	"net/http"
	"strings"

	"github.com/pilot-api/pilot-api/internal/e2e/bridge"
)

// serviceIP is where clients believe a service to be; nothing is there.
const serviceIP = "10.1.0.5"

// captured is the way in for a client that knows nothing of a proxy, to an
// Envoy that runs on v1 answers.
func captured(ctx context.Context, w *World) error {
	if err := startBridged(ctx, w, w.moved.Replace(node)); err != nil {
		return err
	}
	virtual := w.moved.Replace("127.0.0.1:15001")
	w.client = asking(&http.Transport{
		MaxIdleConnsPerHost: 16,
		DialContext: func(ctx context.Context, network, service string) (net.Conn, error) {
			return dialCaptured(ctx, virtual, service)
		},
	})
	return w.reachable(ctx)
}

// proxyPortOverV1 is the way in by the HTTP proxy port of such an Envoy, which
// needs settings that are not Pilot's.
func proxyPortOverV1(ctx context.Context, w *World) error {
	if err := startBridged(ctx, w, w.moved.Replace(node)); err != nil {
		return err
	}
	return w.useProxyPort(ctx)
}

// dialCaptured connects to the listener that all connections are redirected to,
// with one that was going to a port of a service.
func dialCaptured(ctx context.Context, virtual, service string) (net.Conn, error) {
	_, port, err := net.SplitHostPort(service)
	if err != nil {
		return nil, err
	}
	return dialRedirected(ctx, virtual, net.JoinHostPort(serviceIP, port))
}

// startBridged runs an Envoy for the node on what a bridge has got for it.
func startBridged(ctx context.Context, w *World, node string) error {
	admin := w.moved.Replace("15000")
	old, err := w.Pilot.Istioctl(ctx, "bootstrap", node, "--api", "v1", "--admin-port", admin)
	if err != nil {
		return err
	}
	b, err := bridge.New(old, "e2e", node, w.Dir)
	if err != nil {
		return err
	}
	if _, err := b.Poll(ctx); err != nil {
		return err
	}
	bootstrap, err := b.Bootstrap()
	if err != nil {
		return err
	}
	w.Sidecar = &Sidecar{Node: node, Admin: "http://127.0.0.1:" + admin, offered: bridged(b)}
	return w.Sidecar.run(ctx, w.Pilot.programs, w.Dir, bootstrap)
}

// bridged offers what v1 discovery says now. A listener that drains keeps its
// table.
func bridged(b *bridge.Bridge) func(context.Context, state) (state, error) {
	return func(ctx context.Context, taken state) (state, error) {
		offered, err := b.Poll(ctx)
		for key := range taken {
			if _, ok := offered[key]; !ok && err == nil && strings.HasPrefix(key, "routes/") {
				offered[key] = taken[key]
			}
		}
		return offered, err
	}
}
