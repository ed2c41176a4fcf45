package evaluator

import "strings"

func (m PathMatch) matches(r Request) bool {
	path, query := r.bare()
	if m.SeesQuery {
		path += query
	}
	if m.Kind == Regex {
		return m.Regex.MatchString(path)
	}
	text := m.Text
	if m.IgnoreCase {
		path, text = strings.ToLower(path), strings.ToLower(text)
	}
	if m.Kind == Exact {
		return path == text
	}
	return strings.HasPrefix(path, text)
}

func headersMatch(matches []HeaderMatch, r Request) bool {
	for _, m := range matches {
		if value, ok := r.header(m.Name); !m.matches(value, ok) {
			return false
		}
	}
	return true
}

// matches reports whether a header matches. Envoy inverts a condition on presence also
// if the header is absent.
func (m HeaderMatch) matches(value string, ok bool) bool {
	if !ok && !m.MissingAsEmpty {
		return m.Any && m.Not
	}
	return m.fits(value) != m.Not
}

func (m ValueMatch) fits(value string) bool {
	switch {
	case m.Any:
		return true
	case m.Regex != nil:
		return m.Regex.MatchString(value)
	case m.Prefix != "":
		return strings.HasPrefix(value, m.Prefix)
	default:
		return value == m.Exact
	}
}

// parameter returns the first value of a query parameter.
func (r Request) parameter(name string) (value string, ok bool) {
	_, query := r.bare()
	for pair := range strings.SplitSeq(strings.TrimPrefix(query, "?"), "&") {
		if key, value, _ := strings.Cut(pair, "="); key == name {
			return value, true
		}
	}
	return "", false
}
