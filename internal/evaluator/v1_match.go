package evaluator

// v1ValueMatch is a condition on a header or a query parameter.
type v1ValueMatch struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	Regex bool   `json:"regex"`
}

// path reads the condition on the path. A v1 prefix is compared with path and query.
func (r *v1Reader) path(at string, from v1Route) PathMatch {
	ignore := !withDefault(from.CaseSensitive, true)
	switch {
	case from.Prefix != "" && from.Path == "" && from.Regex == "":
		return PathMatch{Kind: Prefix, Text: from.Prefix, IgnoreCase: ignore, SeesQuery: true}
	case from.Path != "" && from.Prefix == "" && from.Regex == "":
		return PathMatch{Kind: Exact, Text: from.Path, IgnoreCase: ignore}
	case from.Regex != "" && from.Prefix == "" && from.Path == "":
		return PathMatch{Kind: Regex, Regex: r.regex(at, from.Regex)}
	default:
		r.fail(at, "must have exactly one of prefix, path and regex")
		return PathMatch{}
	}
}

func (r *v1Reader) headers(at string, matches []v1ValueMatch) []HeaderMatch {
	var out []HeaderMatch
	for _, m := range matches {
		out = append(out, HeaderMatch{Name: m.Name, ValueMatch: r.value(at, m)})
	}
	return out
}

// value reads the condition on a value. An empty value matches any.
func (r *v1Reader) value(at string, m v1ValueMatch) ValueMatch {
	switch {
	case m.Value == "":
		return ValueMatch{Any: true}
	case m.Regex:
		return ValueMatch{Regex: r.regex(at, m.Value)}
	default:
		return ValueMatch{Exact: m.Value}
	}
}
