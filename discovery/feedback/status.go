package feedback

import (
	"fmt"
	"strings"
	"time"

	"github.com/pilot-api/pilot-api/mesh"
)

// Transport is how a proxy gets its configuration.
type Transport string

// Transports, the names that a bootstrap has for them (envoy.APIs).
const (
	OverDelta Transport = "delta"
	OverADS   Transport = "ads"
	OverREST  Transport = "rest"
	OverGRPC  Transport = "grpc" // without a proxy, over ads
	OverV1    Transport = "v1"
)

// SyncState is where a proxy stands with one type (docs/decisions/019-feedback.md).
type SyncState string

const (
	Synced   SyncState = "SYNCED"   // acknowledged, nothing newer is due
	Sent     SyncState = "SENT"     // on its way
	Stale    SyncState = "STALE"    // something newer is due and was not sent yet
	Rejected SyncState = "REJECTED" // refused
	Fetched  SyncState = "FETCHED"  // asked for; whether it was taken cannot be known
)

// TypeStatus is one type of one proxy.
type TypeStatus struct {
	State   SyncState `json:"state"`
	Version string    `json:"version,omitempty"` // last acknowledged, or fetched
	Error   string    `json:"error,omitempty"`   // the proxy's words
}

// ProxyStatus is what this replica knows of a proxy that is connected to it, or
// polled it lately.
type ProxyStatus struct {
	Node           string    `json:"node"`
	Role           mesh.Role `json:"role"`
	Transport      Transport `json:"transport"`
	EnvoyVersion   string    `json:"envoyVersion,omitempty"`
	Address        string    `json:"address,omitempty"`
	ConnectedSince time.Time `json:"connectedSince"`
	// State is StateDisconnected for a proxy that is not connected any more, else empty.
	State    string     `json:"state,omitempty"`
	LastSeen *time.Time `json:"lastSeen,omitempty"`
	// Lost: it did not end its connection itself, and may run.
	Lost bool `json:"lost,omitempty"`
	// Revision that the proxy runs, as far as is known, but for parts of route tables
	// that it refuses; 0 for none, and over v1, where it cannot be known.
	Revision int64 `json:"revision"`
	// Fetched is the revision that a proxy over v1 has fetched, but perhaps for endpoints.
	Fetched int64                 `json:"fetchedRevision,omitempty"`
	Types   map[string]TypeStatus `json:"types"` // by clusters, listeners, routes, endpoints, secrets
}

// Note takes in the state of a type; of several route tables the worst one's.
func (p *ProxyStatus) Note(name string, s TypeStatus) {
	if Worse(p.Types[name].State, s.State) == s.State {
		p.Types[name] = s
	}
}

// Refusal is one proxy's.
type Refusal struct {
	Node  string `json:"node"`
	Type  string `json:"type"` // as in ProxyStatus
	Words string `json:"words"`
	// Withheld: the proxy does not refuse it, it is not sent it.
	Withheld bool `json:"withheld,omitempty"`
}

// String is the refusal in one line.
func (r Refusal) String() string {
	verb := "refuses its"
	if r.Withheld {
		verb = "is not sent its"
	}
	return fmt.Sprintf("proxy %s %s %s: %s", r.Node, verb, r.Type, r.OneLine())
}

func (r Refusal) OneLine() string { return strings.Join(strings.Fields(r.Words), " ") }

// badness of states; what is not there is none.
var badness = map[SyncState]int{Fetched: 1, Synced: 2, Sent: 3, Stale: 4, Rejected: 5}

func Worse(a, b SyncState) SyncState {
	if badness[b] > badness[a] {
		return b
	}
	return a
}

// OrSent returns the state of a proxy, Sent for one that has not asked for anything yet.
func OrSent(state SyncState) SyncState {
	if state == "" {
		return Sent
	}
	return state
}
