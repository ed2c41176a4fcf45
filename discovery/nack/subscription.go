package nack

import (
	"github.com/pilot-api/pilot-api/discovery/compiled"
	"github.com/pilot-api/pilot-api/discovery/xds"
)

// Subscription is one type on a stream, as far as this package needs it: to ask about it,
// and to decide what is sent next.
type Subscription interface {
	TypeURL() string
	// Wild reports whether a response of the type, in the state of the world, has all
	// resources, so that a missing one is removed.
	Wild() bool
	// Wants reports whether the proxy subscribes to a name.
	Wants(name string) bool
	// Alike reports whether two sets are equal in everything that the proxy wants.
	Alike(older, s *xds.Set) bool
	// Acked returns what the proxy acked last.
	Acked() compiled.At
	// Acknowledged returns the last resource of a name that the proxy acked, or nil for
	// none. It does not know what the proxy nacks of the name.
	Acknowledged(name string) *xds.Resource
	// ClusterNacks is what the proxy nacks of the clusters that route tables lead to; nil
	// for another type.
	ClusterNacks() *State
	// CameWithSomething reports whether the proxy had something of the type before its
	// stream.
	CameWithSomething() bool

	// AddPending adds the resource of a name to the next response.
	AddPending(name string)
	// RequireAnswer sends a next response even if it is empty.
	RequireAnswer()
	// Restart makes the next response have everything that the proxy wants.
	Restart()
}

// Sent is a response that a proxy was sent.
type Sent struct {
	Nonce string
	*xds.Content
	compiled.At // what it led to
}
