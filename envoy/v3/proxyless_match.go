package v3

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/pilot-api/pilot-api/ir"
)

// maxNegations bounds the inverted conditions of a match. Each doubles the number of its
// routes.
const maxNegations = 4

// proxylessMatches returns matches that together take the same gRPC calls as m. It returns
// none if no call fits. lacks are the conditions that gRPC cannot check, which the matches
// do not have.
func proxylessMatches(m ir.Match) (matches []ir.Match, lacks []string) {
	if len(m.Query) > 0 || strings.Contains(m.Prefix+m.Path, "?") {
		return nil, nil // A call has no query.
	}
	out := m
	out.Headers = nil
	if m.Regex != "" && !readByGo(m.Regex) {
		out.Regex, lacks = "", append(lacks, fmt.Sprintf("it reads no expression such as %q", m.Regex))
	}
	var negations []ir.HeaderMatch
	for _, h := range m.Headers {
		name := strings.ToLower(h.Name)
		switch {
		case name == ":method":
			if !holds(h, "POST") {
				return nil, nil
			}
		case unseen(name):
			lacks = append(lacks, "it does not match by "+h.Name)
		case h.Regex != "" && !readByGo(h.Regex):
			lacks = append(lacks, fmt.Sprintf("it reads no expression such as %q", h.Regex))
		case h.Not && !h.Present:
			negations = append(negations, h)
		default:
			out.Headers = append(out.Headers, h)
		}
	}
	if len(negations) > maxNegations {
		return []ir.Match{out}, append(lacks, fmt.Sprintf("it is asked for %d headers that must not be so, %d at the most", len(negations), maxNegations))
	}
	return split(out, negations), lacks
}

// split expresses inverted conditions on headers. For gRPC an absent header does not meet
// an inverted condition either.
func split(m ir.Match, negations []ir.HeaderMatch) []ir.Match {
	all := []ir.Match{m}
	for _, n := range negations {
		var next []ir.Match
		for _, m := range all {
			absent, other := m, m
			absent.Headers = append(slices.Clone(m.Headers), ir.HeaderMatch{Name: n.Name, Present: true, Not: true})
			other.Headers = append(slices.Clone(m.Headers), n)
			next = append(next, absent, other)
		}
		all = next
	}
	return all
}

// unseen reports whether gRPC cannot match a header: it does not see some headers of a
// call, and has none of those that every Envoy writes.
func unseen(name string) bool {
	for _, prefix := range []string{":", "grpc-", "x-envoy-"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return strings.HasSuffix(name, "-bin") ||
		slices.Contains([]string{"host", "user-agent", "te", "x-forwarded-for", "x-forwarded-proto", "x-request-id"}, name)
}

// holds reports whether a value meets a condition.
func holds(h ir.HeaderMatch, value string) bool {
	var is bool
	switch {
	case h.Present:
		is = true
	case h.Prefix != "":
		is = strings.HasPrefix(value, h.Prefix)
	case h.Regex != "":
		re, err := regexp.Compile("^(?:" + h.Regex + ")$")
		is = err == nil && re.MatchString(value)
	default:
		is = value == h.Exact
	}
	return is != h.Not
}

// readByGo reports whether gRPC for Go accepts an expression. gRPC for other languages uses
// the same library as Envoy, or one that accepts more.
func readByGo(expression string) bool {
	_, err := syntax.Parse(expression, syntax.Perl)
	if err == nil {
		_, err = syntax.Parse("^(?:"+expression+")$", syntax.Perl)
	}
	return err == nil
}
