package schema

import (
	"bytes"
	"strconv"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/pilot-api/pilot-api/diag"
)

// places finds lines, columns and members in a document. It scans each line and
// each map at most once, on first use, however many places are requested.
type places struct {
	doc     Document
	starts  []int                         // of the lines, in bytes
	columns map[int][]int                 // of a line: where each columnStep-th character begins, in bytes
	members map[*yaml.Node]map[string]int // of a map: the index of each name in its Content
	visited int                           // bytes and names that were scanned, for tests
}

// columnStep is the maximum number of characters that are scanned again to find a
// column.
const columnStep = 256

// position converts a line of the document to a line of the file, and a column in
// characters to a column in bytes. Both count from 1.
func (p *places) position(line, column int) *diag.Position {
	if p.starts == nil {
		p.indexLines()
	}
	if line <= len(p.starts) {
		column = p.byteColumn(line-1, column)
	}
	return &diag.Position{File: p.doc.File, Line: line + max(p.doc.Line, 1) - 1, Column: column}
}

func (p *places) indexLines() {
	text := p.doc.Text
	p.visited += len(text)
	p.starts = append(make([]int, 0, 1+bytes.Count(text, []byte("\n"))), 0)
	for at, c := range text {
		if c == '\n' {
			p.starts = append(p.starts, at+1)
		}
	}
}

// line returns the text of a line, which counts from 0.
func (p *places) line(line int) []byte {
	end := len(p.doc.Text)
	if line+1 < len(p.starts) {
		end = p.starts[line+1] - 1
	}
	return p.doc.Text[p.starts[line]:end]
}

// byteColumn returns the column in bytes of a column in characters. A column beyond
// the end of the line becomes that end.
func (p *places) byteColumn(line, column int) int {
	text := p.line(line)
	marks := p.marksOf(line, text)
	before := max(column-1, 0)
	mark := min(before/columnStep, len(marks)-1)
	at := marks[mark]
	for n := mark * columnStep; n < before && at < len(text); n++ {
		_, size := utf8.DecodeRune(text[at:])
		at += size
		p.visited += size
	}
	return at + 1
}

func (p *places) marksOf(line int, text []byte) []int {
	if len(text) < columnStep {
		return []int{0}
	}
	if marks, ok := p.columns[line]; ok {
		return marks
	}
	if p.columns == nil {
		p.columns = map[int][]int{}
	}
	p.visited += len(text)
	var marks []int
	for at, n := 0, 0; at < len(text); n++ {
		if n%columnStep == 0 {
			marks = append(marks, at)
		}
		_, size := utf8.DecodeRune(text[at:])
		at += size
	}
	p.columns[line] = marks
	return marks
}

// child finds a member of a map or list, by its proto or camel case name.
func (p *places) child(n *yaml.Node, step string) (name, value *yaml.Node) {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	switch n.Kind {
	case yaml.MappingNode:
		if i, ok := p.membersOf(n)[step]; ok {
			return n.Content[i], n.Content[i+1]
		}
	case yaml.SequenceNode:
		if i, err := strconv.Atoi(step); err == nil && i >= 0 && i < len(n.Content) {
			return nil, n.Content[i]
		}
	}
	return nil, nil
}

// membersOf returns the index of each name of a map, as written and in lower camel
// case. The written form takes precedence, and the first of two equal names.
func (p *places) membersOf(n *yaml.Node) map[string]int {
	if members, ok := p.members[n]; ok {
		return members
	}
	if p.members == nil {
		p.members = map[*yaml.Node]map[string]int{}
	}
	p.visited += len(n.Content) / 2
	members := make(map[string]int, len(n.Content)/2)
	for _, spell := range []func(string) string{func(name string) string { return name }, lowerCamel} {
		for i := 0; i+1 < len(n.Content); i += 2 {
			name := spell(n.Content[i].Value)
			if _, known := members[name]; !known {
				members[name] = i
			}
		}
	}
	p.members[n] = members
	return members
}
