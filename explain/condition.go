package explain

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/pilot-api/pilot-api/ir"
)

// fails is the first condition of a match that does not hold for the request,
// with what was found; "" when all hold.
func fails(m ir.Match, r Request) string {
	if !pathFits(m, r) {
		path, _ := r.bare()
		return fmt.Sprintf("%s, is %q", pathText(m, true), path)
	}
	for _, h := range m.Headers {
		if value, ok := r.header(h.Name); !headerFits(h, value, ok) {
			return headerText(h, true) + found(h.Name, value, ok)
		}
	}
	for _, q := range m.Query {
		if value, ok := r.parameter(q.Name); !ok || !queryFits(q, value) {
			return queryText(q, true) + found(q.Name, value, ok)
		}
	}
	return ""
}

func found(name, value string, ok bool) string {
	if name == ":path" {
		value = shownPath(value)
	}
	switch {
	case !ok:
		return ", is not there"
	case ir.Shown(name, value) != value:
		return ", is another"
	}
	return fmt.Sprintf(", is %q", value)
}

func pathFits(m ir.Match, r Request) bool {
	path, _ := r.bare()
	if m.Regex != "" {
		return whole(m.Regex, path)
	}
	exact, prefix := m.Path, m.Prefix
	if m.IgnoreCase {
		path, exact, prefix = strings.ToLower(path), strings.ToLower(exact), strings.ToLower(prefix)
	}
	if exact != "" {
		return path == exact
	}
	return strings.HasPrefix(path, prefix)
}

// headerFits: what must not be so is not so where there is no such header.
func headerFits(h ir.HeaderMatch, value string, ok bool) bool {
	if !ok {
		return h.Not
	}
	fits := value == h.Exact
	switch {
	case h.Present:
		fits = true
	case h.Regex != "":
		fits = whole(h.Regex, value)
	case h.Prefix != "":
		fits = strings.HasPrefix(value, h.Prefix)
	}
	return fits != h.Not
}

func queryFits(q ir.QueryMatch, value string) bool {
	switch {
	case q.Present:
		return true
	case q.Regex != "":
		return whole(q.Regex, value)
	}
	return value == q.Exact
}

// whole matches all of a text. Expressions are those of RE2, which Go has too.
func whole(expression, text string) bool {
	re, err := regexp.Compile(`^(?:` + expression + `)$`)
	return err == nil && re.MatchString(text)
}
