package nack

import (
	"github.com/pilot-api/pilot-api/discovery/compiled"
	"github.com/pilot-api/pilot-api/discovery/xds"
)

// Subscription is one type on a stream, with the methods that this package needs: some
// report its state, and others decide what to send next.
type Subscription interface {
	TypeURL() string
	// Address returns the address of the proxy.
	Address() string
	// Wild reports whether a state-of-the-world response of the type lists all resources,
	// so that the proxy removes a missing one.
	Wild() bool
	// Wants reports whether the proxy subscribes to a name.
	Wants(name string) bool
	// Alike reports whether two sets are equal in everything that the proxy wants.
	Alike(older, s *xds.Set) bool
	// Acked returns what the proxy acked last.
	Acked() compiled.At
	// Acknowledged returns the last resource of a name that the proxy acked, or nil for
	// none. It ignores nacks.
	Acknowledged(name string) *xds.Resource
	// ClusterNacks returns the nacks of the clusters that the resources lead to, or nil for a
	// type other than listeners and route tables.
	ClusterNacks() *State
	// CameWithSomething reports whether the proxy had resources of the type before its
	// stream began.
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
