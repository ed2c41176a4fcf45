package nack

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/pilot-api/pilot-api/internal/terminal"
)

// TestMentions: a name in the words of a refusal is one only as a whole.
func TestMentions(t *testing.T) {
	for _, c := range []struct {
		text, name string
		want       bool
	}{
		{"Error adding/updating cluster(s) out.b.example|http: Invalid path", "out.b.example|http", true},
		{"cluster out.b.example|http.", "out.b.example|http", true},
		{"out.b.example|http|version=a: no", "out.b.example|http", false},
		{"out.b.example|http, out.b.example|https", "out.b.example|https", true},
		{"out.b.example|https", "out.b.example|http", false},
		{"error at 8080", "80", false},
		{"aaa", "aa", false},
		{"", "a", false},
		{"listener 'http_0.0.0.0_80' has", "http_0.0.0.0_80", true},
	} {
		if got := mentions(c.text, c.name); got != c.want {
			t.Errorf("%q in %q: %v", c.name, c.text, got)
		}
	}
}

// TestKept: what is kept of a proxy's words steers no terminal, is UTF-8 and is bounded,
// escapes included.
func TestKept(t *testing.T) {
	const hostile = "no \x1b]0;title\a\u009b31m\u202e\xff"
	if got := kept(hostile); got != `no \x1b]0;title\a\u009b31m\u202e\xff` {
		t.Errorf("kept %q", got)
	}
	for before := range 8 { // The cut comes at each byte of a character and of an escape.
		for _, c := range []string{"世", "\x1b", "\u202e", "\xff", "😀"} {
			got := kept(strings.Repeat("a", before) + strings.Repeat(c, maxWords))
			if len(got) > maxWords || len(got) < maxWords-len(`\u202e`) || !utf8.ValidString(got) || strings.ContainsFunc(got, terminal.Unsafe) {
				t.Errorf("kept %d bytes of %q: …%q", len(got), c, got[max(0, len(got)-20):])
			}
		}
	}
}
