package schema

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/internal/outside"
)

// yamlMistakes are lines that are wrong where a field of a map may stand, and
// the place of the mistake: the line, from 0, and the column.
var yamlMistakes = []struct {
	text         string
	line, column int
}{
	{"a: b: c", 0, 5},
	{"ä: ö: c", 0, 7},
	{"a: b\n  c: d", 1, 3},
	{"a:\n  b: c\n   d: e", 2, 4},
	{"a:\n    b: c\n  d: e", 2, 3},
	{"a:\n  - b\n  c: d", 2, 3},
	{"a:\n  - b: c\n    d: e\n   f: g", 3, 4},
	{"a: [b, c\nd: e", 0, 8},
	{"a: {b: c\nd: e", 0, 8},
	{"a: 'b\nc: d", 0, 4},
	{"a: \"b\nc: d", 0, 4},
	{"a: 'it's'", 0, 8},
	{"a: \"\\q\"", 0, 5},
	{"a: @b", 0, 4},
	{"a: `b`", 0, 4},
	{"a: %b", 0, 4},
	{"a: ]", 0, 4},
	{"a: ,b", 0, 4},
	{"a: *nowhere", 0, 11},
	{"a:\n\tb: c", 1, 1},
	{"- a", 0, 1},
	{"just words", 0, 1},
	{"a:b", 0, 1},
}

// TestYAMLMistakesAreFound on whatever line of whatever document of a file, and
// whatever follows.
func TestYAMLMistakesAreFound(t *testing.T) {
	outside.Slow(t)
	const begin = "%YAML 1.2\n---\nkind: Other\n---\n# comment\n---\nkind: Some\n"
	fields := func(n int) string { return strings.Repeat("field:\n  inner: {a: [1, 2], b: c} # text\n", n) }
	for _, c := range yamlMistakes {
		for _, around := range []struct{ above, below int }{{0, 0}, {0, 100}, {1, 1}, {100, 0}, {100, 100}, {1000, 1000}} {
			above := begin + fields(around.above)
			text := above + c.text + "\n" + fields(around.below) + "---\nkind: Other\n"
			docs := Split([]byte(text), "f")
			if len(docs) != 3 {
				t.Fatalf("%d documents", len(docs))
			}
			_, list, err := docs[1].Objects(t.Context(), "")
			if err != nil {
				t.Fatal(err)
			}
			want := fmt.Sprintf("f:%d:%d", 1+strings.Count(above, "\n")+c.line, c.column)
			if list.Err() == nil || list[0].Position.String() != want {
				t.Errorf("%q under %d and above %d others: want %s, got %v", c.text, around.above, around.below, want, list)
			}
		}
	}
}
