package printer

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

// yamlPrinter prints objects as YAML documents, like kubectl's printer, but also accepts
// characters that YAML does not allow.
type yamlPrinter struct{ printed int }

func (p *yamlPrinter) PrintObj(o runtime.Object, w io.Writer) error {
	text, err := MarshalYAML(o)
	if err != nil {
		return err
	}
	if p.printed++; p.printed > 1 {
		text = append([]byte("---\n"), text...)
	}
	_, err = w.Write(text)
	return err
}

// MarshalYAML returns a value as YAML, by way of its JSON.
func MarshalYAML(v any) ([]byte, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return ToYAML(text)
}

// ToYAML converts JSON to YAML. It escapes characters that YAML does not allow or that a
// terminal must not show.
func ToYAML(text []byte) ([]byte, error) {
	mark := newQuoteMark(text)
	text, err := yaml.JSONToYAML(mark.put(text))
	if err != nil {
		return nil, err
	}
	// Unsafe characters are now in quotes, where an escape means the same.
	return []byte(terminal.Escape(string(mark.take(text)))), nil
}

// unprintable reports whether a character of the Basic Multilingual Plane may be in a
// JSON string, but YAML readers refuse it or treat it as a line end, or a terminal must
// not show it. The encoder quotes the characters of other planes.
func unprintable(r rune) bool {
	return 0x7f <= r && r <= 0xffff && terminal.Unsafe(r) || r == 0xfffe || r == 0xffff
}

// quoteMark is a character that the encoder always quotes and escapes. It is put next to
// a character that YAML may have without quotes, to make the encoder quote the whole
// string. It is removed from the result.
type quoteMark rune

// newQuoteMark returns a mark that a JSON text does not contain, encoded in any way.
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

// escaped returns the encoder's output for the mark.
func (m quoteMark) escaped() []byte { return fmt.Appendf(nil, `\U%08X`, rune(m)) }

func (m quoteMark) take(text []byte) []byte { return bytes.ReplaceAll(text, m.escaped(), nil) }

// put inserts marks into a JSON text so that the encoder quotes each string that
// contains an unprintable character, as itself or as an escape.
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

// nextRune returns the first character of a JSON text and its size in bytes. It decodes
// a \u escape. For any other escape it returns the backslash.
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
