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

// Limits on texts, so that no text can occupy the reader for long.
const (
	// MaxNewBytes is the maximum Size of an object that is created, MaxObjectBytes
	// that of any object. The difference leaves room for later additions: a label,
	// a finalizer, a tool's note.
	MaxNewBytes    = 1 << 20
	MaxObjectBytes = MaxNewBytes + 64<<10
	// MaxTextBytes is the maximum length of the text of one object. The largest
	// object, as the server returns it with everything that it added, can be sent
	// back. MaxOwnersBytes of that are for its managedFields.
	MaxTextBytes   = MaxObjectBytes + MaxOwnersBytes + 1<<10
	MaxOwnersBytes = 64 << 10
	maxDepth       = 64
	// maxAliased is the maximum that aliases repeat in one document: a byte for
	// each value, and its text.
	maxAliased = 100_000
	// mostProblems is the maximum number of problems that are listed.
	mostProblems = 100
)

// tree is a document after parsing: maps, lists, texts, int64, float64, bool and
// nil, with a way to find lines and columns.
type tree struct {
	value any
	nodes func() *yaml.Node // nil if there are no positions
	known diag.List         // see Options
	places
}

// parse parses the syntax. The caller must limit the text. A text that begins with
// { is tried as JSON first, which is many times faster than YAML.
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

// loneSurrogate returns where a JSON text has an escape that is half of a surrogate
// pair, or -1. A decoder would replace it with another character.
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
			i++ // Skip the character after the backslash, which may be a backslash itself.
		}
	}
	return -1
}

// escapedUnit returns the UTF-16 code unit of the escape at the beginning of a
// text, or 0.
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

// firstInvalid returns the first place at which a text is not UTF-8.
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

// tooLong rejects a text that is too large to be an object, and returns nil for
// others. With counted it does not count the values.
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

// lazyNodes parses a text for positions, on first use.
func lazyNodes(text func() []byte) func() *yaml.Node {
	return sync.OnceValue(func() *yaml.Node {
		var root yaml.Node
		if yaml.Unmarshal(text(), &root) != nil || len(root.Content) == 0 {
			return nil
		}
		return root.Content[0]
	})
}

// locate returns the position of a problem's field: of its value if that is on the
// line of the name, as for texts and numbers, else of its name. A missing field
// gets the position of the nearest existing parent. The field is relative to an
// object, and that to the document.
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
