package schema

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"unicode/utf16"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/pilot-api/pilot-api/diag"
)

// Limits on what is read, so that no text can hold the reader up.
const (
	// MaxNewBytes is the Size of the largest object that can be created, and
	// MaxObjectBytes of the largest there can be. The room in between is for
	// what comes later: a label, a finalizer, a note of a tool.
	MaxNewBytes    = 1 << 20
	MaxObjectBytes = MaxNewBytes + 64<<10
	// MaxTextBytes is the longest text of one object: the largest object as it
	// is answered, with all that the server has added, can be sent back. Of that,
	// MaxOwnersBytes are for its managedFields.
	MaxTextBytes   = MaxObjectBytes + MaxOwnersBytes + 1<<10
	MaxOwnersBytes = 64 << 10
	maxDepth       = 64
	// Aliases may repeat this much in one document: a byte for each value, and
	// its text.
	maxAliased = 100_000
	// More problems than these are not listed.
	mostProblems = 100
)

// tree is a document after parsing: maps, lists, texts, int64, float64, bool
// and nil, and the way back to lines and columns.
type tree struct {
	value any
	nodes func() *yaml.Node // nil when there is no way back
	known diag.List         // see Options
	places
}

// parse reads the syntax. Whoever calls it bounds the text. One that begins
// with { is tried as JSON first, in a way many times faster than YAML's.
func (d Document) parse() (*tree, diag.List) {
	text := bytes.TrimPrefix(d.Text, []byte("\ufeff"))
	d.Text = text
	switch {
	case !utf8.Valid(text):
		line, column := firstInvalid(text)
		return nil, d.malformed(line, column, "the text is not in UTF-8")
	case beginsAsJSON(text):
		if at := loneSurrogate(string(text)); at >= 0 {
			line, column := 1+bytes.Count(text[:at], []byte("\n")), utf8.RuneCount(text[bytes.LastIndexByte(text[:at], '\n')+1:at])+1
			return nil, d.malformed(line, column, fmt.Sprintf("the escape %s is half of a surrogate pair, which is no character", text[at:at+6]))
		}
		return d.parseJSONOrYAML()
	}
	return d.parseYAML()
}

// loneSurrogate returns where a JSON text has an escape that is half of a surrogate pair,
// -1 for nowhere. A decoder would replace it with another character.
func loneSurrogate(text string) int {
	if !strings.Contains(text, `\ud`) && !strings.Contains(text, `\uD`) {
		return -1
	}
	for i := 0; i+1 < len(text); i++ {
		if text[i] != '\\' {
			continue
		}
		switch unit := escapedUnit(text[i:]); {
		case utf16.IsSurrogate(unit) && utf16.DecodeRune(unit, escapedUnit(text[i+6:])) == utf8.RuneError:
			return i
		case utf16.IsSurrogate(unit):
			i += len(`\u0000\u0000`) - 1
		default:
			i++ // The character behind the backslash is no backslash of an escape.
		}
	}
	return -1
}

// escapedUnit returns the UTF-16 code unit of the escape that a text begins with, 0 for
// none.
func escapedUnit(text string) rune {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return 0
	}
	unit, err := strconv.ParseUint(text[2:6], 16, 16)
	if err != nil {
		return 0
	}
	return rune(unit)
}

// firstInvalid is where a text is not in UTF-8.
func firstInvalid(text []byte) (line, column int) {
	line, column = 1, 1
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		switch {
		case r == utf8.RuneError && size == 1:
			return line, column
		case r == '\n':
			line, column = line+1, 1
		default:
			column++
		}
		text = text[size:]
	}
	return line, column
}

// tooLong refuses a text that can be no object, and is nil for others. Its values may
// be counted already.
func (d Document) tooLong(counted bool) diag.List {
	switch {
	case len(d.Text) > MaxTextBytes:
		return d.malformed(0, 0, fmt.Sprintf("the text is %d bytes long; %d are allowed", len(d.Text), MaxTextBytes))
	case !counted && TooMany(d.Text):
		return d.malformed(0, 0, fmt.Sprintf("the text has more than %d values", MaxValues))
	}
	return nil
}

func beginsAsJSON(text []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(text, " \t\r\n"), []byte("{"))
}

func (d Document) malformed(line, column int, message string) diag.List {
	p := diag.Problem{Severity: diag.Error, Reason: diag.Malformed, Code: diag.Unreadable, Message: message}
	if line > 0 {
		p.Position = (&places{doc: d}).position(line, column)
	} else if d.File != "" {
		p.Position = (&places{doc: d}).position(1, 1)
	}
	return diag.List{p}
}

// lazyNodes parses for positions, and only when one is asked for.
func lazyNodes(text func() []byte) func() *yaml.Node {
	return sync.OnceValue(func() *yaml.Node {
		var root yaml.Node
		if yaml.Unmarshal(text(), &root) != nil || len(root.Content) == 0 {
			return nil
		}
		return root.Content[0]
	})
}

// locate finds the place of a problem's field: of its value if that is on a
// line with the name, as it is for texts and numbers, else of its name. A field
// that is not there is located at the nearest thing around it. The field is
// relative to an object, and that to the document.
func (t *tree) locate(object string, p diag.Problem) *diag.Position {
	node := t.nodes()
	if node == nil {
		return nil
	}
	at := node
	for _, step := range append(splitField(object), splitField(p.Field)...) {
		name, value := t.child(node, step)
		if value == nil {
			break
		}
		node, at = value, value
		isBlock := value.Kind == yaml.MappingNode || value.Kind == yaml.SequenceNode
		if name != nil && (isBlock || p.Reason == diag.FieldUnknown) {
			at = name
		}
	}
	return t.position(at.Line, at.Column)
}
