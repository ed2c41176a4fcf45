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

// yamlMistake finds where a text stops being YAML: after the shortest prefix that
// fails for the same reason, whatever follows. The library reports a line at best,
// and often the line where the surrounding map began.
type yamlMistake struct {
	text  []byte // with a line in front, because the library does not report the first line
	lines [][]byte
	ends  []int // of the lines
	err   string
	spent int // bytes that were read again
}

// maxReread is the maximum number of bytes that are read again to find a place. It
// is enough for texts that people write.
const maxReread = 4 << 20

// newYAMLMistake expects a text that is not valid YAML.
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

// read returns the error of a prefix of the text, "" for none.
func (m *yamlMistake) read(end int) string {
	m.spent += end
	var ignored yaml.Node
	if err := readYAML(m.text[:end], &ignored); err != nil {
		return err.Error()
	}
	return ""
}

// by reports whether the mistake is within a prefix of the text. It stops reading
// after maxReread bytes.
func (m *yamlMistake) by(end int) bool { return m.spent < maxReread && m.read(end) == m.err }

var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

func (m *yamlMistake) message() string { return yamlLine.ReplaceAllString(m.err, "") }

// line returns the index of the line with the mistake. It is the line that the
// library names or a later one, mostly close to it.
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

// column returns the number of characters of the line before the one at which the
// mistake shows. If everything between is one word, it returns the beginning of the
// line's text.
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

// malformedYAML looks for a tab first, which is by far the most common cause and
// which the library does not report.
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
