package explain

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/pilot-api/pilot-api/ir"
)

// fails returns the first condition of a match that the request does not meet, with
// the value found. It returns "" if the request meets all.
func fails(m ir.Match, r Request) string {
	if !pathFits(m, r) {
		path, _ := r.bare()
		return fmt.Sprintf("%s, is %q", pathText(m, true), path)
	}
	for _, h := range m.Headers {
		if values := r.header(h.Name); !headerFits(h, values) {
			return headerText(h, true) + found(h.Name, values)
		}
	}
	for _, q := range m.Query {
		if value, ok := r.parameter(q.Name); !ok || !queryFits(q, value) {
			return queryText(q, true) + found(q.Name, given(value, ok))
		}
	}
	return ""
}

// given returns a list of the value, or nil if there is none.
func given(value string, ok bool) []string {
	if !ok {
		return nil
	}
	return []string{value}
}

// found describes the values of a header or parameter as an answer may show them.
func found(name string, values []string) string {
	if len(values) == 0 {
		return ", is not there"
	}
	var texts []string
	for _, value := range values {
		if name == ":path" {
			value = shownPath(value)
		}
		if ir.Shown(name, value) != value {
			return ", is another"
		}
		texts = append(texts, strconv.Quote(value))
	}
	return ", is " + strings.Join(texts, " and ")
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

// headerFits reports whether one of the values meets the condition. An inverted
// condition must fail for all values. Without values, a condition fails and an
// inverted one holds.
func headerFits(h ir.HeaderMatch, values []string) bool {
	return slices.ContainsFunc(values, func(value string) bool { return valueFits(h, value) }) != h.Not
}

func valueFits(h ir.HeaderMatch, value string) bool {
	switch {
	case h.Present:
		return true
	case h.Regex != "":
		return whole(h.Regex, value)
	case h.Prefix != "":
		return strings.HasPrefix(value, h.Prefix)
	}
	return value == h.Exact
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

// whole reports whether an expression matches all of a text. Expressions are RE2's,
// which Go supports too.
func whole(expression, text string) bool {
	re, err := regexp.Compile(`^(?:` + expression + `)$`)
	return err == nil && re.MatchString(text)
}
