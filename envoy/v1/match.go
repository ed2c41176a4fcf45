package v1

import (
	"regexp"

	"github.com/pilot-api/pilot-api/ir"
)

func (out *Route) match(m ir.Match) {
	switch {
	case m.Path != "":
		out.Path = m.Path
	case m.Regex != "":
		out.Regex = m.Regex
	case m.Prefix != "":
		out.Prefix = m.Prefix
	default:
		out.Prefix = "/"
	}
	if m.IgnoreCase {
		out.CaseSensitive = new(bool)
	}
	out.Headers = headerMatches(m.Headers)
	for _, q := range m.Query {
		out.QueryParameters = append(out.QueryParameters, queryMatch(q))
	}
}

// HeaderMatch is a condition on a header. Without a value, the header must be present.
type HeaderMatch struct {
	Name  string `json:"name"`
	Value string `json:"value,omitempty"`
	Regex bool   `json:"regex,omitempty"`
}

func headerMatches(matches []ir.HeaderMatch) []HeaderMatch {
	var out []HeaderMatch
	for _, m := range matches {
		out = append(out, headerMatch(m))
	}
	return out
}

func headerMatch(m ir.HeaderMatch) HeaderMatch {
	switch {
	case m.Present:
		return HeaderMatch{Name: m.Name}
	case m.Regex != "":
		return HeaderMatch{Name: m.Name, Value: m.Regex, Regex: true}
	case m.Prefix != "":
		return HeaderMatch{Name: m.Name, Value: "^" + regexp.QuoteMeta(m.Prefix) + ".*", Regex: true}
	case m.Exact != "":
		return HeaderMatch{Name: m.Name, Value: m.Exact}
	default:
		// An empty value would mean presence.
		return HeaderMatch{Name: m.Name, Value: "^$", Regex: true}
	}
}

// QueryMatch is a condition on a parameter of the query. Without a value, the parameter
// must be present.
type QueryMatch struct {
	Name  string `json:"name"`
	Value string `json:"value,omitempty"`
	Regex bool   `json:"regex,omitempty"`
}

// queryMatch returns the condition on a parameter. v1 matches values of parameters as it
// matches those of headers.
func queryMatch(m ir.QueryMatch) QueryMatch {
	return QueryMatch(headerMatch(ir.HeaderMatch{Name: m.Name, Exact: m.Exact, Regex: m.Regex, Present: m.Present}))
}
