package server_test

import (
	"github.com/pilot-api/pilot-api/server/servertest"

	"encoding/json"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/internal/terminal"
)

// TestStatusSteersNoTerminal checks that whatever part of a request a failure
// repeats, no text of its Status has a character that controls the terminal of a
// client that prints it.
func TestStatusSteersNoTerminal(t *testing.T) {
	w := servertest.Followed(t)
	steering := "\u001b[2J\u0085\u009b31m\u202e\u200b\u007f"
	text := func(object map[string]any) string {
		body, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		return string(body)
	}
	object := func(metadata, spec map[string]any) string {
		metadata["name"] = "a"
		return text(map[string]any{"apiVersion": "networking.istio.io/v1", "kind": "VirtualService", "metadata": metadata, "spec": spec})
	}
	operations := func(o string) string {
		return `{"spec":{"operations":[{"verb":"create","object":` + o + `}]}}`
	}
	bodies := map[string]string{
		"unknown field":    object(map[string]any{}, map[string]any{"x" + steering: 1}),
		"host":             object(map[string]any{}, map[string]any{"hosts": []string{steering}}),
		"map key":          object(map[string]any{"labels": map[string]string{steering: "a"}}, map[string]any{"hosts": []string{"a"}}),
		"map value":        object(map[string]any{"labels": map[string]string{"a": steering}}, map[string]any{"hosts": []string{"a"}}),
		"annotation":       object(map[string]any{"annotations": map[string]string{steering: "a"}}, map[string]any{"hosts": []string{"a"}}),
		"duration":         object(map[string]any{}, map[string]any{"hosts": []string{"a"}, "http": []any{map[string]any{"timeout": steering}}}),
		"name":             text(map[string]any{"apiVersion": "networking.istio.io/v1", "kind": "VirtualService", "metadata": map[string]any{"name": steering}, "spec": map[string]any{"hosts": []string{"a"}}}),
		"kind":             text(map[string]any{"apiVersion": "networking.istio.io/v1", "kind": steering, "metadata": map[string]any{"name": "a"}}),
		"resource version": object(map[string]any{"resourceVersion": steering}, map[string]any{"hosts": []string{"a"}}),
	}
	for name, body := range bodies {
		for path, body := range map[string]string{
			"/apis/networking.istio.io/v1/namespaces/default/virtualservices": body,
			"/apis/registry.istio.io/v1/transactions":                         operations(body),
		} {
			a := w.Do(http.MethodPost, path, body, "Content-Type: application/json")
			var status metav1.Status
			if err := json.Unmarshal([]byte(a.Text), &status); err != nil || a.StatusCode < 400 {
				t.Errorf("%s, %s: %d %q", name, path, a.StatusCode, a.Text)
				continue
			}
			check := func(part, text string) {
				if strings.ContainsFunc(strings.NewReplacer("\n", "", "\t", "").Replace(text), terminal.Unsafe) {
					t.Errorf("%s, %s: the %s %q steers a terminal", name, path, part, text)
				}
			}
			check("message", status.Message)
			if status.Details == nil {
				continue
			}
			check("name", status.Details.Name)
			for _, cause := range status.Details.Causes {
				check("field of a cause", cause.Field)
				check("message of a cause", cause.Message)
			}
		}
	}
}

// TestTextThatIsNotWhatItSays checks that a body is refused if a decoder would read
// another text than it contains.
func TestTextThatIsNotWhatItSays(t *testing.T) {
	w := servertest.Followed(t)
	const path = "/apis/networking.istio.io/v1/namespaces/default/virtualservices"
	annotated := func(value string) string {
		return `{"apiVersion":"networking.istio.io/v1","kind":"VirtualService","metadata":{"name":"a","annotations":{"b":"` + value + `"}},"spec":{"hosts":["a.example"],"http":[{"directResponse":{"status":200}}]}}`
	}
	for _, tc := range []struct {
		value, media string
		code         int
		words        string
	}{
		{`\ud83d\ude00 \\ud800 \u00e9`, "application/json", http.StatusCreated, ""},
		{`\ud800`, "application/json", http.StatusBadRequest, `line 1, column 107: the escape \\ud800 is half of a surrogate pair`},
		{`\uDC00`, "application/json", http.StatusBadRequest, "half of a surrogate pair"},
		{`\ud83d\ud83d\ude00`, "application/json", http.StatusBadRequest, "half of a surrogate pair"},
		{"\u00e9", "application/json; charset=us-ascii", http.StatusBadRequest, "byte 107 is beyond ASCII"},
	} {
		a := w.Do(http.MethodPost, path+"?dryRun=All", annotated(tc.value), "Content-Type: "+tc.media)
		if a.StatusCode != tc.code || !strings.Contains(a.Text, tc.words) {
			t.Errorf("%q as %s: %d %s, want %d and %q", tc.value, tc.media, a.StatusCode, a.Text, tc.code, tc.words)
		}
	}
	a := w.Do(http.MethodPost, "/v3/discovery:listeners", `{"node":{"id":"sidecar~10.9.0.1~a`+"\xe9"+`.default~default.svc.cluster.local"}}`)
	if a.StatusCode != http.StatusBadRequest || !strings.Contains(a.Text, "must be UTF-8") {
		t.Errorf("a poll that is not UTF-8: %d %s", a.StatusCode, a.Text)
	}
}
