// Package poll decides how to answer polls, and what they say about the proxy. Callers give
// it a Request with the view that is published for the proxy. It returns the view for the
// answer, or two views together. A Transition keeps the order of make before break. It
// keeps an unknown version unchanged until this replica has caught up. For v1, Fetched
// records the last answers. The package finds no proxies.
//
// Read in this order: transition.go, subscription.go, shown.go, unknownversion.go,
// keptendpoints.go, gonetables.go, pollstatus.go, fetched.go.
package poll
