package schema

import (
	"bytes"
	"encoding/json"
	"iter"
)

// MaxValues is the maximum number of values in an object. A text of small values
// needs more than a hundred times its length of memory until its errors are found.
// The values of a meaningful object of 1 MiB are longer.
const MaxValues = 50_000

// TooMany reports whether a text in JSON or YAML has more than MaxValues values. In
// JSON it counts values; in YAML each line, comma, bracket and dash may be one,
// also in texts and comments.
func TooMany(text []byte) bool {
	if len(text) < MaxValues { // Each value takes a byte, and a separator.
		return false
	}
	if beginsAsJSON(text) || bytes.HasPrefix(bytes.TrimLeft(text, " \t\r\n"), []byte("[")) {
		return jsonValues(text) > MaxValues || yamlValues(text) > MaxValues && !json.Valid(text)
	}
	return yamlValues(text) > MaxValues
}

// Outgrown reports whether a JSON text that was generated from an object, nil for
// none, has more than MaxValues values. If the object already has more, it reports
// whether the text adds more than a few, such as finalizers and labels. Owners do
// not count within their own limit, because no user wrote them.
func Outgrown(text []byte, current *Object) bool {
	const few = MaxValues / 100
	n := valuesUnowned(text)
	if n <= MaxValues || current == nil {
		return n > MaxValues
	}
	had := valuesUnowned(current.JSON())
	return had <= MaxValues || n > had+few
}

func valuesUnowned(text []byte) int {
	n := 0
	if len(text) >= MaxValues { // as in TooMany
		n = jsonValues(text)
	}
	if n <= MaxValues {
		return n
	}
	var of struct {
		Metadata struct {
			ManagedFields json.RawMessage `json:"managedFields"`
		} `json:"metadata"`
	}
	if owners := &of.Metadata.ManagedFields; json.Unmarshal(text, &of) == nil && len(*owners) <= MaxOwnersBytes {
		n -= jsonValues(*owners)
	}
	return n
}

func jsonValues(text []byte) int {
	n := 1
	for c := range Unquoted(text) {
		if c == ',' || c == '{' || c == '[' {
			n++
		}
	}
	return n
}

// Unquoted returns the bytes of a JSON text that are outside of its strings.
func Unquoted(text []byte) iter.Seq[byte] {
	return func(yield func(byte) bool) {
		quoted := false
		for i := 0; i < len(text); i++ {
			switch c := text[i]; {
			case quoted && c == '\\':
				i++
			case c == '"':
				quoted = !quoted
			case !quoted && !yield(c):
				return
			}
		}
	}
}

func yamlValues(text []byte) int {
	n := 1
	for i, c := range text {
		switch c {
		case ',', '{', '[', '\n', '\r':
			n++
		case '-', '?':
			if i+1 < len(text) && (text[i+1] == ' ' || text[i+1] == '\t') {
				n++
			}
		}
	}
	return n
}
