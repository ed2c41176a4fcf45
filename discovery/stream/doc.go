// Package stream decides what to send to a proxy on a stream, and in which order. Receive
// accepts a request; Next returns the next response. Next computes the response from the
// configuration that the proxy should have (Proxy.View), and from what it was sent, acked
// and nacked. There is no queue. A Stream also reports the state of its proxy (SyncState).
// The package knows no other proxies, no gRPC and no snapshots.
//
// Read in this order: stream.go, subscription.go (one type), order.go (make before break),
// waiting.go, keptendpoints.go, gonetables.go, pending.go; names.go, newlysubscribed.go and
// initialversions.go, which are parts of a subscription; resume.go, for a stream after
// another; status.go and unasked.go, which report; keys.go, proxyless_stream.go,
// proxyless_known.go and held.go for special cases.
package stream
