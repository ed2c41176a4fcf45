package schema

import "strings"

// A path is compared as its service will understand it: before routing, proxies
// decode needless escapes, add necessary ones and resolve dot segments.

// pathNeverIs says why no path can be this text, or begin with it if part is set;
// "" if one can.
func pathNeverIs(path string, part bool) string {
	switch {
	case !strings.HasPrefix(path, "/") && (path != "*" || part):
		return "a path begins with a slash"
	case strings.ContainsAny(path, "?#"):
		return "a path is compared without its query; use queryParams"
	case strings.ContainsFunc(path, func(r rune) bool { return r <= ' ' || r >= 0x7f }):
		return "a request cannot have a space or a character beyond ASCII in its path, where they are escaped, such as %20"
	case strings.ContainsAny(path, escapedInPaths):
		return "proxies escape the characters " + escapedInPaths + " of a path, and make a slash of a backslash, before they compare it"
	case decodes(path):
		return "proxies decode letters, digits, -, _, . and ~ of a path before they compare it; write them as they are"
	case climbs(path, part):
		return "proxies take /./ and /../ out of a path before they compare it"
	}
	return ""
}

// escapedInPaths are characters that the path of a request may have and that routes
// never see.
const escapedInPaths = "\"<>\\^`{|}"

// decodes reports whether a path has an escape that proxies decode.
func decodes(path string) bool {
	for i := range len(path) {
		if c, ok := escaped(path[i:]); ok && unreserved(c) {
			return true
		}
	}
	return false
}

// escaped decodes the escape at the beginning of a text.
func escaped(text string) (byte, bool) {
	if len(text) < 3 || text[0] != '%' {
		return 0, false
	}
	high, low := strings.IndexByte(hexDigits, text[1]|0x20), strings.IndexByte(hexDigits, text[2]|0x20)
	return byte(high<<4 | low), high >= 0 && low >= 0
}

const hexDigits = "0123456789abcdef"

func unreserved(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-_.~", c) >= 0
}

// climbs reports whether a path has a segment of one or two dots. If part is set,
// the last segment does not count, because it may continue.
func climbs(path string, part bool) bool {
	steps := strings.Split(path, "/")
	if part {
		steps = steps[:len(steps)-1]
	}
	for _, step := range steps {
		if step == "." || step == ".." {
			return true
		}
	}
	return false
}
