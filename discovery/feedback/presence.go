package feedback

import (
	"time"

	"github.com/pilot-api/pilot-api/mesh"
)

// Presence describes a proxy that is connected, or was. It is kept over
// restarts, and replicas show it to each other.
type Presence struct {
	Node           mesh.Node `json:"node"`
	Role           mesh.Role `json:"role"`
	Transport      Transport `json:"transport"`
	EnvoyVersion   string    `json:"envoyVersion,omitempty"`
	Address        string    `json:"address,omitempty"`
	ConnectedSince time.Time `json:"connectedSince"`
	LastSeen       time.Time `json:"lastSeen"`
	Revision       int64     `json:"revision"` // that it ran then; over v1, that it had fetched
	Connected      bool      `json:"connected,omitempty"`
	// Lost means that the proxy did not end its connection itself. It may still run, and
	// may come back.
	Lost bool `json:"lost,omitempty"`
	// Awaited means that it was lost so short a while ago that the server waits for it. It may
	// have been seen last long before that, if the server was down meanwhile.
	Awaited bool `json:"awaited,omitempty"`
}

// StateDisconnected is the State of a proxy that was connected and is not now.
const StateDisconnected = "DISCONNECTED"

// Status returns the status to show for a proxy that is not connected.
func (p Presence) Status() ProxyStatus {
	out := ProxyStatus{
		Node: p.Node.ID, Role: p.Role, Transport: p.Transport, EnvoyVersion: p.EnvoyVersion, Address: p.Address,
		ConnectedSince: p.ConnectedSince, State: StateDisconnected, LastSeen: &p.LastSeen, Lost: p.Lost,
		Types: map[string]TypeStatus{},
	}
	if p.Transport == OverV1 {
		out.Fetched = p.Revision
	} else {
		out.Revision = p.Revision
	}
	return out
}

// Size returns its approximate size in memory, in bytes.
func (p Presence) Size() int {
	return 256 + len(p.Node.ID) + len(p.Node.Namespace) + len(p.Node.Locality) + len(p.Node.Labels) + len(p.EnvoyVersion) + len(p.Address)
}
