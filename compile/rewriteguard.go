package compile

import (
	"regexp"
	"strings"
	"unicode"

	"github.com/pilot-api/pilot-api/ir"
)

// guarded returns a route, after one that refuses the paths of which its rewrite
// would make a path with a dot segment: with the prefix /public rewritten to /,
// /public../admin would be /../admin. A proxy normalizes paths before it rewrites
// them and not afterwards, so the service would take that for /admin, past the rules
// for it.
func guarded(planned plannedRoute) []plannedRoute {
	route := planned.route
	if route.Rewrite == nil || !makesDotSegments(route.Match, route.Rewrite.Path) {
		return []plannedRoute{planned}
	}
	guard := planned
	guard.targets = nil
	guard.route = &ir.Route{Operation: route.Operation, Name: route.Name, Match: dotSegments(route.Match), Response: ir.BadPath(), Origins: route.Origins}
	return []plannedRoute{guard, planned}
}

// makesDotSegments reports whether text, followed by the rest of a path after the prefix,
// can make a segment of dots. After a final slash, the rest consists of whole segments of a
// normal path. A path or an expression is replaced as a whole.
func makesDotSegments(m ir.Match, text string) bool {
	if text == "" || m.Prefix == "" || strings.HasSuffix(m.Prefix, "/") || strings.ContainsAny(m.Prefix+text, "?#") {
		return false
	}
	last := text[strings.LastIndexAny(text, `/\`)+1:]
	return last == "" || last == "." || strings.EqualFold(last, "%2e")
}

// dotSegments returns a match for the requests in which one or two dots, and then a
// slash or nothing, follow the prefix.
func dotSegments(m ir.Match) ir.Match {
	prefix := regexp.QuoteMeta(m.Prefix)
	if m.IgnoreCase {
		prefix = inAnyCase(m.Prefix)
	}
	m.Prefix, m.IgnoreCase, m.Regex = "", false, prefix+`\.\.?(/.*)?`
	return m
}

// inAnyCase returns an expression for the text in any case. Not every dialect of
// expressions has a flag for that.
func inAnyCase(text string) string {
	var out strings.Builder
	for _, r := range text {
		if lower, upper := unicode.ToLower(r), unicode.ToUpper(r); r < unicode.MaxASCII && lower != upper {
			out.WriteString("[" + string(lower) + string(upper) + "]")
		} else {
			out.WriteString(regexp.QuoteMeta(string(r)))
		}
	}
	return out.String()
}
