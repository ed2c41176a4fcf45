// Package stream decides what a proxy on a stream is sent, and in which order. Receive
// accepts a request; Next returns the next response. The response follows from what the
// proxy should have (Proxy.View) and from what it was sent, acked and nacked; there is no
// queue. A Stream also reports the state of its proxy (SyncState). The package knows no
// other proxies, no gRPC and no snapshots.
//
// Read in this order: stream.go, subscription.go (one type), order.go (make before break),
// pending.go; names.go, newlysubscribed.go and initialversions.go, which are parts of a
// subscription; status.go, which reports; keys.go, proxyless_stream.go, proxyless_known.go
// and held.go for special cases.
package stream
