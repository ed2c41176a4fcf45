package wire

import (
	"bufio"
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"
)

// TestYAMLMeansTheJSON reads the output back with the library.
func TestYAMLMeansTheJSON(t *testing.T) {
	text := rapid.OneOf(
		rapid.String(),
		rapid.SampledFrom([]string{"", "yes", "NO", "null", "~", "1", "1.5", "1e3", "0x1", "1_000", "10:30", "1.2.3.4", "2001-01-01",
			"=", "<<", "- a", "a: b", "a #b", "a\nb", "a\n", " a", "a ", "*a", "&a", "!a", "/a", "a/", "a.b", ".inf", "é", "\u2028", "\u0085", "\x7f", "\ufeff", strings.Repeat("n", 2000), strings.Repeat("\x01", 1000)}),
	)
	value := rapid.Deferred(func() *rapid.Generator[any] { return anyJSON(text, 3) })
	rapid.Check(t, func(t *rapid.T) {
		want := value.Draw(t, "value")
		in, err := json.Marshal(want)
		if err != nil {
			t.Skip()
		}
		var whole, item bytes.Buffer
		out := bufio.NewWriter(&whole)
		if err := WriteYAML(out, in); err != nil {
			t.Fatal(err)
		}
		_ = out.Flush()
		out.Reset(&item)
		if err := WriteYAMLItem(out, in); err != nil {
			t.Fatal(err)
		}
		_ = out.Flush()
		same(t, in, whole.Bytes())
		same(t, []byte("["+string(in)+"]"), item.Bytes())
	})
}

func anyJSON(text *rapid.Generator[string], depth int) *rapid.Generator[any] {
	leaf := []*rapid.Generator[any]{
		rapid.Map(text, func(s string) any { return s }),
		rapid.Map(rapid.Int64Range(-1<<53, 1<<53), func(n int64) any { return n }),
		rapid.SampledFrom([]any{nil, true, false, 1.5, 0, []any{}, map[string]any{}}),
	}
	if depth == 0 {
		return rapid.OneOf(leaf...)
	}
	inner := anyJSON(text, depth-1)
	return rapid.OneOf(append(leaf,
		rapid.Map(rapid.SliceOfN(inner, 0, 4), func(l []any) any { return l }),
		rapid.Map(rapid.MapOfN(text, inner, 0, 4), func(m map[string]any) any { return m }))...)
}

func same(t *rapid.T, in, out []byte) {
	t.Helper()
	back, err := yaml.YAMLToJSON(out)
	if err != nil {
		t.Fatalf("%s\nis written as\n%s\n%v", in, out, err)
	}
	var want, got any
	if err := json.Unmarshal(in, &want); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(back, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("%s\nis written as\n%s\n%s", in, out, diff)
	}
}

func TestYAMLOfAnObject(t *testing.T) {
	var text strings.Builder
	out := bufio.NewWriter(&text)
	err := WriteYAML(out, []byte(`{"kind":"A","items":[{"a":[[1,2],{}],"b":"x y"},[]],"meta":{"c":null,"d":{"e":"1"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	_ = out.Flush()
	const want = `kind: A
items:
- a:
  - - 1
    - 2
  - {}
  b: "x y"
- []
meta:
  c: null
  d:
    e: "1"
`
	if diff := cmp.Diff(want, text.String()); diff != "" {
		t.Error(diff)
	}
}
