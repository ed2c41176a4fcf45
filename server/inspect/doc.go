// Package inspect answers questions about the configuration that is in force: the proxies
// that have it, what each of them is told, its problems, and what a change would do. It
// asks the other replicas where they know more.
//
// Comes in: a question about discovery. Goes out: its answer, with a warning for each replica
// that did not answer.
//
//	inspect.go        the endpoints
//	proxies.go        the proxies of all replicas
//	proxyconfig.go    what a proxy is told
//	proxyroute.go     what a proxy does with a request
//	preview.go        what changes of objects would do to proxies
//	problems.go       what cannot be honoured
//	idlegateways.go   Gateways that no connected router serves
//	references.go     references between objects
//	standings.go      the statuses on this replica, for other replicas
//	peers.go          requests to other replicas
package inspect
