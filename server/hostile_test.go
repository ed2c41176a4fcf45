package server_test

import (
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/schema"
)

// What a body of 1 MiB may take of memory from its first byte to the answer, in
// all; a part of it is held at a time. Allocations stand for the time that it takes:
// they are counted, and the same on any machine.
const (
	mostAllocated   = 320 << 20
	mostAllocations = 4_000_000
)

// TestHostileBodies sends what costs most, in every way in which a body can be
// sent. Whether it is refused for its number of values or read to its end, it has
// to be cheap.
func TestHostileBodies(t *testing.T) {
	s := newTarget(t)
	for name, value := range hostileValues() {
		for _, at := range []string{
			`"metadata":{"name":"a"},"spec":{"route":%s}`,
			`"metadata":{"name":"a","annotations":%s},"spec":{}`,
		} {
			object := `{"apiVersion":"config.istio.io/v1alpha2","kind":"RouteRule",` + fmt.Sprintf(at, value) + `}`
			for way, send := range map[string]struct{ method, path, contentType, body string }{
				"create":      {http.MethodPost, rulesPath, asJSON, object},
				"YAML":        {http.MethodPost, rulesPath, asYAML, "# not JSON\n" + object},
				"update":      {http.MethodPut, rulesPath + "/there", asJSON, object},
				"merge patch": {http.MethodPatch, rulesPath + "/there", "Content-Type: application/merge-patch+json", object},
				"JSON patch": {
					http.MethodPatch, rulesPath + "/there", "Content-Type: application/json-patch+json",
					`[{"op":"add","path":"/spec/route","value":` + value + `}]`,
				},
				"operations of a patch": {http.MethodPatch, rulesPath + "/there", "Content-Type: application/json-patch+json", value},
				"apply":                 {http.MethodPatch, rulesPath + "/there?fieldManager=x", "Content-Type: application/apply-patch+yaml", object},
				"transaction":           {http.MethodPost, transactions, asJSON, transaction(`{"verb":"create","object":` + object + `}`)},
				"YAML transaction":      {http.MethodPost, transactions, asYAML, "# not JSON\n" + transaction(`{"verb":"create","object":`+object+`}`)},
				"operations":            {http.MethodPost, transactions, asJSON, `{"operations":` + value + `}`},
			} {
				cheap(t, fmt.Sprintf("%s, %s in %.40s", way, name, at), func() {
					s.judge(t, send.method, send.path, send.contentType, send.body)
				})
			}
		}
	}
}

// TestHostileYAML: what only YAML can say.
func TestHostileYAML(t *testing.T) {
	const head = "apiVersion: config.istio.io/v1alpha2\nkind: RouteRule\nmetadata: {name: a}\nspec:\n  route:"
	s := newTarget(t)
	for name, value := range map[string]string{
		"lines":          fill("\n  - b"),
		"fewer lines":    fill("\n  - bbbbbbb"),
		"dashes":         fill("\n  " + strings.Repeat("- ", 60) + "b"),
		"words":          " [" + fill("b,") + "b]",
		"questions":      fill("\n  ? bbbbbb"),
		"maps":           fill("\n  - a: b\n    c: d"),
		"references":     " [&a b," + fill("*a,") + "b]",
		"merged":         " &a {b: c}\n  d: [" + fill("{<<: *a},") + "b]",
		"comments":       fill("\n#"),
		"a quoted text":  ` "` + fill(`\u0061`) + `"`,
		"a block text":   " |" + fill("\n    b"),
		"different keys": "\n" + numbered("    k%07d: 1\n"),
	} {
		cheap(t, name, func() { s.judge(t, http.MethodPost, rulesPath, asYAML, head+value+"\n") })
		cheap(t, "apply, "+name, func() {
			s.judge(t, http.MethodPatch, rulesPath+"/there?fieldManager=x", "Content-Type: application/apply-patch+yaml", head+value+"\n")
		})
	}
}

// cheap holds what is done to the bounds.
func cheap(t *testing.T, what string, do func()) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	bytes, times := after.TotalAlloc-before.TotalAlloc, after.Mallocs-before.Mallocs
	if bytes > mostAllocated || times > mostAllocations {
		t.Errorf("%s: %d MiB in %d allocations", what, bytes>>20, times)
	}
}

const hostileSize = schema.MaxNewBytes - 400

// fill is a text of nothing but a part.
func fill(part string) string { return strings.Repeat(part, hostileSize/len(part)) }

// numbered is a text of parts with numbers that fall.
func numbered(part string) string {
	var text strings.Builder
	for i := hostileSize / len(fmt.Sprintf(part, 0)); i > 0; i-- {
		fmt.Fprintf(&text, part, i)
	}
	return text.String()
}

// hostileValues are JSON values of a mebibyte that cost more than their length,
// some with more values than an object may have, some with as many as it may.
func hostileValues() map[string]string {
	return map[string]string{
		"numbers":      `[` + fill("1,") + `1]`,
		"maps":         `[` + fill("{},") + `{}]`,
		"larger maps":  `[` + fill(`{"name":"aaaaaaaaaa"},`) + `{}]`,
		"lists":        `[` + fill(`[[[[[]]]]],`) + `[]]`,
		"deeper lists": fill(`[`),
		"escaped":      `[` + fill(`"\u0061",`) + `1]`,
		"a text":       `"` + fill(`a`) + `"`,
		"one name":     `{` + fill(`"a":1,`) + `"a":1}`,
		"names":        `{` + numbered(`"k%08d":1,`) + `"a":1}`,
	}
}
