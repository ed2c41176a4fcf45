package server_test

import (
	"github.com/pilot-api/pilot-api/server/servertest"

	"fmt"
	"net/http"
	"net/url"
	"runtime"
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/schema"
)

// Bounds of the memory that each byte of a request may allocate in total until the
// answer. Only a part is live at a time, less than 70 for 1 MiB. Allocations also
// stand for the time: they can be counted and are the same on any machine.
const (
	mostAllocated   = 384
	mostAllocations = 4
)

// TestHostileBodies sends the most expensive bodies in every way in which a body
// can be sent. Each must be cheap, whether it is refused for its number of values
// or read to its end.
func TestHostileBodies(t *testing.T) {
	outside.Slow(t)
	s := newTarget(t)
	for name, value := range hostileValues() {
		for _, at := range []string{
			`"metadata":{"name":"a"},"spec":{"route":%s}`,
			`"metadata":{"name":"a","annotations":%s},"spec":{}`,
		} {
			object := `{"apiVersion":"config.istio.io/v1alpha2","kind":"RouteRule",` + fmt.Sprintf(at, value) + `}`
			for way, send := range map[string]struct{ method, path, contentType, body string }{
				"create":      {http.MethodPost, servertest.RulesPath, servertest.AsJSON, object},
				"YAML":        {http.MethodPost, servertest.RulesPath, servertest.AsYAML, "# not JSON\n" + object},
				"merge patch": {http.MethodPatch, servertest.RulesPath + "/there", "Content-Type: application/merge-patch+json", object},
				"JSON patch": {
					http.MethodPatch, servertest.RulesPath + "/there", "Content-Type: application/json-patch+json",
					`[{"op":"add","path":"/spec/route","value":` + value + `}]`,
				},
				"operations of a patch": {http.MethodPatch, servertest.RulesPath + "/there", "Content-Type: application/json-patch+json", value},
				"apply":                 {http.MethodPatch, servertest.RulesPath + "/there?fieldManager=x", "Content-Type: application/apply-patch+yaml", object},
				"transaction":           {http.MethodPost, servertest.Transactions, servertest.AsJSON, servertest.Transaction(`{"verb":"create","object":` + object + `}`)},
				"operations":            {http.MethodPost, servertest.Transactions, servertest.AsJSON, `{"spec":{"operations":` + value + `}}`},
			} {
				cheap(t, fmt.Sprintf("%s, %s in %.40s", way, name, at), len(send.body), func() {
					s.judge(t, send.method, send.path, send.contentType, send.body)
				})
			}
		}
	}
}

// TestHostileYAML sends what only YAML can express.
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
		cheap(t, name, len(value), func() { s.judge(t, http.MethodPost, servertest.RulesPath, servertest.AsYAML, head+value+"\n") })
		cheap(t, "apply, "+name, len(value), func() {
			s.judge(t, http.MethodPatch, servertest.RulesPath+"/there?fieldManager=x", "Content-Type: application/apply-patch+yaml", head+value+"\n")
		})
	}
}

// TestHostileAliases sends short YAML that aliases make long, in every way in which
// YAML can be sent that is not an object, and within an object.
func TestHostileAliases(t *testing.T) {
	s := newTarget(t)
	repeated := "a: &a " + strings.Repeat("x", 8000) + "\nb: [" + strings.Repeat("*a,", 2000) + "*a]\n"
	merged := "a: &a {c: " + strings.Repeat("x", 8000) + "}\nb: [" + strings.Repeat("{<<: *a},", 2000) + "]\n"
	for _, text := range []string{repeated, merged} {
		annotated := fmt.Sprintf(`{"apiVersion":"networking.istio.io/v1","kind":"ServiceEntry","metadata":{"name":"a","annotations":{"pilot-api/health-check":%q}},"spec":{"hosts":["a.example"],"ports":[{"number":80,"name":"http","protocol":"HTTP"}]}}`, text)
		for way, send := range map[string]struct{ method, path, contentType, body string }{
			"transaction":   {http.MethodPost, servertest.Transactions, servertest.AsYAML, text},
			"rollback":      {http.MethodPost, "/apis/registry.istio.io/v1/rollbacks", servertest.AsYAML, text},
			"deletion":      {http.MethodDelete, servertest.RulesPath + "/there", servertest.AsYAML, text},
			"access review": {http.MethodPost, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", servertest.AsYAML, text},
			"rules review":  {http.MethodPost, "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", servertest.AsYAML, text},
			"annotation":    {http.MethodPost, "/apis/networking.istio.io/v1/namespaces/default/serviceentries", servertest.AsJSON, annotated},
		} {
			cheap(t, way, len(send.body), func() {
				if code := s.judge(t, send.method, send.path, send.contentType, send.body); code != http.StatusBadRequest && code != http.StatusUnprocessableEntity {
					t.Errorf("%s: answered %d", way, code)
				}
			})
		}
	}
}

// TestHostileSelectors sends queries as long as the head of a request may be.
func TestHostileSelectors(t *testing.T) {
	s := newTarget(t)
	for _, part := range []string{"a=b,", "!a,", "a in (b),", "(", "a notin (", "metadata.name!=a,", `\\`, "a", "%"} {
		for _, param := range []string{"labelSelector", "fieldSelector", "continue", "resourceVersion"} {
			many := strings.Repeat(part, 64<<10/len(part))
			for name, selector := range map[string]string{"alone": many, "as values": "a in (" + many + "b)"} {
				query := url.Values{param: {selector}}.Encode()
				cheap(t, fmt.Sprintf("%s of %q, %s", param, part, name), len(many), func() {
					s.judge(t, http.MethodGet, servertest.RulesPath+"?"+query, servertest.AsJSON, "")
				})
			}
		}
	}
}

// cheap checks the cost of processing a text of that length against the bounds.
func cheap(t *testing.T, what string, length int, do func()) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	bytes, times := after.TotalAlloc-before.TotalAlloc, after.Mallocs-before.Mallocs
	if n := uint64(max(length, 32<<10)); bytes > mostAllocated*n || times > mostAllocations*n {
		t.Errorf("%s, %d bytes: %d bytes in %d allocations", what, length, bytes, times)
	}
}

const hostileSize = schema.MaxNewBytes - 400

// fill returns a text that repeats part.
func fill(part string) string { return strings.Repeat(part, hostileSize/len(part)) }

// numbered returns a text of parts with decreasing numbers.
func numbered(part string) string {
	var text strings.Builder
	for i := hostileSize / len(fmt.Sprintf(part, 0)); i > 0; i-- {
		fmt.Fprintf(&text, part, i)
	}
	return text.String()
}

// hostileValues are JSON values of a mebibyte that cost more than their length
// suggests, some with more values than an object may have, some with exactly as
// many.
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
