package explain

import (
	"fmt"
	"strconv"
	"strings"
)

// normalized returns a path as a proxy normalizes it before it does anything else:
// as in RFC 3986, with backslashes replaced by slashes. It returns false if the
// proxy rejects the path. The query stays as it is.
func normalized(target string) (string, bool) {
	path, query, asks := strings.Cut(target, "?")
	n := normalizer{rest: path}
	for len(n.rest) > 0 {
		if !n.step() {
			return target, false
		}
	}
	if asks {
		return string(n.out) + "?" + query, true
	}
	return string(n.out), true
}

type normalizer struct {
	out  []byte
	rest string
}

// step consumes one character, an escape, or a dot segment. It returns false for a
// character that no path may have.
func (n *normalizer) step() bool {
	if n.dots() {
		return true
	}
	c := n.rest[0]
	if c != '%' {
		n.rest = n.rest[1:]
		n.add(c)
		return true
	}
	decoded, ok := unescaped(n.rest)
	switch {
	case !ok:
		n.out, n.rest = append(n.out, c), n.rest[1:]
		return true
	case decoded == 0:
		return false
	case unreserved(decoded):
		n.out = append(n.out, decoded)
	default:
		n.out = append(n.out, n.rest[:3]...)
	}
	n.rest = n.rest[3:]
	return true
}

func (n *normalizer) add(c byte) {
	switch {
	case c == '\\':
		n.out = append(n.out, '/')
	case c <= ' ' || c >= 0x7f || strings.IndexByte("\"<>^`{|}", c) >= 0:
		n.out = fmt.Appendf(n.out, "%%%02X", c)
	default:
		n.out = append(n.out, c)
	}
}

// dots removes a segment of one dot, or a segment of two dots together with the
// segment before.
func (n *normalizer) dots() bool {
	if len(n.out) == 0 || n.out[len(n.out)-1] != '/' {
		return false
	}
	count, rest := 0, n.rest
	for after, ok := cutDot(rest); ok; after, ok = cutDot(rest) {
		count, rest = count+1, after
	}
	if count == 0 || count > 2 || rest != "" && rest[0] != '/' && rest[0] != '\\' {
		return false
	}
	if count == 2 && len(n.out) > 1 {
		n.out = n.out[:1+strings.LastIndexByte(string(n.out[:len(n.out)-1]), '/')]
	}
	n.rest = rest[min(1, len(rest)):]
	return true
}

// cutDot removes a leading dot, which may be escaped.
func cutDot(text string) (rest string, ok bool) {
	if rest, ok := strings.CutPrefix(text, "."); ok {
		return rest, true
	}
	if c, ok := unescaped(text); ok && c == '.' {
		return text[3:], true
	}
	return text, false
}

// unescaped decodes the escape at the beginning of a text.
func unescaped(text string) (c byte, ok bool) {
	if len(text) < 3 || text[0] != '%' {
		return 0, false
	}
	n, err := strconv.ParseUint(text[1:3], 16, 8)
	return byte(n), err == nil
}

func unreserved(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-._~", c) >= 0
}
