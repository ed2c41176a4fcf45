// Package fleet knows the proxies. It finds the one that asks, the entry in which the
// views of its mesh.View.Key follow each other, and whom a change of the registry gives
// another view; everybody else is not looked at. In come nodes, streams and snapshots;
// out come clients with the view that each should have, how they stand, and what they
// refuse. Proxies and views are bounded: eviction.go says who makes room. The package
// compiles nothing itself (Compile).
//
// Read in this order: fleet.go, client.go, viewentry.go, connected.go, absent.go, eviction.go,
// addresses.go; then what reports: syncstate.go, proxystatus.go, refusing.go, denied.go,
// lookup.go, askv1.go.
package fleet
