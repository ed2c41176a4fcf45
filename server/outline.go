package server

import "github.com/pilot-api/pilot-api/schema"

// outline is the coarse structure of a valid JSON text.
type outline struct {
	levels int // how deep maps and lists are nested
	// third is the number of commas on the third level: at least one less than the
	// operations in {"spec":{"operations":[…]}}.
	third int
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
			if level == 3 {
				o.third++
			}
		}
	}
	return o
}
