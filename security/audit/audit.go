// Package audit records which users made which requests: one line of JSON for each event.
//
// It receives events of requests, and writes them as lines into a file that is rotated, or
// to standard output. No event has a key or a token.
//
//	audit.go   the event
//	object.go  the objects of requests and answers, without what is private
//	policy.go  which requests are written down, and how
//	log.go     the file, and lines that are on disk before they are acknowledged
package audit

import (
	"context"
	"encoding/json"
	"time"

	"github.com/pilot-api/pilot-api/security/identity"
)

// The stages of an event.
const (
	// StageReceived is before the request has any effect. Only a strict log has it.
	StageReceived = "RequestReceived"
	// StageStarted is when the answer of a watch begins.
	StageStarted = "ResponseStarted"
	// StageComplete is after the answer is known. For a watch it is after its end.
	StageComplete = "ResponseComplete"
)

// Event describes one request and its effects. The names of its JSON are those of
// audit.k8s.io, if that has a name.
type Event struct {
	Time  time.Time `json:"time"`
	ID    string    `json:"requestID"`
	Stage string    `json:"stage"`
	Level string    `json:"level"`

	User   string          `json:"user"`
	Groups []string        `json:"groups,omitempty"`
	By     identity.Method `json:"provedBy,omitempty"`
	// Credential names the token of a ServiceAccount that proved the sender, by its ID.
	Credential string `json:"credentialID,omitempty"`
	// Impersonator is the user who acted as User; "" if User acted.
	Impersonator string `json:"impersonator,omitempty"`
	Source       string `json:"source"` // address
	UserAgent    string `json:"userAgent,omitempty"`

	Verb        string `json:"verb"`
	Group       string `json:"apiGroup,omitempty"`
	Resource    string `json:"resource,omitempty"`
	Subresource string `json:"subresource,omitempty"`
	Namespace   string `json:"namespace,omitempty"`
	Name        string `json:"name,omitempty"`
	Path        string `json:"path"`
	DryRun      bool   `json:"dryRun,omitempty"`

	// Changes are the objects that were changed, with their revisions. A write that changes
	// nothing is none.
	Changes []Change `json:"changes,omitempty"`

	Allowed *bool  `json:"allowed,omitempty"` // nil if there was no decision about the request
	Reason  string `json:"reason,omitempty"`  // of the decision: the rule that made it
	Code    int    `json:"code,omitempty"`
	// Took is the time until the answer, in milliseconds.
	Took float64 `json:"tookMs,omitempty"`

	// RequestObject and ResponseObject are results of Object.
	RequestObject  json.RawMessage   `json:"requestObject,omitempty"`
	ResponseObject json.RawMessage   `json:"responseObject,omitempty"`
	Annotations    map[string]string `json:"annotations,omitempty"`
}

// Change is one object that a request wrote.
type Change struct {
	Object string `json:"object"` // KIND namespace/name
	// Before and After are its revisions; Before is "" for a new one.
	Before string `json:"before,omitempty"`
	After  string `json:"after"`
}

// mostChanges bounds the changes of an event. A transaction may have more; the last entry
// says how many are left out.
const mostChanges = 100

// Line returns the event as one line. JSON escapes all control characters, so no name or
// header can add a line.
func (e *Event) Line() ([]byte, error) {
	line, err := json.Marshal(e)
	if err != nil {
		return nil, err
	}
	return append(line, '\n'), nil
}

// SetIdentity records the sender of the request.
func (e *Event) SetIdentity(who identity.Identity) {
	e.User, e.Groups, e.By = who.Name, who.Groups, who.By
	sender := who
	if who.Via != nil {
		e.Impersonator, sender = who.Via.Name, *who.Via
	}
	if ids := sender.Extra[identity.CredentialID]; len(ids) > 0 {
		e.Credential = ids[0]
	}
}

// AddChange adds an object that was written.
func (e *Event) AddChange(c Change) {
	if len(e.Changes) < mostChanges {
		e.Changes = append(e.Changes, c)
		return
	}
	e.Changes[mostChanges-1] = Change{Object: "and more"}
}

// SetTruncated records that an object of the request is left out, because it is too long.
func (e *Event) SetTruncated() { e.Annotations = map[string]string{truncated: "true"} }

// IsRefusal reports whether the sender proved nobody, or may not do what it asked for.
func (e *Event) IsRefusal() bool { return e.Code == 401 || e.Code == 403 }

// Decide records whether the request is allowed.
func (e *Event) Decide(allowed bool, reason string) { e.Allowed, e.Reason = &allowed, reason }

type contextKey struct{}

// NewContext returns a context of a request with its event, which the request fills in.
func NewContext(ctx context.Context, e *Event) context.Context {
	return context.WithValue(ctx, contextKey{}, e)
}

// Of returns the event of a request, nil if there is none. Only the goroutine of the request
// may change it.
func Of(ctx context.Context) *Event {
	e, _ := ctx.Value(contextKey{}).(*Event)
	return e
}
