// Package nack finds out which resources of a response a proxy refuses, and which it
// accepts instead. Callers give it the acks and nacks of one type on a stream. It returns
// the resources to hold back (State.Instead), those to try again (State.Next), and the
// objects to blame (State.Each). It holds back only the refused parts of a route table:
// partialRoutes searches for them by halves. Routes and
// listeners that lead to a refused cluster stay unchanged (heldroutes.go, heldlisteners.go). The package sends nothing: a Subscription does.
//
// Read in this order: subscription.go, nack.go, partialroutes.go, routepart.go,
// heldroutes.go, heldlisteners.go.
package nack
