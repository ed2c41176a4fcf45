// Package poll decides how polls are answered, and what they say about the proxy. In comes
// a Request with the view that is published for the proxy. Out comes the view that the
// answer is made from, or two views together. A Transition keeps the order of make before
// break, and keeps an unknown version as it is until this replica has caught up. For v1,
// Fetched records the last answers. The package finds no proxies.
//
// Read in this order: transition.go, subscription.go, shown.go, unknownversion.go,
// pollstatus.go, fetched.go.
package poll
