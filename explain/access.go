package explain

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
)

// Access says what a policy about callers does with a request.
type Access struct {
	// Policy is the rule that decides, and Origins are its objects. Policy is "" if the
	// request is refused because no policy allows it.
	Policy  string     `json:"policy,omitempty"`
	Origins []diag.Ref `json:"origins,omitempty"`
	// Effect is refused, allowed, marked or, if that is not known, depends.
	Effect AccessEffect `json:"effect"`
	// DependsOn says what is not known about the caller.
	DependsOn string `json:"dependsOn,omitempty"`
}

// AccessEffect is the treatment of a request by a policy.
type AccessEffect string

// The effects of policies.
const (
	Refused AccessEffect = "refused"
	Allowed AccessEffect = "allowed"
	Marked  AccessEffect = "marked"
	Depends AccessEffect = "depends"
)

// verdict is whether a condition holds for a request.
type verdict int

const (
	doesNotHold verdict = iota // does not hold
	mayHold
	holds
)

// decide evaluates the steps for a request, and reports whether it is refused for certain. What
// depends on the caller does not refuse here, and is noted.
func (e *Explanation) decide(a *ir.Access, r Request) (refused bool) {
	if a == nil {
		return false
	}
	for _, step := range a.Steps {
		if step.DryRun {
			continue
		}
		best, unknown := doesNotHold, ""
		var by ir.AccessPolicy
		for _, p := range step.Policies {
			v, on := both(p, r)
			if v > best {
				best, unknown, by = v, on, p
			}
		}
		one := Access{Policy: by.Name, Origins: by.Origins}
		switch {
		case best == mayHold:
			one.Effect, one.DependsOn = Depends, unknown
		case best == holds && step.Action == ir.Deny, best == doesNotHold && step.Action == ir.Allow:
			one.Effect = Refused
		case best == holds && step.Action == ir.Allow:
			one.Effect = Allowed
		case best == holds:
			one.Effect = Marked
		default:
			continue
		}
		e.Access = append(e.Access, one)
		if one.Effect == Refused {
			return true
		}
	}
	return false
}

func both(p ir.AccessPolicy, r Request) (verdict, string) {
	v, on := evaluate(&p.Operation, r)
	w, other := evaluate(&p.Peer, r)
	if w < v {
		return w, other
	}
	return v, on
}

// evaluate returns whether a condition holds, and what that depends on.
func evaluate(c *ir.Condition, r Request) (verdict, string) {
	switch {
	case c.Never:
		return doesNotHold, ""
	case c.Test != nil:
		return test(c.Test, r)
	case c.Not != nil:
		v, on := evaluate(c.Not, r)
		return holds - v, on
	case len(c.All) > 0:
		least, unknown := holds, ""
		for i := range c.All {
			if v, on := evaluate(&c.All[i], r); v < least {
				least, unknown = v, on
			}
		}
		return least, unknown
	case c.Any != nil:
		best, unknown := doesNotHold, ""
		for i := range c.Any {
			if v, on := evaluate(&c.Any[i], r); v > best {
				best, unknown = v, on
			}
		}
		return best, unknown
	}
	return holds, ""
}

func test(t *ir.Test, r Request) (verdict, string) {
	path, _, _ := strings.Cut(r.Path, "?")
	switch t.Attribute {
	case ir.AttrMethod:
		return text(t.Text, r.Method, true), ""
	case ir.AttrHost:
		return text(t.Text, r.Host, true), ""
	case ir.AttrPath:
		return text(t.Text, mergedSlashes(path), true), ""
	case ir.AttrHeader:
		values, has := r.Headers[t.Name]
		return text(t.Text, strings.Join(values, ","), has), ""
	case ir.AttrDestinationPort:
		return truth(t.Port == r.Port), ""
	case ir.AttrDestinationAddress:
		if to := r.addr(); to.IsValid() {
			block, err := netip.ParsePrefix(t.Block)
			return truth(err == nil && block.Contains(to)), ""
		}
		return mayHold, "the address that is called"
	case ir.AttrServerName:
		return text(t.Text, r.asks(), r.asks() != ""), ""
	case ir.AttrClaim:
		return r.claims.fits(t.Path, t.Text)
	case ir.AttrPeerName:
		return mayHold, "the certificate of the caller"
	case ir.AttrPeerAddress, ir.AttrClientAddress:
		return mayHold, "the address of the caller"
	}
	return mayHold, "metadata of other filters"
}

func truth(is bool) verdict {
	if is {
		return holds
	}
	return doesNotHold
}

// escapedSlash matches a path with a slash or backslash that is escaped, before its query.
var escapedSlash = regexp.MustCompile(`(?i)^[^?]*%(2f|5c)`)

// mergedSlashes returns a path as it is compared.
func mergedSlashes(path string) string {
	for strings.Contains(path, "//") {
		path = strings.ReplaceAll(path, "//", "/")
	}
	return path
}

// text compares a value that the request has or lacks.
func text(t *ir.TextTest, value string, has bool) verdict {
	want, is := *t, value
	if t.IgnoreCase {
		want.Exact, want.Prefix, want.Suffix, is = strings.ToLower(t.Exact), strings.ToLower(t.Prefix), strings.ToLower(t.Suffix), strings.ToLower(value)
	}
	switch {
	case !has:
		return doesNotHold
	case t.Present:
		return truth(value != "")
	case t.Prefix != "":
		return truth(strings.HasPrefix(is, want.Prefix))
	case t.Suffix != "":
		return truth(strings.HasSuffix(is, want.Suffix))
	case t.Regex != "":
		whole, err := regexp.Compile("^(?:" + t.Regex + ")$")
		return truth(err == nil && whole.MatchString(value))
	case t.Template != "":
		return truth(fitsTemplate(t.Template, value))
	}
	return truth(is == want.Exact)
}

// fitsTemplate reports whether a path fits one with {*} for one part and {**} for any.
func fitsTemplate(template, path string) bool {
	parts := strings.Split(template, "/")
	for i, part := range parts {
		switch part {
		case "{*}":
			parts[i] = "[^/]+"
		case "{**}":
			parts[i] = ".*"
		default:
			parts[i] = regexp.QuoteMeta(part)
		}
	}
	return regexp.MustCompile("^" + strings.Join(parts, "/") + "$").MatchString(path)
}

// text says what a policy does.
func (a Access) text() string {
	by := "no AuthorizationPolicy allows it"
	if a.Policy != "" {
		by = fmt.Sprintf("%s (%s)", strings.Join(refTexts(a.Origins), ", "), a.Policy)
	}
	if a.Effect == Depends {
		return fmt.Sprintf("depends on %s: %s", a.DependsOn, by)
	}
	return fmt.Sprintf("%s: %s", a.Effect, by)
}

func refTexts(refs []diag.Ref) []string {
	var out []string
	for _, ref := range refs {
		out = append(out, ref.String())
	}
	slices.Sort(out)
	return out
}
