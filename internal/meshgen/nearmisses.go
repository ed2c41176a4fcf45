package meshgen

import (
	"maps"
	"strings"

	"github.com/pilot-api/pilot-api/internal/evaluator"
	"github.com/pilot-api/pilot-api/ir"
)

// matchRequests returns a request that matches, and requests that fail one condition.
func matchRequests(m ir.Match) []evaluator.Request {
	fits := evaluator.Request{Method: "GET", Headers: map[string]string{}}
	paths := pathsFor(m)
	fits.Path = paths[0]
	for _, h := range m.Headers {
		setHeader(&fits, h.Name, headerValues(h)[0])
	}
	var query []string
	for _, q := range m.Query {
		query = append(query, q.Name+"="+queryValues(q)[0])
	}
	fits.Path = withQuery(fits.Path, query)
	out := []evaluator.Request{fits}
	for _, path := range paths[1:] {
		out = append(out, changed(fits, func(r *evaluator.Request) { r.Path = withQuery(path, query) }))
	}
	for _, h := range m.Headers {
		out = append(out, changed(fits, func(r *evaluator.Request) { delete(r.Headers, h.Name) }))
		for _, value := range headerValues(h)[1:] {
			out = append(out, changed(fits, func(r *evaluator.Request) { setHeader(r, h.Name, value) }))
		}
	}
	for i, q := range m.Query {
		for _, value := range queryValues(q)[1:] {
			other := append([]string{}, query...)
			other[i] = q.Name + "=" + value
			out = append(out, changed(fits, func(r *evaluator.Request) { r.Path = withQuery(paths[0], other) }))
		}
		out = append(out, changed(fits, func(r *evaluator.Request) { r.Path = paths[0] + "?" + q.Name }))
	}
	return out
}

func changed(r evaluator.Request, change func(*evaluator.Request)) evaluator.Request {
	r.Headers = maps.Clone(r.Headers)
	change(&r)
	return r
}

func setHeader(r *evaluator.Request, name, value string) {
	switch strings.ToLower(name) {
	case ":method":
		r.Method = value
	case ":authority", "host":
		r.Host = value
	case ":path":
		r.Path = value
	default:
		r.Headers[strings.ToLower(name)] = value
	}
}

func withQuery(path string, query []string) string {
	if len(query) == 0 {
		return path
	}
	separator := "?"
	if strings.Contains(path, "?") {
		separator = "&"
	}
	return path + separator + strings.Join(query, "&")
}

// pathsFor returns a path that matches and some that may not.
func pathsFor(m ir.Match) []string {
	switch {
	case m.Path != "":
		return []string{m.Path, m.Path + "?q=1", m.Path + "/x", strings.ToUpper(m.Path)}
	case m.Regex != "":
		path := example(m.Regex)
		return []string{path, path + "?q=1", path + "/x/", "/x" + path}
	case m.AnyPath():
		return []string{"/", "/any/path?q=1"}
	default:
		return []string{m.Prefix, m.Prefix + "/more?q=1", m.Prefix + "more", m.Prefix[:len(m.Prefix)-1], strings.ToUpper(m.Prefix)}
	}
}

func headerValues(h ir.HeaderMatch) []string {
	switch {
	case h.Present:
		return []string{"any", ""}
	case h.Regex != "":
		return []string{example(h.Regex), example(h.Regex) + "x", ""}
	default:
		value := h.Exact + h.Prefix
		return []string{value, value + "x", "x" + value, strings.ReplaceAll(value, ".", "x"), strings.ToUpper(value), ""}
	}
}

func queryValues(q ir.QueryMatch) []string {
	return headerValues(ir.HeaderMatch{Exact: q.Exact, Regex: q.Regex, Present: q.Present})
}
