package schema

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
)

// scan is a JSON text that was read once: its values in the order of the text, each
// followed by its contents. It accepts only texts that can be an object: names are
// unique, and nothing is nested deeper than maxDepth. A text that it rejects may
// still be valid; the caller must then use the slow way.
type scan struct {
	text  string
	nodes []node
	// order has the members of maps that are not in the order of their names; see
	// node.sorted.
	order []int32
	// names are the names that contain escapes in the text.
	names []string
}

// node is one value. Positions are in the text; -1 and below means none.
type node struct {
	what byte // the first character: { [ " t f n, 0 for any number; or dropped
	// plain means, for a text, that it is written without escapes in the text and
	// in the output; for a number, that it is an integer in its written form.
	plain              bool
	escaped            bool  // a text has escapes
	start, end         int32 // quotes included
	nameStart, nameEnd int32 // without quotes; names[-nameStart-1] when escaped
	after              int32 // the node after this one and its contents
	members            int32
	sorted             int32 // where in order the members begin; -1: as they stand
}

var scans = sync.Pool{New: func() any { return new(scan) }}

// mostPooled is the maximum number of nodes that stay in memory after a large text.
const mostPooled = 4096

// mostNodes is the maximum number of values in a text. It limits the memory of a
// scan. The lists of an object have hundreds of entries, not hundreds of thousands.
const mostNodes = 1 << 17

// read scans a text; ok is false if it rejects the text. The caller must call done
// when it no longer uses the scan.
func read(text string) (s *scan, ok bool) {
	s = scans.Get().(*scan)
	s.text, s.nodes, s.order, s.names = text, s.nodes[:0], s.order[:0], s.names[:0]
	if len(text) > 1<<30 || !utf8.ValidString(text) || loneSurrogate(text) >= 0 {
		return s, false
	}
	at := s.space(0)
	if at = s.value(at, 0, 0, 1); at < 0 {
		return s, false
	}
	return s, s.space(at) == len(text)
}

func (s *scan) done() {
	s.text = ""
	clear(s.names)
	if cap(s.nodes) <= mostPooled && cap(s.order) <= mostPooled {
		scans.Put(s)
	}
}

func (s *scan) space(at int) int {
	for at < len(s.text) {
		switch s.text[at] {
		case ' ', '\t', '\n', '\r':
			at++
		default:
			return at
		}
	}
	return at
}

// value reads the value at a position and returns the position after it, -1 if it
// rejects the value.
func (s *scan) value(at int, nameStart, nameEnd int32, depth int) int {
	me := len(s.nodes)
	if at >= len(s.text) || me == mostNodes {
		return -1
	}
	s.nodes = append(s.nodes, node{what: s.text[at], start: int32(at), nameStart: nameStart, nameEnd: nameEnd, sorted: -1})
	end := -1
	switch s.text[at] {
	case '{':
		end = s.object(me, at+1, depth)
	case '[':
		end = s.list(me, at+1, depth)
	case '"':
		n := &s.nodes[me]
		end, n.escaped, n.plain = s.quoted(at)
	case 't':
		end = s.word(at, "true")
	case 'f':
		end = s.word(at, "false")
	case 'n':
		end = s.word(at, "null")
	default:
		n := &s.nodes[me]
		n.what = 0
		end, n.plain = s.number(at)
	}
	n := &s.nodes[me]
	n.end, n.after = int32(end), int32(len(s.nodes))
	return end
}

func (s *scan) word(at int, word string) int {
	if strings.HasPrefix(s.text[at:], word) {
		return at + len(word)
	}
	return -1
}

func (s *scan) object(me, at, depth int) int {
	if depth > maxDepth {
		return -1
	}
	at = s.space(at)
	if at < len(s.text) && s.text[at] == '}' {
		return at + 1
	}
	ascending := true
	before := ""
	for last := false; !last; {
		name, start, end := s.memberName(at)
		if end < 0 {
			return -1
		}
		ascending = ascending && (s.nodes[me].members == 0 || before < name)
		before = name
		if at = s.space(end); at >= len(s.text) || s.text[at] != ':' {
			return -1
		}
		if at = s.value(s.space(at+1), start, int32(end-1), depth+1); at < 0 {
			return -1
		}
		s.nodes[me].members++
		at, last = s.next(at, '}')
	}
	if at >= 0 && !ascending && !s.sort(me) {
		return -1
	}
	return at
}

// memberName reads the quoted name of a member of a map up to end. The name begins
// at start; a name with escapes is in names instead.
func (s *scan) memberName(at int) (name string, start int32, end int) {
	if at >= len(s.text) || s.text[at] != '"' {
		return "", 0, -1
	}
	end, escaped, _ := s.quoted(at)
	if end < 0 || !escaped {
		return s.text[at+1 : max(at+1, end-1)], int32(at + 1), end
	}
	name, ok := unquote(s.text[at:end])
	if !ok {
		return "", 0, -1
	}
	s.names = append(s.names, name)
	return name, -int32(len(s.names)), end
}

// next returns where the next member of a map or list begins, given the end of the
// previous one. After the last member it returns the end of the map or list.
func (s *scan) next(at int, closing byte) (next int, last bool) {
	switch at = s.space(at); {
	case at >= len(s.text):
		return -1, true
	case s.text[at] == ',':
		return s.space(at + 1), false
	case s.text[at] == closing:
		return at + 1, true
	}
	return -1, true
}

// sort records the members of a map in the order of their names. It returns false
// if two names are equal.
func (s *scan) sort(me int) bool {
	from := len(s.order)
	for i := int32(me) + 1; i < int32(len(s.nodes)); i = s.nodes[i].after {
		s.order = append(s.order, i)
	}
	sorted := s.order[from:]
	slices.SortFunc(sorted, func(a, b int32) int { return strings.Compare(s.name(a), s.name(b)) })
	s.nodes[me].sorted = int32(from)
	for i := 1; i < len(sorted); i++ {
		if s.name(sorted[i-1]) == s.name(sorted[i]) {
			return false
		}
	}
	return true
}

func (s *scan) list(me, at, depth int) int {
	if depth > maxDepth {
		return -1
	}
	at = s.space(at)
	if at < len(s.text) && s.text[at] == ']' {
		return at + 1
	}
	for last := false; !last; {
		if at = s.value(at, 0, 0, depth+1); at < 0 {
			return -1
		}
		s.nodes[me].members++
		at, last = s.next(at, ']')
	}
	return at
}

// quoted reads a quoted text.
func (s *scan) quoted(at int) (end int, escaped, plain bool) {
	plain = true
	for i := at + 1; i < len(s.text); i++ {
		switch c := s.text[i]; {
		case c == '"':
			return i + 1, escaped, plain
		case c == '\\':
			escaped, plain = true, false
			if i++; !isEscape(s.text[min(i, len(s.text)):]) {
				return -1, false, false
			}
		case c < ' ':
			return -1, false, false
		case unsafeInJSON(c):
			plain = false
		}
	}
	return -1, false, false
}

// isEscape reports whether a text may follow a backslash.
func isEscape(text string) bool {
	if text == "" || text[0] != 'u' {
		return text != "" && strings.IndexByte(`"\/bfnrt`, text[0]) >= 0
	}
	if len(text) < len("u0000") {
		return false
	}
	for _, c := range []byte(text[1:5]) {
		if !('0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F') {
			return false
		}
	}
	return true
}

// unsafeInJSON reports bytes that may need escapes in the output, in addition to
// quotes and backslashes. E2 begins, among others, the two line separators.
func unsafeInJSON(c byte) bool { return c == '<' || c == '>' || c == '&' || c == 0xE2 }

func unquote(quoted string) (text string, ok bool) {
	err := json.Unmarshal([]byte(quoted), &text)
	return text, err == nil
}

// number reads a number of JSON's grammar; integer reports that it has no fraction
// and exponent, fits and is in the written form.
func (s *scan) number(at int) (end int, integer bool) {
	i := at
	if i < len(s.text) && s.text[i] == '-' {
		i++
	}
	first := i
	i = s.digits(i)
	if i == first || s.text[first] == '0' && i > first+1 {
		return -1, false
	}
	integer = i-at <= 18 && !(s.text[first] == '0' && first > at) // 18 characters fit an int64
	if i < len(s.text) && s.text[i] == '.' {
		integer = false
		from := i + 1
		if i = s.digits(from); i == from {
			return -1, false
		}
	}
	if i < len(s.text) && (s.text[i] == 'e' || s.text[i] == 'E') {
		integer = false
		if i++; i < len(s.text) && (s.text[i] == '+' || s.text[i] == '-') {
			i++
		}
		from := i
		if i = s.digits(from); i == from {
			return -1, false
		}
	}
	if !integer {
		if _, ok := numberOf(s.text[at:i]); !ok {
			return -1, false // too large for any reader
		}
	}
	return i, integer
}

func (s *scan) digits(at int) int {
	for at < len(s.text) && '0' <= s.text[at] && s.text[at] <= '9' {
		at++
	}
	return at
}

// number64 is an int64 if the number is written as one that fits, as the slow way
// reads it, else a float64.
type number64 struct {
	integer bool
	i       int64
	f       float64
}

func numberOf(text string) (n number64, ok bool) {
	if !strings.Contains(text, ".") {
		if i, err := strconv.ParseInt(text, 10, 64); err == nil {
			return number64{integer: true, i: i}, true
		}
	}
	f, err := strconv.ParseFloat(text, 64)
	return number64{f: f}, err == nil
}

func (s *scan) name(i int32) string {
	n := &s.nodes[i]
	if n.nameStart < 0 {
		return s.names[-n.nameStart-1]
	}
	return s.text[n.nameStart:n.nameEnd]
}

// of returns the value of a text; ok is false if the node is not a text.
func (s *scan) of(i int32) (text string, ok bool) {
	n := &s.nodes[i]
	switch {
	case n.what != '"':
		return "", false
	case n.escaped:
		return unquote(s.text[n.start:n.end])
	}
	return s.text[n.start+1 : n.end-1], true
}

// dropped marks members that are ignored.
const dropped = 'x'

func (s *scan) drop(i int32, name string) {
	if m := s.member(i, name); m != 0 {
		s.nodes[m].what = dropped
	}
}

// member finds a member of a map by its name. It returns 0, which is never a
// member, if there is none.
func (s *scan) member(i int32, name string) int32 {
	n := &s.nodes[i]
	if n.what != '{' {
		return 0
	}
	for m := i + 1; m < n.after; m = s.nodes[m].after {
		if s.name(m) == name {
			return m
		}
	}
	return 0
}

// appendWritten appends a value as encoding/json would write it after reading it:
// without spaces, names in order.
func (s *scan) appendWritten(out []byte, i int32) []byte {
	n := &s.nodes[i]
	switch {
	case n.what == '{':
		out = append(out, '{')
		for k, m := int32(0), i+1; k < n.members; k++ {
			at := m
			if n.sorted >= 0 {
				at = s.order[n.sorted+k]
			} else {
				m = s.nodes[m].after
			}
			if k > 0 {
				out = append(out, ',')
			}
			out = append(appendText(out, s.name(at)), ':')
			out = s.appendWritten(out, at)
		}
		return append(out, '}')
	case n.what == '[':
		out = append(out, '[')
		for m := i + 1; m < n.after; m = s.nodes[m].after {
			if m > i+1 {
				out = append(out, ',')
			}
			out = s.appendWritten(out, m)
		}
		return append(out, ']')
	case n.what == '"' && !n.plain:
		text, _ := s.of(i)
		return appendText(out, text)
	case n.what == 0 && !n.plain:
		return appendNumber(out, s.text[n.start:n.end])
	}
	return append(out, s.text[n.start:n.end]...)
}

func appendNumber(out []byte, text string) []byte {
	n, _ := numberOf(text)
	if n.integer {
		return strconv.AppendInt(out, n.i, 10)
	}
	written, err := json.Marshal(n.f)
	if err != nil {
		panic(err) // It came from a text.
	}
	return append(out, written...)
}

// appendText appends a quoted text as encoding/json writes it.
func appendText(out []byte, text string) []byte {
	for i := 0; i < len(text); i++ {
		if c := text[i]; c < ' ' || c >= 0x80 || c == '"' || c == '\\' || unsafeInJSON(c) {
			written, err := json.Marshal(text)
			if err != nil {
				panic(err) // Texts always encode.
			}
			return append(out, written...)
		}
	}
	out = append(out, '"')
	out = append(out, text...)
	return append(out, '"')
}
