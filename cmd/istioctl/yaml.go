package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/pilot-api/pilot-api/internal/terminal"
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

// toYAML is a JSON text as YAML. A character that a YAML text may not have in it, or
// that a terminal may not show, is escaped.
func toYAML(text []byte) ([]byte, error) {
	mark := newQuoteMark(text)
	text, err := yaml.JSONToYAML(mark.put(text))
	if err != nil {
		return nil, err
	}
	// What is unsafe now is in quotes, where an escape means the same.
	return []byte(terminal.Escape(string(mark.take(text)))), nil
}

// unprintable are the characters of the Basic Multilingual Plane that a JSON text
// may have in it, in strings only, and that YAML readers refuse or take for the end
// of a line, or that a terminal may not show. The encoder quotes those of other planes.
func unprintable(r rune) bool {
	return 0x7f <= r && r <= 0xffff && terminal.Unsafe(r) || r == 0xfffe || r == 0xffff
}

// quoteMark is a character that the encoder always quotes and escapes. Beside a
// character that YAML may have without quotes, it makes the encoder quote the whole
// string. It is taken out of the result.
type quoteMark rune

// newQuoteMark is a mark that a JSON text has in no spelling.
func newQuoteMark(text []byte) quoteMark {
	text = bytes.ToUpper(text)
	for r := rune(0xf0000); ; r++ {
		high, low := utf16.EncodeRune(r)
		mark := quoteMark(r)
		if !bytes.Contains(text, []byte(string(r))) && !bytes.Contains(text, mark.escaped()) &&
			!bytes.Contains(text, fmt.Appendf(nil, `\U%04X\U%04X`, high, low)) {
			return mark
		}
	}
}

// escaped is how the encoder writes it.
func (m quoteMark) escaped() []byte { return fmt.Appendf(nil, `\U%08X`, rune(m)) }

func (m quoteMark) take(text []byte) []byte { return bytes.ReplaceAll(text, m.escaped(), nil) }

// put writes a JSON text so that the encoder quotes each string that has an
// unprintable character in it, as itself or as an escape.
func (m quoteMark) put(text []byte) []byte {
	var out bytes.Buffer
	for len(text) > 0 {
		r, size := nextRune(text)
		if unprintable(r) {
			fmt.Fprintf(&out, `%c\u%04x`, m, r)
		} else {
			out.Write(text[:size])
		}
		text = text[size:]
	}
	return out.Bytes()
}

// nextRune is the first character of a JSON text, or the one that an escape at its
// beginning stands for, and the bytes of it. Of other escapes it is the backslash.
func nextRune(text []byte) (rune, int) {
	if text[0] != '\\' || len(text) < 2 {
		return utf8.DecodeRune(text)
	}
	if text[1] != 'u' || len(text) < 6 {
		return '\\', 2
	}
	r, err := strconv.ParseUint(string(text[2:6]), 16, 16)
	if err != nil {
		return '\\', 2
	}
	return rune(r), 6
}
