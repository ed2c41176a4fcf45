// Package nack finds out which resources of a response a proxy refuses, and which it
// accepts instead. Callers give it the acks and nacks of one type on a stream. It returns
// the resources to hold back (State.Instead), those to try again (State.Next), and the
// objects to blame (State.Each). The package sends nothing: a Subscription does.
//
// Read in this order:
//
//	subscription.go   what the package needs of one type on a stream
//	nack.go           State: the resources to blame, by the proxy's words or by halves
//	partialroutes.go  holds back only the refused parts of a route table
//	routepart.go      the parts of a table, and the objects to blame for one
//	heldroutes.go     routes that lead to a refused cluster stay unchanged
//	heldlisteners.go  the same for listeners
//	clone.go          a copy for the next stream of a proxy
package nack
