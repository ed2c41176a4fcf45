package wire

import (
	"fmt"
	"unicode/utf8"
)

// MostLogged bounds each text of a request in a line of the log, in bytes.
const MostLogged = 1 << 10

// Short returns a text of a request for a log or record. It cuts a longer text after most
// bytes, and adds the number of the others.
func Short(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return fmt.Sprintf("%s… (%d more bytes)", text[:most], len(text)-most)
}
