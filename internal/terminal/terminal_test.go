package terminal_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/pilot-api/pilot-api/internal/terminal"
)

func TestEscape(t *testing.T) {
	for _, tc := range []struct{ text, escaped, line string }{
		{"plain é 世界 😀", "plain é 世界 😀", "plain é 世界 😀"},
		{"a\tb\nc", "a\tb\nc", `a\tb\nc`},
		{"\x1b]0;title\a\r\x00\x7f", `\x1b]0;title\a\r\x00\u007f`, `\x1b]0;title\a\r\x00\u007f`},
		{"\u0085\u009b31m", `\u0085\u009b31m`, `\u0085\u009b31m`},
		{"\u202eabc\u2066\u200b\ufeff\u00ad", `\u202eabc\u2066\u200b\ufeff\u00ad`, `\u202eabc\u2066\u200b\ufeff\u00ad`},
		{"a\u2028b\u2029", `a\u2028b\u2029`, `a\u2028b\u2029`},
		{"\U000e0041", `\udb40\udc41`, `\udb40\udc41`},
		{"\x9b31m\xff\xe2\x80", `\x9b31m\xff\xe2\x80`, `\x9b31m\xff\xe2\x80`},
		{"\ufffd", "\ufffd", "\ufffd"},
	} {
		if got := terminal.Escape(tc.text); got != tc.escaped {
			t.Errorf("Escape(%q) is %q, want %q", tc.text, got, tc.escaped)
		}
		if got := terminal.Line(tc.text); got != tc.line {
			t.Errorf("Line(%q) is %q, want %q", tc.text, got, tc.line)
		}
	}
}

// everyCharacter is a text of all there are.
func everyCharacter() string {
	var all strings.Builder
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if utf8.ValidRune(r) {
			all.WriteRune(r)
		}
	}
	return all.String()
}

// TestEscapedJSONDecodesToTheSame has each character in a string.
func TestEscapedJSONDecodesToTheSame(t *testing.T) {
	all := everyCharacter()
	var out bytes.Buffer
	encoder := json.NewEncoder(terminal.NewWriter(&out))
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(all); err != nil {
		t.Fatal(err)
	}
	if at := strings.IndexFunc(strings.TrimSuffix(out.String(), "\n"), terminal.Unsafe); at >= 0 {
		t.Errorf("unsafe: %q", out.String()[at:at+10])
	}
	var back string
	if err := json.Unmarshal(out.Bytes(), &back); err != nil || back != all {
		t.Errorf("another value comes back: %v", err)
	}
}

// TestWriterJoinsWrites splits a text at each of its bytes.
func TestWriterJoinsWrites(t *testing.T) {
	const text = "é\u009b\u202e😀\U000e0041\xe2\x80.\xff\xf0\x9f"
	for size := 1; size <= len(text); size++ {
		var out bytes.Buffer
		w := terminal.NewWriter(&out)
		for rest := []byte(text); len(rest) > 0; {
			n := min(size, len(rest))
			if written, err := w.Write(rest[:n]); written != n || err != nil {
				t.Fatal(written, err)
			}
			rest = rest[n:]
		}
		if err := w.Flush(); err != nil || out.String() != terminal.Escape(text) {
			t.Errorf("in writes of %d: %q, %v", size, &out, err)
		}
	}
}

func TestRedrawEscapesItsText(t *testing.T) {
	var out bytes.Buffer
	if err := terminal.NewWriter(&out).Redraw("1 of\n\x1b[2J"); err != nil || out.String() != "\r\033[K"+`1 of\n\x1b[2J` {
		t.Errorf("%q, %v", &out, err)
	}
}

type broken struct{}

var errBroken = errors.New("no space left")

func (broken) Write([]byte) (int, error) { return 0, errBroken }

func TestWriterTellsErrors(t *testing.T) {
	w := terminal.NewWriter(broken{})
	if n, err := w.Write([]byte("a\xc2")); n != 0 || !errors.Is(err, errBroken) {
		t.Error(n, err)
	}
	if err := w.Flush(); !errors.Is(err, errBroken) {
		t.Error(err)
	}
	if err := w.Redraw("1"); !errors.Is(err, errBroken) {
		t.Error(err)
	}
}
