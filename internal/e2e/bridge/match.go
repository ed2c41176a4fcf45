package bridge

import (
	"fmt"
	"strings"
)

// match is the part of a route that selects requests.
type match struct {
	Prefix        *string       `json:"prefix"`
	Path          *string       `json:"path"`
	Regex         *string       `json:"regex"`
	CaseSensitive *bool         `json:"case_sensitive"`
	Headers       []headerMatch `json:"headers"`
	Query         []headerMatch `json:"query_parameters"`
}

// headerMatch is a condition on a header or a query parameter.
type headerMatch struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	Regex bool   `json:"regex"`
}

func (m *match) turn() (object, error) {
	o := object{}
	if m.Prefix != nil {
		// V1 compared the prefix with path and query. v3 cannot do that.
		if strings.Contains(*m.Prefix, "?") {
			return nil, fmt.Errorf("prefix %q reaches into the query, which cannot be turned", *m.Prefix)
		}
		o["prefix"] = *m.Prefix
	}
	if m.Path != nil {
		o["path"] = *m.Path
	}
	if m.Regex != nil {
		o["safe_regex"] = object{"regex": *m.Regex}
	}
	if len(o) != 1 {
		return nil, fmt.Errorf("a route has one of prefix, path and regex; found %d", len(o))
	}
	if m.CaseSensitive != nil {
		o["case_sensitive"] = *m.CaseSensitive
	}
	if len(m.Headers) > 0 {
		o["headers"] = turnMatches(m.Headers)
	}
	if len(m.Query) > 0 {
		o["query_parameters"] = turnMatches(m.Query)
	}
	return o, nil
}

func turnMatches(matches []headerMatch) list {
	out := make(list, len(matches))
	for i, m := range matches {
		out[i] = m.turn()
	}
	return out
}

// turn converts the condition. Without a value, presence is enough.
func (m *headerMatch) turn() object {
	switch {
	case m.Value == "":
		return object{"name": m.Name, "present_match": true}
	case m.Regex:
		return object{"name": m.Name, "string_match": object{"safe_regex": object{"regex": m.Value}}}
	default:
		return object{"name": m.Name, "string_match": object{"exact": m.Value}}
	}
}
