package compile

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/pilot-api/pilot-api/internal/envoylimits/re2"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/schema"
)

// pseudoHeaders are the pseudo-headers that RouteRules name without the colon.
var pseudoHeaders = map[string]string{"authority": ":authority", "method": ":method", "scheme": ":scheme"}

// badRegex is an expression that a proxy would reject, with the whole route table.
type badRegex struct {
	header string
	regex  string
	err    error
}

// httpMatch returns the conditions on a request. Those with a bad expression are
// left out and returned separately, sorted by header.
func (rd *reader) httpMatch(m *schema.MatchCondition) (ir.Match, []badRegex) {
	var out ir.Match
	var bad []badRegex
	if m == nil || m.Request == nil {
		return out, nil
	}
	for _, name := range slices.Sorted(maps.Keys(m.Request.Headers)) {
		condition := m.Request.Headers[name]
		if err := checkRegex(condition); err != nil {
			bad = append(bad, badRegex{name, *condition.Regex, err})
		} else if name == "uri" && !(condition.Regex != nil && rd.pilot().URIRegexAsHeader) {
			matchURI(&out, condition)
		} else {
			out.Headers = append(out.Headers, headerMatch(name, condition))
		}
	}
	slices.SortFunc(out.Headers, func(a, b ir.HeaderMatch) int { return cmp.Compare(a.Name, b.Name) })
	return out, bad
}

// checkRegex reports an expression that proxies do not accept.
func checkRegex(m schema.StringMatch) error {
	if m.Regex == nil {
		return nil
	}
	return validRegex(*m.Regex)
}

func validRegex(expression string) error {
	if err := re2.Check(expression); err != nil {
		return fmt.Errorf("not an expression that Envoy accepts: %w", err)
	}
	return nil
}

func matchURI(to *ir.Match, m schema.StringMatch) {
	switch {
	case m.Exact != nil:
		to.Path = *m.Exact
	case m.Prefix != nil:
		to.Prefix = *m.Prefix
	case m.Regex != nil:
		to.Regex = *m.Regex
	}
}

func headerMatch(name string, m schema.StringMatch) ir.HeaderMatch {
	out := ir.HeaderMatch{Name: name}
	if pseudo, ok := pseudoHeaders[name]; ok {
		out.Name = pseudo
	}
	switch {
	case m.Exact != nil:
		out.Exact = *m.Exact
	case m.Prefix != nil:
		out.Prefix, out.Present = *m.Prefix, *m.Prefix == "" // Every value has the empty prefix.
	case m.Regex != nil:
		out.Regex = *m.Regex
	}
	return asSeen(out)
}
