// Package nack finds out what of a response a proxy refuses, and what it takes instead.
// In come the acks and nacks of one type on a stream; out come the resources that are
// held back (State.Instead), those to try again (State.Next), and the objects to blame
// (State.Each). Of a route table only the refused parts are held back: partialRoutes
// searches for them by halves. Routes that lead to a refused cluster stay as they were
// (heldroutes.go). The package sends nothing: a Subscription does.
//
// Read in this order: subscription.go, nack.go, partialroutes.go, routepart.go,
// heldroutes.go.
package nack
