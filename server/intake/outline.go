package intake

import "github.com/pilot-api/pilot-api/schema"

// Outline is the coarse structure of a valid JSON text.
type Outline struct {
	Levels int // how deep maps and lists are nested
	// third is the number of commas on the third level: at least one less than the
	// operations in {"spec":{"operations":[…]}}.
	ThirdCommas int
}

// OutlineOf returns the outline of a valid JSON text.
func OutlineOf(text []byte) Outline {
	var o Outline
	level := 0
	for c := range schema.Unquoted(text) {
		switch c {
		case '{', '[':
			level++
			o.Levels = max(o.Levels, level)
		case '}', ']':
			level--
		case ',':
			if level == 3 {
				o.ThirdCommas++
			}
		}
	}
	return o
}
