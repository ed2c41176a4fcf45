package server

import "github.com/pilot-api/pilot-api/schema"

// outline is the coarse structure of a valid JSON text.
type outline struct {
	levels int // how deep maps and lists are nested
	// second is the number of commas on the second level: one less than the operations
	// in {"operations":[…]}.
	second int
}

func outlineOf(text []byte) outline {
	var o outline
	level := 0
	for c := range schema.Unquoted(text) {
		switch c {
		case '{', '[':
			level++
			o.levels = max(o.levels, level)
		case '}', ']':
			level--
		case ',':
			if level == 2 {
				o.second++
			}
		}
	}
	return o
}
