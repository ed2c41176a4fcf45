package main

import (
	"bytes"
	"fmt"

	"sigs.k8s.io/yaml"
)

// toYAML is a JSON text as YAML. What a YAML text may not have in it, and a JSON
// text may, is escaped.
func toYAML(text []byte) ([]byte, error) {
	if bytes.ContainsFunc(text, unprintable) {
		var escaped bytes.Buffer
		for _, r := range string(text) {
			if unprintable(r) {
				fmt.Fprintf(&escaped, `\u%04x`, r)
				continue
			}
			escaped.WriteRune(r)
		}
		text = escaped.Bytes()
	}
	return yaml.JSONToYAML(text)
}

// unprintable are the characters of the Basic Multilingual Plane that a JSON text
// may have in it, in strings only, and that YAML readers refuse or take for the end
// of a line.
func unprintable(r rune) bool {
	return 0x7f <= r && r <= 0x9f || r == 0xfeff || r == 0xfffe || r == 0xffff
}
