// Package inspect answers questions about the configuration in force: which proxies have
// it, what each of them receives, its problems, and the effect of a change. It asks the
// other replicas about their own proxies.
//
// An answer has a warning for each replica that did not answer.
//
//	inspect.go        the endpoints
//	proxies.go        the proxies of all replicas
//	proxyconfig.go    what a proxy is told
//	proxyroute.go     what a proxy does with a request
//	preview.go        what changes of objects would do to proxies
//	problems.go       what cannot be honoured
//	idlegateways.go   Gateways that no connected router serves
//	references.go     references between objects
//	reach.go          who can call whom
//	standings.go      the statuses on this replica, for other replicas
//	peers.go          requests to other replicas
package inspect
