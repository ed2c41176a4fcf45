package nack

import (
	"github.com/pilot-api/pilot-api/discovery/compiled"
	"github.com/pilot-api/pilot-api/discovery/xds"
)

// Subscription is one type on a stream, as far as this package asks about it and decides
// what is sent next.
type Subscription interface {
	TypeURL() string
	// Wild reports whether responses of the type, in the state of the world, hold
	// everything, so that what is missing is removed.
	Wild() bool
	// Wants reports whether the proxy subscribes to a name.
	Wants(name string) bool
	// Alike reports whether two sets are the same in all that the proxy wants.
	Alike(older, s *xds.Set) bool
	// Acked is what the proxy acknowledged last.
	Acked() compiled.At
	// Acknowledged is the last resource of a name that the proxy took, when nothing of
	// the name is refused; nil for none.
	Acknowledged(name string) *xds.Resource
	// ClusterNacks is what the proxy nacks of the clusters that route tables lead to; nil
	// for another type.
	ClusterNacks() *State
	// CameWithSomething reports whether the proxy had something of the type before its
	// stream.
	CameWithSomething() bool

	// AddPending has the next response hold a resource of a name again.
	AddPending(name string)
	// RequireAnswer has a next response, even if there is nothing in it.
	RequireAnswer()
	// Restart has the next response hold all that the proxy wants.
	Restart()
}

// Sent is a response that a proxy was sent.
type Sent struct {
	Nonce string
	*xds.Content
	compiled.At // what it led to
}
