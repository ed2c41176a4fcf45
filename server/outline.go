package server

// outline is what a valid JSON text looks like from afar.
type outline struct {
	levels int // How deep maps and lists stand in each other.
	// second is how many entries the maps and lists on the second level have at
	// least: of {"operations":[…]} the operations.
	second int
}

func outlineOf(text []byte) outline {
	var o outline
	level, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			level++
			o.levels = max(o.levels, level)
		case c == '}' || c == ']':
			level--
		case c == ',' && level == 2:
			o.second++
		}
	}
	return o
}
