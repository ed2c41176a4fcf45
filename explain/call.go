package explain

import (
	"slices"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
)

// CallAnswer says what becomes of all calls of a caller.
type CallAnswer string

// The answers.
const (
	CallAllowed CallAnswer = "allowed" // no policy and no mode of TLS refuses a well-formed call
	CallDenied  CallAnswer = "denied"  // every call is refused
	CallDepends CallAnswer = "depends" // some calls may be refused
)

// Call says what a workload does with the calls of a caller to one of its ports.
type Call struct {
	Answer CallAnswer `json:"answer"`
	// DependsOn are the parts of a call that decide if Answer is CallDepends.
	DependsOn []string `json:"dependsOn,omitempty"`
	// By are the policies that decide. There is none if no policy concerns the caller.
	By []Access `json:"by,omitempty"`
	// Reason is set if no single policy decides. Origins are its objects.
	Reason  string     `json:"reason,omitempty"`
	Origins []diag.Ref `json:"origins,omitempty"`
}

// Calls evaluates calls to listeners. It keeps regular expressions from one call to the next, and
// is for one goroutine.
type Calls struct {
	known    expressions
	allowing map[*ir.AccessStep][]diag.Ref
	// Spent counts the conditions that were evaluated.
	Spent int
}

// To says what becomes of the calls of a caller to a listener of a workload at an address, which
// may be "". The method, host, path, headers and token are not known, and the requests are
// well-formed.
func (c *Calls) To(l *ir.Listener, from Caller, address string) Call {
	if c.known == nil {
		c.known, c.allowing = expressions{}, map[*ir.AccessStep][]diag.Ref{}
	}
	r := Request{Scheme: "http", Port: l.Port, Address: address, Caller: &from, open: true, expressions: c.known, spent: &c.Spent}
	taken := &ir.FilterChain{HTTP: l.HTTP, TCP: l.TCP, TLS: l.TLS, Origins: l.Origins}
	if len(l.Chains) > 0 {
		if taken = chooseChain(l.Chains, r); taken == nil {
			return refusedCall("TLS without a certificate of the mesh is refused", l.Origins)
		}
	}
	switch {
	case taken.TLS != nil && !r.beginsTLS():
		return refusedCall("plain text is refused: the port takes mutual TLS only", l.Origins)
	case taken.TLS == nil && taken.HTTP != nil && r.beginsTLS():
		return refusedCall("TLS is refused: the port takes plain text only", l.Origins)
	case closes(taken.TCP):
		return refusedCall("the port is closed", l.Origins)
	}
	r, why := r.taken(taken)
	if why != "" {
		return refusedCall(why, l.Origins)
	}
	if taken.HTTP != nil {
		if t := taken.HTTP.Tokens; t != nil && slices.ContainsFunc(t.Rules, func(rule ir.TokenRule) bool { return rule.Keys != "" }) {
			r.claims = &claims{unknown: "the token"}
		}
		return c.through(r, taken.HTTP.Access, l)
	}
	r.connection = true
	if taken.TCP == nil {
		return c.through(r, nil, l)
	}
	return c.through(r, taken.TCP.Access, l)
}

func refusedCall(reason string, origins []diag.Ref) Call {
	return Call{Answer: CallDenied, Reason: reason, Origins: ofKind(origins, "PeerAuthentication")}
}

func ofKind(origins []diag.Ref, kind string) []diag.Ref {
	return slices.DeleteFunc(slices.Clone(origins), func(ref diag.Ref) bool { return ref.Kind != kind })
}

// closes reports whether a listener leads all connections to nobody.
func closes(t *ir.TCPListener) bool {
	return t != nil && len(t.Routes) > 0 && !slices.ContainsFunc(t.Routes, func(route ir.TCPRoute) bool {
		return slices.ContainsFunc(route.Clusters, func(c ir.WeightedCluster) bool { return c.Name != ir.Nobody })
	})
}

// through takes a request, of which not everything is known, through the steps of policies.
func (c *Calls) through(r Request, a *ir.Access, l *ir.Listener) Call {
	out := Call{Answer: CallAllowed}
	if a == nil {
		return out
	}
	for i := range a.Steps {
		step := &a.Steps[i]
		if step.DryRun || step.Action == ir.Audit {
			continue
		}
		fits, undecided := r.fitting(step.Policies)
		switch {
		case fits != nil && step.Action == ir.Deny:
			return Call{Answer: CallDenied, By: []Access{{Policy: fits.Name, Origins: fits.Origins, Effect: Refused}}}
		case fits != nil && out.Answer == CallAllowed:
			out.By = []Access{{Policy: fits.Name, Origins: fits.Origins, Effect: Allowed}}
		case fits != nil:
		case len(undecided) > 0:
			if out.Answer != CallDepends {
				out = Call{Answer: CallDepends}
			}
			out.add(undecided)
		case step.Action == ir.Allow:
			return Call{Answer: CallDenied, Reason: "no AuthorizationPolicy allows it", Origins: c.policiesOf(step, l)}
		}
	}
	return out
}

// policiesOf returns the policies of a step that allows or, if they have no rules, all of the listener.
func (c *Calls) policiesOf(step *ir.AccessStep, l *ir.Listener) []diag.Ref {
	out, known := c.allowing[step]
	if known {
		return out
	}
	for i := range step.Policies {
		for _, ref := range step.Policies[i].Origins {
			if !slices.Contains(out, ref) {
				out = append(out, ref)
			}
		}
	}
	if len(out) == 0 {
		out = ofKind(l.Origins, "AuthorizationPolicy")
	}
	c.allowing[step] = out
	return out
}

// fitting returns a policy that fits for certain or, if there is none, those that may fit.
func (r Request) fitting(policies []ir.AccessPolicy) (fits *ir.AccessPolicy, undecided []Access) {
	for i := range policies {
		p := &policies[i]
		switch v, on := both(*p, r); v {
		case holds:
			return p, nil
		case mayHold:
			undecided = append(undecided, Access{Policy: p.Name, Origins: p.Origins, Effect: Depends, DependsOn: on.String()})
		}
	}
	return nil, undecided
}

// mostUndecided is how many policies a Call names on which it depends.
const mostUndecided = 8

func (c *Call) add(undecided []Access) {
	for _, one := range undecided {
		for _, on := range splitConditions(one.DependsOn) {
			if !slices.Contains(c.DependsOn, on) {
				c.DependsOn = append(c.DependsOn, on)
			}
		}
		if len(c.By) < mostUndecided {
			c.By = append(c.By, one)
		}
	}
	slices.Sort(c.DependsOn)
}
