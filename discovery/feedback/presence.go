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
	// Lost: it did not end its connection itself. It may run, and may come back.
	Lost bool `json:"lost,omitempty"`
}

// StateDisconnected is the State of a proxy that was connected and is not now.
const StateDisconnected = "DISCONNECTED"

// Status returns how a proxy that is not connected is shown.
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

// Size is about how many bytes it takes in memory.
func (p Presence) Size() int {
	return 256 + len(p.Node.ID) + len(p.Node.Namespace) + len(p.Node.Locality) + len(p.Node.Labels) + len(p.EnvoyVersion) + len(p.Address)
}
