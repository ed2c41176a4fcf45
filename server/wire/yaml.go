package wire

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

// JSON is converted to YAML token by token: a library that builds the document
// first takes 100 to 370 times the memory of the text, and a list may have
// thousands of objects of a megabyte. Names keep the order of the JSON.

// yamlWriter writes the values of a JSON text as YAML in block style.
type yamlWriter struct {
	in  *json.Decoder
	out *bufio.Writer
}

// WriteYAML writes a JSON text as a whole YAML document.
func WriteYAML(out *bufio.Writer, text []byte) error { return newYAMLWriter(out, text).value(0, ' ') }

// WriteYAMLItem writes a JSON text as an entry of a YAML list that is not indented.
func WriteYAMLItem(out *bufio.Writer, text []byte) error {
	_ = out.WriteByte('-')
	return newYAMLWriter(out, text).value(0, '-')
}

func newYAMLWriter(out *bufio.Writer, text []byte) yamlWriter {
	in := json.NewDecoder(bytes.NewReader(text))
	in.UseNumber()
	return yamlWriter{in, out}
}

// value writes the next value. behind is what precedes it at column: a name (:),
// the dash of an entry (-), or nothing (a space). Writing has no errors: a
// bufio.Writer keeps them until it is flushed.
func (y yamlWriter) value(column int, behind byte) error {
	token, err := y.in.Token()
	if err != nil {
		return err
	}
	switch token {
	case json.Delim('{'):
		return y.members(inside(column, behind, 2), behind, "{}", y.member)
	case json.Delim('['):
		return y.members(inside(column, behind, 0), behind, "[]", y.entry)
	}
	if behind != ' ' {
		_ = y.out.WriteByte(' ')
	}
	y.scalar(token)
	return y.out.WriteByte('\n')
}

// inside returns the column of the content of a map or list. A list after a name
// has the column of the name.
func inside(column int, behind byte, behindName int) int {
	switch behind {
	case ':':
		return column + behindName
	case '-':
		return column + 2
	}
	return column
}

// members writes the content of a map or list, each member with write. After a
// dash, the first member is on the same line.
func (y yamlWriter) members(column int, behind byte, empty string, write func(column int) error) error {
	if !y.in.More() {
		if behind != ' ' {
			_ = y.out.WriteByte(' ')
		}
		_, _ = y.out.WriteString(empty + "\n")
	} else if behind == ':' {
		_ = y.out.WriteByte('\n')
	}
	for first := true; y.in.More(); first = false {
		if first && behind == '-' {
			_ = y.out.WriteByte(' ')
		} else {
			y.indent(column)
		}
		if err := write(column); err != nil {
			return err
		}
	}
	_, err := y.in.Token() // the closing bracket
	return err
}

func (y yamlWriter) member(column int) error {
	name, err := y.in.Token()
	if err != nil {
		return err
	}
	const longest = 1000 / 6 // A name before a colon has at most 1024 characters; an escaped one takes six.
	if text, _ := name.(string); len(text) > longest {
		_, _ = y.out.WriteString("? ")
		y.scalar(name)
		_ = y.out.WriteByte('\n')
		y.indent(column)
	} else {
		y.scalar(name)
	}
	_ = y.out.WriteByte(':')
	return y.value(column, ':')
}

func (y yamlWriter) entry(column int) error {
	_ = y.out.WriteByte('-')
	return y.value(column, '-')
}

func (y yamlWriter) indent(column int) {
	for range column {
		_ = y.out.WriteByte(' ')
	}
}

func (y yamlWriter) scalar(token json.Token) {
	text, isText := token.(string)
	if isText && plainYAML(text) {
		_, _ = y.out.WriteString(text)
		return
	}
	if number, ok := token.(json.Number); ok {
		_, _ = y.out.WriteString(number.String())
		return
	}
	// A string in JSON means the same in YAML, and so do true, false and null.
	var quoted bytes.Buffer
	enc := json.NewEncoder(&quoted)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(token)
	for _, r := range strings.TrimSuffix(quoted.String(), "\n") {
		if r >= 0x7f && r < 0xa0 || r == '\ufeff' || r == 0xfffe || r == 0xffff {
			_, _ = fmt.Fprintf(y.out, `\u%04x`, r) // JSON allows it unescaped, YAML does not.
			continue
		}
		_, _ = y.out.WriteRune(r)
	}
}

var (
	// Words, host names, paths and addresses need no quotes.
	plain    = regexp.MustCompile(`^(?:[A-Za-z/][A-Za-z0-9_./-]*|[0-9]+(?:\.[0-9]+){2,})$`)
	reserved = regexp.MustCompile(`^(?i:y|n|yes|no|on|off|true|false|null)$`)
)

// plainYAML reports whether a text without quotes is the same text in any version
// of YAML.
func plainYAML(text string) bool {
	const long = 256 // The expressions would scan all of it.
	return len(text) <= long && plain.MatchString(text) && !reserved.MatchString(text)
}
