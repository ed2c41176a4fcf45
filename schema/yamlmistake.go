package schema

import (
	"bytes"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/pilot-api/pilot-api/diag"
)

// yamlMistake finds where a text stops being YAML: after the shortest beginning
// that is wrong for the same reason, whatever follows. The library names a line
// at best, and often that where the surrounding map began.
type yamlMistake struct {
	text  []byte // with a line before it: the library does not tell lines that are the first
	lines [][]byte
	ends  []int // of the lines
	err   string
	spent int // bytes that were read again
}

// maxReread bounds the bytes that are read again to find a place. It is enough
// for each text that a person would write.
const maxReread = 4 << 20

// newYAMLMistake takes a text that is no YAML.
func newYAMLMistake(text []byte) *yamlMistake {
	m := &yamlMistake{text: append([]byte("#\n"), text...)}
	for line := range bytes.Lines(m.text) {
		m.lines = append(m.lines, line)
		m.spent += len(line)
		m.ends = append(m.ends, m.spent)
	}
	m.err = m.read(len(m.text))
	return m
}

// read is what is wrong with the beginning of the text, "" for nothing.
func (m *yamlMistake) read(end int) string {
	m.spent += end
	var ignored yaml.Node
	if err := readYAML(m.text[:end], &ignored); err != nil {
		return err.Error()
	}
	return ""
}

// by reports whether the mistake is within the beginning of the text. It is not
// asked for more than maxReread.
func (m *yamlMistake) by(end int) bool { return m.spent < maxReread && m.read(end) == m.err }

var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

func (m *yamlMistake) message() string { return yamlLine.ReplaceAllString(m.err, "") }

// line is the index of the line with the mistake. It is not above the one that
// the library names, and mostly close below it.
func (m *yamlMistake) line() int {
	from := 1
	if found := yamlLine.FindStringSubmatch(m.err); found[1] != "" {
		from, _ = strconv.Atoi(found[1])
		from = min(max(from-1, 1), len(m.lines)-1)
	}
	last := len(m.lines) - 1
	for step := 1; from+step < last; step *= 2 {
		if m.by(m.ends[from+step]) {
			last = from + step
			break
		}
		if m.spent >= maxReread {
			return from
		}
	}
	return from + sort.Search(last-from, func(i int) bool { return m.by(m.ends[from+i]) })
}

// column counts the characters of the line before that which the mistake is
// seen by, or before the first one when all in between is one word: then the
// line is what is wrong here.
func (m *yamlMistake) column(line int) int {
	text, start := m.lines[line], m.ends[line-1]
	first := len(text) - len(bytes.TrimLeft(text, " "))
	rest := bytes.TrimRight(text[first:], "\r\n")
	at := first + sort.Search(max(len(rest)-1, 0), func(i int) bool { return m.by(start + first + i + 1) })
	if !bytes.Contains(text[first:at], []byte(" ")) {
		return first
	}
	return utf8.RuneCount(text[:at])
}

// A tab is by far the most common cause, and the library does not say so.
func (d Document) malformedYAML() diag.List {
	m := newYAMLMistake(d.Text)
	bad := m.line()
	for i, line := range m.lines[:bad+1] {
		rest := bytes.TrimLeft(line, " \t")
		if tab := bytes.IndexByte(line[:len(line)-len(rest)], '\t'); tab >= 0 && len(bytes.TrimSpace(rest)) > 0 {
			return d.malformed(i, tab+1, "not valid YAML: a tab in the indentation; YAML is indented by spaces")
		}
	}
	column := m.column(bad)
	message := m.message()
	if strings.HasPrefix(message, "mapping values are not allowed") {
		message += "; a text with a colon and a space in it must be in quotes, and a field be indented as its neighbours"
	}
	return d.malformed(bad, column+1, "not valid YAML: "+message)
}
