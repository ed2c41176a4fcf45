package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	kjson "sigs.k8s.io/json"

	"github.com/pilot-api/pilot-api/diag"
)

func (d Document) parseJSON() (*tree, diag.List) {
	t := d.unread()
	strict, err := kjson.UnmarshalStrict(d.Text, &t.value)
	if err != nil {
		return nil, d.malformedJSON(err)
	}
	if depth(t.value) > maxDepth {
		return nil, d.malformed(0, 0, tooDeep)
	}
	var list diag.List
	for _, found := range strict {
		p := diag.Problem{Severity: diag.Error, Reason: diag.FieldDuplicate, Code: diag.DuplicateValue, Message: "is given twice"}
		if at, ok := found.(kjson.FieldError); ok {
			p.Field = at.FieldPath()
		}
		p.Position = t.locate("", p)
		list = append(list, p)
	}
	return t, list
}

// parseJSONOrYAML reads a text that begins with {, which may be YAML such as {kind:
// RouteRule}. If it is neither, the error is that of the format that its first name
// looks like.
func (d Document) parseJSONOrYAML() (*tree, diag.List) {
	t, mistake := d.parseJSON()
	if t != nil || json.Valid(d.Text) {
		return t, mistake
	}
	t, list := d.parseYAML()
	if t == nil && looksLikeJSON(d.Text) {
		return nil, mistake
	}
	return t, list
}

// looksLikeJSON reports whether a map begins with a quoted name, or ends at once.
func looksLikeJSON(text []byte) bool {
	_, rest, _ := bytes.Cut(text, []byte("{"))
	rest = bytes.TrimLeft(rest, " \t\r\n")
	return len(rest) == 0 || rest[0] == '"' || rest[0] == '}'
}

func (d Document) malformedJSON(err error) diag.List {
	isSyntax, offset := kjson.SyntaxErrorOffset(err)
	if !isSyntax {
		// Decoding into any fails only for a number that does not fit.
		return d.numberTooLarge()
	}
	line, column := d.lineColumn(offset - 1)
	message := "not valid JSON: " + err.Error()
	if strings.Contains(message, "after top-level value") {
		message = "not valid JSON: there is more text after the end of the object"
	}
	return d.malformed(line, column, message)
}

// lineColumn returns the position of a byte of the text.
func (d Document) lineColumn(offset int64) (line, column int) {
	before := d.Text[:min(max(offset, 0), int64(len(d.Text)))]
	line = 1 + bytes.Count(before, []byte("\n"))
	column = 1 + len([]rune(string(before[bytes.LastIndexByte(before, '\n')+1:])))
	return line, column
}

// numberTooLarge reports the first number of a valid JSON text that no float64 can hold.
func (d Document) numberTooLarge() diag.List {
	dec := json.NewDecoder(bytes.NewReader(d.Text))
	dec.UseNumber()
	field, number := findNumber(dec, "", func(n json.Number) bool { _, err := n.Float64(); return err != nil })
	line, column := d.lineColumn(dec.InputOffset() - int64(len(number)))
	list := d.malformed(line, column, fmt.Sprintf("the number %s is too large", number))
	list[0].Field = field
	return list
}

// findNumber reads the next value, and stops after a number that is searched. It returns its
// field, or "" with no number.
func findNumber(dec *json.Decoder, at string, searched func(json.Number) bool) (field string, number json.Number) {
	token, err := dec.Token()
	if err != nil {
		return "", ""
	}
	if n, ok := token.(json.Number); ok && searched(n) {
		return at, n
	}
	open, ok := token.(json.Delim)
	if !ok {
		return "", ""
	}
	for i := 0; dec.More(); i++ {
		in := indexField(at, i)
		if open == '{' {
			name, _ := dec.Token() // The text is valid, so this is a name.
			in = keyField(at, fmt.Sprint(name))
		}
		if field, number = findNumber(dec, in, searched); number != "" {
			return field, number
		}
	}
	_, _ = dec.Token() // the end, in a valid text
	return "", ""
}

var tooDeep = fmt.Sprintf("the text is nested more than %d levels deep", maxDepth)

func depth(v any) int {
	deepest := 0
	switch v := v.(type) {
	case map[string]any:
		for _, member := range v {
			deepest = max(deepest, depth(member))
		}
	case []any:
		for _, member := range v {
			deepest = max(deepest, depth(member))
		}
	default:
		return 0
	}
	return deepest + 1
}
