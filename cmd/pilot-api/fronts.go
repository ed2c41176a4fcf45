package main

import (
	"context"
	"time"

	"github.com/pilot-api/pilot-api/server"
	"github.com/pilot-api/pilot-api/server/ads"
	"github.com/pilot-api/pilot-api/store"
)

// proxyReturn is about the longest time that an Envoy waits before it retries a server
// that was away.
const proxyReturn = 30 * time.Second

// newFronts returns what serves clients: the API with the polls of proxies, and the streams
// of proxies if there is a listener for them.
func newFronts(b *base, at *listeners, s *storage, c *accessControl, p *publisher) []task {
	api := newAPI(b, at, s, c, p)
	fronts := []task{func(ctx context.Context) error { return api.ServeOn(ctx, at.listeners(at.local.http.listeners())) }}
	b.log.Info("pilot-api is listening", "address", at.api.Addr().String(), "version", version, "store", b.storeName())
	fronts = append(fronts, func(ctx context.Context) error {
		return api.RecordStatuses(ctx, statusKeeper{s.objects, s.cached, s.backend, b.etcdPrefix, s.others.Self})
	})
	if at.streams == nil {
		return fronts
	}
	streams := newStreams(b, at, c, p)
	b.log.Info("pilot-api streams to Envoys", "address", at.streams.Addr().String())
	return append(fronts, func(ctx context.Context) error {
		if err := c.known.wait(ctx); err != nil {
			return err // Until then, no proxy proves anything.
		}
		return streams.Serve(ctx, at.streams, at.local.grpc.listeners()...)
	})
}

func newAPI(b *base, at *listeners, s *storage, c *accessControl, p *publisher) *server.Server {
	return server.New(server.Options{
		Store:     store.Strict(s.objects),
		Reads:     s.cached,
		Discovery: p.Publisher,
		Peers:     peersInInventory{s.others, p.known},

		Authn:       c.authn,
		AccessKnown: c.known.is,
		Audit:       c.events,
		Proxies:     c.prover,
		Tokens:      c.tokens,
		Roles:       c.roles,
		Hosts:       c.hosts,

		Authority:       b.signing.CA,
		RotateAuthority: b.signing.rotate,
		Revoke:          b.signing.revoke,

		Domain:   b.domain,
		Ready:    readiness(s.backend, s.lag, c.known, p.Publisher, s.others),
		Registry: b.registry,
		Log:      b.log,
		Version:  versionInfo(),

		Long:           b.long,
		MaxTransaction: s.limits(*b.options).Ops,
		Sockets:        at.local.addresses(at.streams),
		ProxyReturn:    proxyReturn,
		HostNames:      b.limits.hostNames,
		MaxConnections: b.maxConnections(),
		Users:          b.limits.users(),
	})
}

func newStreams(b *base, at *listeners, c *accessControl, p *publisher) *ads.Server {
	return ads.New(ads.Options{
		Discovery:      p.Publisher,
		Proxies:        c.prover,
		Certificates:   c.certificates.Verify,
		Services:       b.signing.services(c.access, c.certificates, b.settings.SPIFFETrustDomain(), c.events, b.log),
		TLS:            at.streamConfig(),
		MaxConnections: b.maxConnections(),
		Memory:         b.limits.streamMemory(),
		Log:            b.log,
		Registry:       b.registry,
	})
}
