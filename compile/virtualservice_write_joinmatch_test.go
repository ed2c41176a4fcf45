package compile

import (
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/pilot-api/pilot-api/ir"
)

// A joined match takes exactly the paths that both take; where it cannot be asked,
// no fewer.
func TestJoinedPaths(t *testing.T) {
	path := rapid.Custom(func(t *rapid.T) ir.Match {
		m := ir.Match{IgnoreCase: rapid.Bool().Draw(t, "any case")}
		switch text := rapid.SampledFrom([]string{"/", "/a", "/A", "/a/b", "/a/b/c", "/b"}).Draw(t, "text"); rapid.IntRange(0, 2).Draw(t, "way") {
		case 0:
			m.Path = text
		case 1:
			m.Prefix = text
		default:
			m.IgnoreCase = false
			m.Regex = rapid.SampledFrom([]string{"/a", "/a/[a-z]+", "/.*", "/a.*", "/[^x]+", "(?i)/A/b", "/a/b$", "/a|/b"}).Draw(t, "expression")
		}
		return m
	})
	requests := []string{"/", "/a", "/A", "/b", "/ab", "/a/b", "/a/B", "/A/b", "/a/b/c", "/a/x", "/x", "/a/bc", "/b/a", "/a/?"}
	rapid.Check(t, func(t *rapid.T) {
		outer, inner := path.Draw(t, "outer"), path.Draw(t, "inner")
		joined, asked, some := joinedPaths(outer, inner, rapid.Bool().Draw(t, "rewrites"))
		for _, bare := range requests {
			for _, request := range []string{bare, bare + "?q=1", bare + "?/a/b"} {
				want, got := takes(t, outer, request) && takes(t, inner, request), some && takes(t, joined, request)
				if want != got && (asked || want) {
					t.Fatalf("%s: %+v and %+v make %+v: want %v, found %v", request, outer, inner, joined, want, got)
				}
			}
		}
	})
}

// takes is what an Envoy does: the path is without the query, :path with it.
func takes(t *rapid.T, m ir.Match, request string) bool {
	whole := func(expression, text string) bool {
		re, err := regexp.Compile("^(?:" + expression + ")$")
		if err != nil {
			t.Fatal(err)
		}
		return re.MatchString(text)
	}
	for _, h := range m.Headers {
		if h.Prefix != "" && !strings.HasPrefix(request, h.Prefix) || h.Regex != "" && !whole(h.Regex, request) {
			return false
		}
	}
	path, _, _ := strings.Cut(request, "?")
	anyCase := func(text string) string { return text }
	if m.IgnoreCase {
		anyCase = strings.ToLower
	}
	switch {
	case m.Regex != "":
		return whole(m.Regex, path)
	case m.Path != "":
		return anyCase(path) == anyCase(m.Path)
	}
	return strings.HasPrefix(anyCase(path), anyCase(m.Prefix))
}
