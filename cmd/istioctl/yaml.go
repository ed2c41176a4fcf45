package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// yamlPrinter prints objects as YAML documents, as that of kubectl does, also those
// with characters that YAML has no place for.
type yamlPrinter struct{ printed int }

func (p *yamlPrinter) PrintObj(o runtime.Object, w io.Writer) error {
	text, err := marshalYAML(o)
	if err != nil {
		return err
	}
	if p.printed++; p.printed > 1 {
		text = append([]byte("---\n"), text...)
	}
	_, err = w.Write(text)
	return err
}

// marshalYAML is a value as YAML, by its JSON.
func marshalYAML(v any) ([]byte, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return toYAML(text)
}

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
