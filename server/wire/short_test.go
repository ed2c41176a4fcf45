package wire

import (
	"strings"
	"testing"
)

func TestShort(t *testing.T) {
	for text, want := range map[string]string{
		"":           "",
		"abcde":      "abcde",
		"abcdef":     "abcde… (1 more bytes)",
		"abcd\u00fc": "abcd… (2 more bytes)",
	} {
		if got := Short(text, 5); got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
	if got := Short(strings.Repeat("\x80", 9), 5); got != "… (9 more bytes)" {
		t.Errorf("not UTF-8: %q", got)
	}
}
