package ir

import "github.com/pilot-api/pilot-api/diag"

// Access decides which requests, or connections, a listener accepts. The steps apply in
// order. The listener accepts everything that no step refuses.
type Access struct {
	Steps []AccessStep
	// Paths is set if conditions compare paths. Then a path has one spelling: slashes are
	// merged, and a path with an escaped slash is refused.
	Paths bool
}

// AccessAction is the treatment of requests that match a policy of a step.
type AccessAction string

const (
	// Deny refuses requests that match.
	Deny AccessAction = "deny"
	// Allow refuses requests that do not match.
	Allow AccessAction = "allow"
	// Audit marks requests that match, and refuses nothing.
	Audit AccessAction = "audit"
)

// AccessStep has the policies of one action. A request matches the step if it matches one
// of them.
type AccessStep struct {
	Action AccessAction
	// DryRun refuses nothing, and counts the requests that the step would refuse.
	DryRun   bool
	Policies []AccessPolicy // sorted by name
}

// AccessPolicy is one rule. A request matches it if both conditions hold.
type AccessPolicy struct {
	Name string
	// Peer is about the sender, and about headers and claims. Operation is about the request
	// and the connection.
	Peer, Operation Condition
	Origins         []diag.Ref
}

// Condition is a tree. At most one field is set; the zero Condition always holds.
type Condition struct {
	Test *Test
	All  []Condition // all of them hold; there is at least one
	Any  []Condition // one of them holds; if there is none, the condition never holds
	Not  *Condition

	// Never is set for a condition that never holds.
	Never bool
}

// Attribute is the part of a request or connection that a Test compares.
type Attribute string

// The attributes of the sender.
const (
	AttrPeerName      Attribute = "peer-name"      // the URI in its certificate; none in plain text
	AttrPeerAddress   Attribute = "peer-address"   // the other end of the connection
	AttrClientAddress Attribute = "client-address" // the original client
	AttrHeader        Attribute = "header"         // Test.Name, in lower case
	AttrClaim         Attribute = "claim"          // Test.Path below the payload of the JWT
)

// The attributes of the operation.
const (
	AttrHost               Attribute = "host"
	AttrMethod             Attribute = "method"
	AttrPath               Attribute = "path" // without the query
	AttrDestinationPort    Attribute = "destination-port"
	AttrDestinationAddress Attribute = "destination-address"
	AttrServerName         Attribute = "server-name"
	AttrFilterMetadata     Attribute = "filter-metadata" // Test.Path below the metadata of the filter Test.Name
)

// IsHTTP reports whether connections without HTTP do not have the attribute.
func (a Attribute) IsHTTP() bool {
	switch a {
	case AttrHeader, AttrClaim, AttrHost, AttrMethod, AttrPath:
		return true
	}
	return false
}

// Test compares an attribute with one value. Exactly one of Text, Block and Port is set.
type Test struct {
	Attribute Attribute
	Name      string   `json:",omitempty"`
	Path      []string `json:",omitempty"`
	Text      *TextTest
	Block     string `json:",omitempty"` // a CIDR block
	Port      int    `json:",omitempty"`
}

// TextTest compares a text. Exactly one field besides IgnoreCase is set.
type TextTest struct {
	Exact    string `json:",omitempty"`
	Prefix   string `json:",omitempty"`
	Suffix   string `json:",omitempty"`
	Regex    string `json:",omitempty"` // of the whole text
	Present  bool   `json:",omitempty"` // any text but ""
	Template string `json:",omitempty"` // a path with {*} and {**}
	// IgnoreCase applies to all but Regex and Template.
	IgnoreCase bool `json:",omitempty"`
}

// EachTest calls visit with all tests of a condition.
func (c *Condition) EachTest(visit func(*Test)) {
	switch {
	case c.Test != nil:
		visit(c.Test)
	case c.Not != nil:
		c.Not.EachTest(visit)
	}
	for i := range c.All {
		c.All[i].EachTest(visit)
	}
	for i := range c.Any {
		c.Any[i].EachTest(visit)
	}
}

// IsTrue reports whether a condition always holds.
func (c *Condition) IsTrue() bool {
	return len(c.All) == 0 && c.Any == nil && c.Not == nil && c.Test == nil && !c.Never
}

// Refuses reports whether something may be refused. a may be nil.
func (a *Access) Refuses() bool {
	if a == nil {
		return false
	}
	for _, step := range a.Steps {
		if step.Action != Audit && !step.DryRun {
			return true
		}
	}
	return false
}
