package discovery

import (
	"github.com/pilot-api/pilot-api/discovery/compiled"
	"github.com/pilot-api/pilot-api/discovery/feedback"
	"github.com/pilot-api/pilot-api/discovery/fleet"
	"github.com/pilot-api/pilot-api/discovery/pastviews"
	"github.com/pilot-api/pilot-api/discovery/stream"
	"github.com/pilot-api/pilot-api/discovery/xds"
)

// Answer is an encoded answer to a poll.
type Answer = xds.Answer

// Response has the resources of one type that a stream sends.
type Response = xds.Response

// Type URLs of the v3 resources served.
const (
	ClusterType  = xds.ClusterType
	EndpointType = xds.EndpointType
	SecretType   = xds.SecretType
	ListenerType = xds.ListenerType
	RouteType    = xds.RouteType
)

// ConfigTypes are the types of configuration, in words.
var ConfigTypes = xds.ConfigTypes

// ServiceOf returns the short name, such as cds, of the protocol's service for the type of
// a URL, or "" for a type that is not served.
func ServiceOf(typeURL string) string { return xds.ServiceOf(typeURL) }

// Services returns the short names of the services of all types.
func Services() []string { return xds.Services() }

// The states of proxies and objects. Package feedback documents each of them.
type (
	Transport      = feedback.Transport
	SyncState      = feedback.SyncState
	TypeStatus     = feedback.TypeStatus
	ProxyStatus    = feedback.ProxyStatus
	Refusal        = feedback.Refusal
	Presence       = feedback.Presence
	ObjectStatus   = feedback.ObjectStatus
	ObjectStatuses = feedback.ObjectStatuses
)

// Transports and states, as in package feedback.
const (
	OverDelta = feedback.OverDelta
	OverADS   = feedback.OverADS
	OverREST  = feedback.OverREST
	OverGRPC  = feedback.OverGRPC
	OverV1    = feedback.OverV1

	Synced   = feedback.Synced
	Sent     = feedback.Sent
	Stale    = feedback.Stale
	Rejected = feedback.Rejected
	Fetched  = feedback.Fetched
)

// ErrWithheld is the answer to a poll for a private key over a connection without a proof.
var ErrWithheld = feedback.ErrWithheld

// PastFor is how long past views are kept.
const PastFor = pastviews.PastFor

// Streams. Package stream documents each of these.
type (
	Stream  = stream.Stream
	Request = stream.Request
	Variant = stream.Variant
)

// KeyScope is the set of Secrets whose private keys a stream may send (Stream.SendKeys).
// The zero KeyScope has none.
type KeyScope = compiled.KeyScope

// AllKeys has every Secret. It is the scope of a connection that only the server's own user
// can open, or whose certificate is valid for every namespace.
func AllKeys() KeyScope { return compiled.AllKeys() }

// KeysOfNamespace has the Secrets of one namespace.
func KeysOfNamespace(namespace string) KeyScope { return compiled.KeysOfNamespace(namespace) }

// WorkloadSecrets are secrets that only the proxies of one workload get (Stream.AddSecrets).
type WorkloadSecrets = stream.WorkloadSecrets

// Variants of the protocol and errors of streams, as in package stream.
const (
	StateOfTheWorld = stream.StateOfTheWorld
	Delta           = stream.Delta
)

var (
	ErrGone = stream.ErrGone
	// ErrUnanswered is the error of a stream whose proxy has not answered for long.
	ErrUnanswered = stream.ErrUnanswered
	ErrTooMany    = stream.ErrTooMany
)

// Agent describes the program of a proxy.
type Agent = fleet.Agent

// ThisMachine is the address of proxies that connect over a socket of the server.
const ThisMachine = fleet.ThisMachine
