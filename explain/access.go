package explain

import (
	"fmt"
	"net/netip"
	"regexp"
	"regexp/syntax"
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
		best, unknown := doesNotHold, conditions(nil)
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
			one.Effect, one.DependsOn = Depends, unknown.String()
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

// conditions are the parts of a request that decide, each once.
type conditions []string

func (c conditions) with(others conditions) conditions {
	for _, one := range others {
		if !slices.Contains(c, one) {
			c = append(c, one)
		}
	}
	return c
}

// and joins the parts in a text.
const and = " and "

func (c conditions) String() string { return strings.Join(c, and) }

func splitConditions(joined string) []string { return strings.Split(joined, and) }

func both(p ir.AccessPolicy, r Request) (verdict, conditions) {
	v, on := evaluate(&p.Operation, r)
	if v == doesNotHold {
		return v, nil
	}
	w, other := evaluate(&p.Peer, r)
	switch {
	case w == doesNotHold:
		return w, nil
	case v == mayHold && w == mayHold:
		return v, on.with(other)
	case w < v:
		return w, other
	}
	return v, on
}

// evaluate returns whether a condition holds, and what that depends on.
func evaluate(c *ir.Condition, r Request) (verdict, conditions) {
	switch {
	case c.Never:
		return doesNotHold, nil
	case c.Test != nil:
		v, on := test(c.Test, r)
		if v != mayHold {
			return v, nil
		}
		return v, conditions{on}
	case c.Not != nil:
		v, on := evaluate(c.Not, r)
		return holds - v, on
	case len(c.All) > 0:
		return evaluateAll(c.All, r)
	case c.Any != nil:
		return evaluateAny(c.Any, r)
	}
	return holds, nil
}

func evaluateAll(all []ir.Condition, r Request) (verdict, conditions) {
	least, unknown := holds, conditions(nil)
	for i := range all {
		v, on := evaluate(&all[i], r)
		if v == doesNotHold {
			return v, nil
		}
		least, unknown = min(least, v), unknown.with(on)
	}
	return least, unknown
}

func evaluateAny(of []ir.Condition, r Request) (verdict, conditions) {
	best, unknown := doesNotHold, conditions(nil)
	for i := range of {
		v, on := evaluate(&of[i], r)
		if v == holds {
			return v, nil
		}
		best, unknown = max(best, v), unknown.with(on)
	}
	return best, unknown
}

func test(t *ir.Test, r Request) (verdict, string) {
	if r.spent != nil {
		*r.spent++
	}
	switch t.Attribute {
	case ir.AttrPeerName:
		return r.peerName(t.Text)
	case ir.AttrPeerAddress:
		return r.peerAddress(t.Block)
	case ir.AttrClientAddress:
		if r.connection {
			return r.peerAddress(t.Block)
		}
		return mayHold, onClientAddress
	case ir.AttrDestinationPort:
		return truth(t.Port == r.Port), ""
	case ir.AttrDestinationAddress:
		if to := r.addr(); to.IsValid() {
			block, err := netip.ParsePrefix(t.Block)
			return truth(err == nil && block.Contains(to)), ""
		}
		return mayHold, "the address that is called"
	case ir.AttrServerName:
		if r.Scheme != "https" && r.beginsTLS() {
			return mayHold, onServerName
		}
		return text(t.Text, r.asks(), r.asks() != "", r.expressions), ""
	case ir.AttrClaim:
		return r.claims.fits(t.Path, t.Text)
	case ir.AttrFilterMetadata:
		return mayHold, "metadata of other filters"
	}
	return testRequest(t, r)
}

// testRequest tests a part that only requests have.
func testRequest(t *ir.Test, r Request) (verdict, string) {
	if r.open {
		return mayHold, partOf(t)
	}
	path, _, _ := strings.Cut(r.Path, "?")
	switch t.Attribute {
	case ir.AttrMethod:
		return text(t.Text, r.Method, true, r.expressions), ""
	case ir.AttrHost:
		return text(t.Text, r.Host, true, r.expressions), ""
	case ir.AttrPath:
		return text(t.Text, mergedSlashes(path), true, r.expressions), ""
	case ir.AttrHeader:
		values, has := r.Headers[t.Name]
		return text(t.Text, strings.Join(values, ","), has, r.expressions), ""
	}
	return mayHold, string(t.Attribute)
}

// partOf names the part of a request that a test is about.
func partOf(t *ir.Test) string {
	switch t.Attribute {
	case ir.AttrMethod:
		return "the method"
	case ir.AttrHost:
		return "the host"
	case ir.AttrPath:
		return "the path"
	case ir.AttrHeader:
		return "the header " + t.Name
	}
	return string(t.Attribute)
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
func text(t *ir.TextTest, value string, has bool, known expressions) verdict {
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
		return truth(known.matches(t.Regex, value))
	case t.Template != "":
		return truth(fitsTemplate(t.Template, value))
	}
	return truth(is == want.Exact)
}

// expressions are regular expressions that were compiled before; nil if none are kept.
type expressions map[string]expression

// expression is a regular expression; nil for one that is invalid. A text that it matches has all
// literals.
type expression struct {
	*regexp.Regexp
	literals []string
}

// matches reports whether an expression matches a whole text. One that is invalid matches none.
func (known expressions) matches(text, value string) bool {
	whole, has := known[text]
	if !has {
		whole.Regexp, _ = regexp.Compile("^(?:" + text + ")$")
		if known != nil {
			whole.literals = literalsOf(text)
			known[text] = whole
		}
	}
	for _, literal := range whole.literals {
		if !strings.Contains(value, literal) {
			return false
		}
	}
	return whole.Regexp != nil && whole.MatchString(value)
}

// literalsOf returns texts that each match of an expression contains.
func literalsOf(text string) []string {
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil || tree.Op != syntax.OpConcat {
		return nil
	}
	var out []string
	for _, part := range tree.Sub {
		if part.Op == syntax.OpLiteral && part.Flags&syntax.FoldCase == 0 {
			out = append(out, string(part.Rune))
		}
	}
	return out
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
