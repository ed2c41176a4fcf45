// Package fleet knows the proxies. It finds the client of a request, the entry that has the
// views of its mesh.View.Key, and the proxies that get another view when the registry
// changes; it looks at no other proxies. In come nodes, streams and snapshots. Out come
// clients with the view that each should have, their state, and what they refuse. Proxies
// and views are bounded: eviction.go decides which of them are dropped. The package
// compiles nothing itself (Compile).
//
// Read in this order: fleet.go, client.go, viewentry.go, connected.go, absent.go, eviction.go,
// addresses.go; then what reports: syncstate.go, proxystatus.go, refusing.go, denied.go,
// lookup.go, askv1.go.
package fleet
