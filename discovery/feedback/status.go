package feedback

import (
	"fmt"
	"strings"
	"time"

	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
)

// Transport is how a proxy gets its configuration.
type Transport string

// The transports have the names that bootstraps use (envoy.APIs).
const (
	OverDelta Transport = "delta"
	OverADS   Transport = "ads"
	OverREST  Transport = "rest"
	OverGRPC  Transport = "grpc" // without a proxy, over ads
	OverV1    Transport = "v1"
)

// SyncState is how far a proxy is with one type of its configuration
// (docs/decisions/019-feedback.md).
type SyncState string

const (
	Synced   SyncState = "SYNCED"   // acknowledged, and nothing newer is pending
	Sent     SyncState = "SENT"     // sent, and not answered yet
	Stale    SyncState = "STALE"    // something newer is pending
	Rejected SyncState = "REJECTED" // refused
	Fetched  SyncState = "FETCHED"  // fetched; whether the proxy accepted it cannot be known
)

// TypeStatus has the sync state of one type of one proxy, and its version.
type TypeStatus struct {
	State   SyncState `json:"state"`
	Version string    `json:"version,omitempty"` // last acknowledged, or fetched
	Error   string    `json:"error,omitempty"`   // the proxy's words, or what it does not subscribe to
}

// ProxyStatus describes a proxy that is connected to this replica, or polled it
// recently.
type ProxyStatus struct {
	Node      string    `json:"node"`
	Namespace string    `json:"namespace,omitempty"` // that the proxy states
	Role      mesh.Role `json:"role"`
	// Labels are those that its node states.
	Labels         mesh.Labels `json:"labels,omitempty"`
	Transport      Transport   `json:"transport"`
	EnvoyVersion   string      `json:"envoyVersion,omitempty"`
	Address        string      `json:"address,omitempty"`
	ConnectedSince time.Time   `json:"connectedSince"`
	// State is StateDisconnected for a proxy that is not connected any more, else empty.
	State    string     `json:"state,omitempty"`
	LastSeen *time.Time `json:"lastSeen,omitempty"`
	// Lost means that the proxy did not end its connection itself, and may still run.
	Lost bool `json:"lost,omitempty"`
	// Revision is the one that the proxy runs, as far as is known, except for parts of
	// route tables that it refuses. It is 0 if there is none, and over v1, where the server
	// cannot know it.
	Revision int64 `json:"revision"`
	// Fetched is the revision that a v1 proxy has fetched. Its endpoints may be older.
	Fetched int64                 `json:"fetchedRevision,omitempty"`
	Types   map[string]TypeStatus `json:"types"` // by clusters, listeners, routes, endpoints, secrets
	// Roots is nil for a proxy that does not take the roots of the mesh from this server.
	Roots *RootsStatus `json:"roots,omitempty"`
}

// RootsStatus says which roots of the mesh a proxy trusts.
type RootsStatus struct {
	// Names are the names of the authorities that the proxy should trust.
	Names []string `json:"names"`
	// Acknowledged means that the proxy has acknowledged them.
	Acknowledged bool `json:"acknowledged"`
}

// NoteRoots sets Roots for a proxy with a configuration. Types must be complete.
func (p *ProxyStatus) NoteRoots(config *ir.Config) {
	if p.Transport == OverV1 || p.Transport == OverGRPC {
		return // They take no secrets.
	}
	for _, s := range config.Secrets {
		if s.Roots != "" {
			p.Roots = &RootsStatus{strings.Split(s.Roots, ","), p.Types["secrets"].State == Synced}
		}
	}
}

// Note adds the sync state of a type. If there are several route tables, the worst state
// counts.
func (p *ProxyStatus) Note(name string, s TypeStatus) {
	if Worse(p.Types[name].State, s.State) == s.State {
		p.Types[name] = s
	}
}

// Refusal is a resource that one proxy refuses.
type Refusal struct {
	Node  string `json:"node"`
	Type  string `json:"type"` // as in ProxyStatus
	Words string `json:"words"`
	// Withheld means that the server does not send the resource. The proxy has not refused
	// it.
	Withheld bool `json:"withheld,omitempty"`
}

// String returns the refusal as one line.
func (r Refusal) String() string {
	verb := "refuses its"
	if r.Withheld {
		verb = "is not sent its"
	}
	return fmt.Sprintf("proxy %s %s %s: %s", r.Node, verb, r.Type, r.OneLine())
}

func (r Refusal) OneLine() string { return strings.Join(strings.Fields(r.Words), " ") }

// badness ranks the states; a missing state is 0.
var badness = map[SyncState]int{Fetched: 1, Synced: 2, Sent: 3, Stale: 4, Rejected: 5}

func Worse(a, b SyncState) SyncState {
	if badness[b] > badness[a] {
		return b
	}
	return a
}

// OrSent returns the sync state of a proxy, or Sent if it has not asked for anything yet.
func OrSent(state SyncState) SyncState {
	if state == "" {
		return Sent
	}
	return state
}
