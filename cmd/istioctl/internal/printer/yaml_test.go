package printer

import (
	"reflect"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/pilot-api/pilot-api/internal/terminal"
)

// TestYAMLComesBack: each text, as a value and as a name, is the same when it is read
// again, and shows nothing unsafe.
func TestYAMLComesBack(t *testing.T) {
	for _, text := range []string{
		"plain", "\u202e", "a\u202eb", "\u202e: # [", "two\nlines\u200b\n", "\u2028", "\u0085", "\x1b[2J", "\ufeffx", "'\u202e\"", `\u202e`, `\\u202e` + "\u202e",
		`\U000F0000` + "\u202e", `\udb80\udc00` + "\u202e", "\U000f0000\u202e", strings.Repeat("long \u202e text ", 40), "😀\u200d😀", "\U000e0041", " \u00ad ", "1\u200b",
	} {
		want := map[string]any{text: text, "list": []any{text}}
		shown, err := MarshalYAML(want)
		if err != nil {
			t.Fatal(err)
		}
		var back map[string]any
		if err := yaml.Unmarshal(shown, &back); err != nil || !reflect.DeepEqual(back, want) {
			t.Errorf("%q comes back as %q: %v\n%s", text, back, err, shown)
		}
		if strings.ContainsFunc(string(shown), func(r rune) bool { return r != '\n' && terminal.Unsafe(r) }) {
			t.Errorf("%q is shown as %q", text, shown)
		}
	}
	escaped, err := ToYAML([]byte(`{"a":"\u202e\u009b\\u202e"}`))
	if want := `a: "\u202e\x9B\\u202e"` + "\n"; err != nil || string(escaped) != want {
		t.Errorf("escapes of JSON: %s, %v, want %s", escaped, err, want)
	}
}
