package compile

import (
	"cmp"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
)

// joinedMatch returns the match of a route that is reached through another one: the
// requests that both match. It is closed if no proxy can check that; ok is false if
// there are no such requests. Rewrites apply to the path that the inner match
// takes.
func joinedMatch(outer, inner routeMatch, rewrites bool) (out routeMatch, ok bool) {
	out = routeMatch{
		name:       joined(outer.name, inner.name),
		statPrefix: cmp.Or(inner.statPrefix, outer.statPrefix),
		port:       cmp.Or(inner.port, outer.port),
	}
	gateways, sameGateway := joinedGateways(outer.gateways, inner.gateways)
	source, sameSource := joinedSource(outer.source, inner.source)
	match, asked, someMatch := joinedConditions(outer.match, inner.match, rewrites)
	out.gateways, out.source, out.match = gateways, source, match
	out.closed = outer.closed || inner.closed || !asked
	out.sidecarOnly = (outer.sidecarOnly || inner.sidecarOnly) && !out.closed
	samePort := outer.port == 0 || out.port == outer.port
	return out, sameGateway && sameSource && someMatch && samePort
}

// joinedGateways returns the gateways in both lists; an empty list means any.
func joinedGateways(outer, inner []string) ([]string, bool) {
	switch {
	case len(outer) == 0:
		return inner, true
	case len(inner) == 0:
		return outer, true
	}
	var out []string
	for _, name := range inner {
		if slices.Contains(outer, name) {
			out = append(out, name)
		}
	}
	return out, len(out) > 0
}

// joinedSource returns the callers that fit both sources.
func joinedSource(outer, inner *source) (*source, bool) {
	if outer == nil || inner == nil {
		return cmp.Or(inner, outer), true
	}
	out := &source{namespace: cmp.Or(inner.namespace, outer.namespace), home: cmp.Or(inner.home, outer.home), labels: mesh.Labels{}}
	same := (outer.namespace == "" || out.namespace == outer.namespace) && (outer.home == "" || out.home == outer.home)
	for name, value := range outer.labels {
		out.labels[name] = value
	}
	for name, value := range inner.labels {
		if other, both := out.labels[name]; both && other != value {
			same = false
		}
		out.labels[name] = value
	}
	return out, same
}

// joinedConditions returns the conditions of both, except one on the path if no
// proxy can check both.
func joinedConditions(outer, inner ir.Match, rewrites bool) (out ir.Match, asked, some bool) {
	out, asked, some = joinedPaths(outer, inner, rewrites)
	out.Headers = slices.Clone(out.Headers)
	for _, h := range slices.Concat(inner.Headers, outer.Headers) {
		if !slices.Contains(out.Headers, h) {
			out.Headers = append(out.Headers, h)
		}
	}
	out.Query = slices.Clone(inner.Query)
	for _, q := range outer.Query {
		if !slices.Contains(out.Query, q) {
			out.Query = append(out.Query, q)
		}
	}
	return out, asked, some && !contradictory(out)
}

// contradictory reports whether a header must have two values.
func contradictory(m ir.Match) bool {
	values := map[string]string{}
	for _, h := range m.Headers {
		if h.Exact == "" || h.Not {
			continue
		}
		name := strings.ToLower(h.Name)
		if other, both := values[name]; both && other != h.Exact {
			return true
		}
		values[name] = h.Exact
	}
	return false
}

// joinedPaths returns a match for the paths that both match, with an additional
// condition on :path if necessary. It matches the path as the inner match does,
// since that part may be rewritten, or if that is not possible, as the outer one
// does.
func joinedPaths(outer, inner ir.Match, rewrites bool) (out ir.Match, asked, some bool) {
	outer.Headers, inner.Headers, outer.Query, inner.Query = nil, nil, nil, nil
	switch {
	case outer.AnyPath() || samePath(outer, inner):
		return inner, true, true
	case inner.AnyPath():
		return outer, true, true
	case !shareSome(outer, inner):
		return inner, true, false
	case inner.Regex != "" && outer.Path != "" && !outer.IgnoreCase:
		return outer, true, true
	case inner.Path != "" && !inner.IgnoreCase, literal(outer) && literal(inner) && outer.Prefix != "" && strings.HasPrefix(inner.Prefix, outer.Prefix):
		return inner, true, true
	}
	if h, ok := askedOfHeader(outer); ok {
		inner.Headers = []ir.HeaderMatch{h}
		return inner, true, true
	}
	h, ok := askedOfHeader(inner)
	if ok {
		outer.Headers = []ir.HeaderMatch{h}
	}
	return outer, ok && (inner.Regex != "" || !rewrites), true
}

func samePath(a, b ir.Match) bool {
	return a.Path == b.Path && a.Prefix == b.Prefix && a.Regex == b.Regex && a.IgnoreCase == b.IgnoreCase
}

// literal reports whether a match compares the path or prefix literally.
func literal(m ir.Match) bool { return m.Regex == "" && !m.IgnoreCase }

// shareSome returns false if no path can match both.
func shareSome(a, b ir.Match) bool {
	if !literal(a) {
		a, b = b, a
	}
	if !literal(a) {
		return true
	}
	_, some := narrowed(b, a.Path, a.Prefix)
	return some
}

// askedOfHeader returns the path condition of a match as a condition on :path,
// which includes the query.
func askedOfHeader(m ir.Match) (h ir.HeaderMatch, ok bool) {
	h.Name = ":path"
	anyCase := ""
	if m.IgnoreCase {
		anyCase = "(?i)"
	}
	switch {
	case m.Regex != "":
		h.Regex = "(?:" + m.Regex + ")" + perhapsQuery
		return h, endsBeforeQuery(m.Regex)
	case m.Path != "":
		h.Regex = anyCase + regexp.QuoteMeta(m.Path) + perhapsQuery
	case m.IgnoreCase:
		h.Regex = anyCase + regexp.QuoteMeta(m.Prefix) + ".*"
	default:
		h.Prefix = m.Prefix
	}
	return h, true
}

const perhapsQuery = `(?:\?.*)?`

// endsBeforeQuery reports whether an expression matches no question mark and does
// not depend on what follows.
func endsBeforeQuery(expression string) bool {
	tree, err := syntax.Parse(expression, syntax.Perl)
	return err == nil && noQuestionMark(tree)
}

func noQuestionMark(tree *syntax.Regexp) bool {
	switch tree.Op {
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL, syntax.OpEndText, syntax.OpEndLine:
		return false
	case syntax.OpLiteral:
		return !slices.Contains(tree.Rune, '?')
	case syntax.OpCharClass:
		for i := 0; i < len(tree.Rune); i += 2 {
			if tree.Rune[i] <= '?' && '?' <= tree.Rune[i+1] {
				return false
			}
		}
	}
	return !slices.ContainsFunc(tree.Sub, func(sub *syntax.Regexp) bool { return !noQuestionMark(sub) })
}
