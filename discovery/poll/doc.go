// Package poll decides what a proxy that polls is answered, and what its polls say about
// it. In comes a Request with the view that is published for the proxy; out comes the
// view, or two together, that the answer is of. A Transition keeps the order of make
// before break, and holds on to an unknown version until this replica has caught up; for
// v1, Fetched keeps what was last answered. The package locates no proxies.
//
// Read in this order: transition.go, subscription.go, shown.go, unknownversion.go,
// pollstatus.go, fetched.go.
package poll
