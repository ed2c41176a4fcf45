package v1

import (
	"regexp"
	"strings"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
)

// speakableMatch returns the part of a match that v1 can check. An Envoy would refuse the
// whole table because of an expression that it cannot read. The problems name the
// conditions that are missing.
func speakableMatch(r *ir.Route) (ir.Match, diag.List) {
	if speaks(r.Match) {
		return r.Match, nil
	}
	m := r.Match
	var problems diag.List
	readable := func(re string) bool {
		part := foreign(re)
		if part != "" {
			problems = append(problems, closing(r, "its regular expressions (ECMAScript) do not know %s, found %q", part, re)...)
		}
		return part == ""
	}
	if !readable(m.Regex) {
		m.Prefix, m.Regex = literalPrefix(m.Regex), ""
	}
	m.Headers = nil
	for _, h := range r.Match.Headers {
		if h.Not {
			problems = append(problems, closing(r, "it cannot ask what a header is not, found %s", h.Name)...)
		} else if readable(h.Regex) {
			m.Headers = append(m.Headers, h)
		}
	}
	m.Query = nil
	for _, q := range r.Match.Query {
		if readable(q.Regex) {
			m.Query = append(m.Query, q)
		}
	}
	return m, problems
}

// speaks reports whether v1 can check the whole match.
func speaks(m ir.Match) bool {
	for _, h := range m.Headers {
		if h.Not || foreign(h.Regex) != "" {
			return false
		}
	}
	for _, q := range m.Query {
		if foreign(q.Regex) != "" {
			return false
		}
	}
	return foreign(m.Regex) == ""
}

// literalPrefix returns the text with which every match of the expression begins.
func literalPrefix(re string) string {
	compiled, err := regexp.Compile(re)
	if err != nil {
		return ""
	}
	prefix, _ := compiled.LiteralPrefix()
	return prefix
}

// foreign returns the first construct of RE2 in re that std::regex in ECMAScript mode
// refuses: flags and named groups, text anchors, quoting, Unicode classes. It returns ""
// if there is none.
func foreign(re string) string {
	inClass := false
	for i := 0; i < len(re); i++ {
		rest := re[i:]
		switch {
		case rest[0] == '\\' && len(rest) > 1:
			if strings.IndexByte("AzQEpPCa", rest[1]) >= 0 {
				return rest[:2]
			}
			i++
		case rest[0] == '[':
			inClass = true
		case rest[0] == ']':
			inClass = false
		case !inClass && strings.HasPrefix(rest, "(?") && !strings.HasPrefix(rest, "(?:"):
			return "(?"
		}
	}
	return ""
}
