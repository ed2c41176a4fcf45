package v1

import (
	"strings"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
)

// unreadable is the Problem of a route with a regex that a v1 Envoy refuses,
// and the whole table with it.
func unreadable(r *ir.Route) diag.List {
	regexes := []string{r.Match.Regex}
	for _, h := range r.Match.Headers {
		regexes = append(regexes, h.Regex)
	}
	for _, q := range r.Match.Query {
		regexes = append(regexes, q.Regex)
	}
	for _, re := range regexes {
		if part := foreign(re); part != "" {
			return diag.Warn(diag.NotHonoured, r.Origins,
				"Envoy v1 gets no such route: its regular expressions (ECMAScript) do not know %s, found %q", part, re)
		}
	}
	return nil
}

// foreign is the first construct of RE2 in re that std::regex in ECMAScript
// mode refuses: flags and named groups, text anchors, quoting, Unicode classes.
// "" if there is none.
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
