package schema

import (
	"maps"
	"slices"
	"strings"
)

// MatchCondition says which requests a rule is for. An empty one means all.
type MatchCondition struct {
	Source *IstioService `json:"source"`
	// TCP cannot be evaluated for a request: the rule answers 503.
	TCP *L4MatchAttributes `json:"tcp"`
	// UDP is rejected by validation.
	UDP     *L4MatchAttributes `json:"udp"`
	Request *MatchRequest      `json:"request"`
}

// L4MatchAttributes hold IPv4 addresses or prefixes.
type L4MatchAttributes struct {
	SourceSubnet      []string `json:"sourceSubnet"`
	DestinationSubnet []string `json:"destinationSubnet"`
}

// MatchRequest matches the head of an HTTP request. The header names "uri",
// "scheme", "method" and "authority" mean those parts of it.
type MatchRequest struct {
	Headers map[string]StringMatch `json:"headers"`
}

// StringMatch has exactly one field set. Values are case sensitive.
type StringMatch struct {
	Exact  *string `json:"exact"`
	Prefix *string `json:"prefix"`
	Regex  *string `json:"regex"`
}

// String returns "exact:value" and so on.
func (m StringMatch) String() string {
	switch {
	case m.Exact != nil:
		return "exact:" + *m.Exact
	case m.Prefix != nil:
		return "prefix:" + *m.Prefix
	case m.Regex != nil:
		return "regex:" + *m.Regex
	}
	return ""
}

// String lists the conditions, in order of name.
func (m *MatchCondition) String() string {
	if m == nil {
		return ""
	}
	var parts []string
	if m.Source != nil {
		parts = append(parts, "from "+m.Source.String())
	}
	if m.Request != nil {
		for _, name := range slices.Sorted(maps.Keys(m.Request.Headers)) {
			parts = append(parts, name+" "+m.Request.Headers[name].String())
		}
	}
	return strings.Join(parts, ", ")
}

func (p *problems) match(field string, m *MatchCondition) {
	if m == nil {
		return
	}
	p.service(field+".source", m.Source)
	if m.UDP != nil {
		p.notSupported(field+".udp", "matching UDP is not supported")
	}
	if m.Request == nil {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(m.Request.Headers)) {
		p.stringMatch(keyField(field+".request.headers", name), name, m.Request.Headers[name])
	}
}

// stringMatch checks the condition. The JSON Schema checks that there is at most
// one.
func (p *problems) stringMatch(field, header string, m StringMatch) {
	none := true
	for kind, value := range map[string]*string{"exact": m.Exact, "prefix": m.Prefix, "regex": m.Regex} {
		none = none && value == nil
		if value != nil && header == "uri" && *value == "" {
			p.invalid(field+"."+kind, "must not be empty: no path is")
		}
	}
	if none {
		p.required(field, "must have one of exact, prefix, regex")
	}
}
