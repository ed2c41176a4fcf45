package server

import "github.com/pilot-api/pilot-api/schema"

// outline is what a valid JSON text looks like from afar.
type outline struct {
	levels int // How deep maps and lists stand in each other.
	// second is how many commas are on the second level: as many as there are
	// operations in {"operations":[…]}, but one.
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
