// Package fleet keeps track of the proxies. It finds the client of a request, and the entry
// with the views of its mesh.Traits.Key. When the registry changes, it finds the proxies that
// get another view, and looks at no others. Callers give it nodes, streams and snapshots.
// It returns clients with the view that each should have, their state, and what they
// refuse. Proxies and views are bounded: eviction.go decides which of them to drop. The
// package compiles nothing itself (Compile).
//
// Read in this order: fleet.go, client.go, viewentry.go, connected.go, absent.go,
// eviction.go, addresses.go, remains.go; then the files that report: syncstate.go, proxystatus.go,
// refusing.go, denied.go, lookup.go, askv1.go.
package fleet
