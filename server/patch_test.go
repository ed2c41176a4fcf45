package server_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/server"
	"github.com/pilot-api/pilot-api/store"
)

const (
	mergePatch = "Content-Type: application/merge-patch+json"
	jsonPatch  = "Content-Type: application/json-patch+json"
)

func TestPatch(t *testing.T) {
	const merge, ops = mergePatch, jsonPatch
	for _, c := range []struct {
		name, media, patch string
		code               int
		holds              string // in the answer
	}{
		{"merge", merge, `{"spec":{"precedence":7}}`, 200, `"precedence":7`},
		{"merge removes", merge, `{"metadata":{"labels":null}}`, 200, `"generation":1`},
		{"ops", ops, `[{"op":"replace","path":"/spec/route/0/weight","value":60},{"op":"replace","path":"/spec/route/1/weight","value":40}]`, 200, `"weight":60`},
		{"nothing changes", merge, `{}`, 200, `"resourceVersion":"2"`},
		{"right version", merge, `{"metadata":{"resourceVersion":"2"},"spec":{"precedence":7}}`, 200, `"precedence":7`},
		{"stale version", merge, `{"metadata":{"resourceVersion":"1"}}`, 409, "Conflict"},
		{"test fails", ops, `[{"op":"test","path":"/spec/precedence","value":9}]`, 400, "does not fit"},
		{"no such path", ops, `[{"op":"replace","path":"/spec/nope/0","value":9}]`, 400, "does not fit"},
		{"invalid result", merge, `{"spec":{"precedens":7}}`, 422, "precedens"},
		{"other name", merge, `{"metadata":{"name":"other"}}`, 400, "disagree on metadata.name"},
		{"no JSON", merge, `{"spec":`, 400, "not JSON"},
		{"no list", ops, `{"spec":1}`, 400, "list of JSON patch operations"},
		{"strategic", "Content-Type: application/strategic-merge-patch+json", `{}`, 415, "application/merge-patch+json"},
		{"copies that double", ops, doublingPatch(30), 400, "does not fit"},
		{"too many", ops, "[" + strings.Repeat(`{"op":"test","path":"/kind","value":"RouteRule"},`, 1000) + `{"op":"test","path":"/kind","value":"RouteRule"}]`, 400, "at most 1000"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := start(t)
			w.create("reviews", "labels: {a: b}")
			if got := w.want(c.code, "PATCH", rulesPath+"/reviews", c.patch, c.media); !strings.Contains(got.text, c.holds) {
				t.Errorf("no %q in %s", c.holds, got.text)
			}
		})
	}
	start(t).want(http.StatusNotFound, "PATCH", rulesPath+"/reviews", "{}", merge)
}

// doublingPatch makes a document grow by two to the n, if it is let.
func doublingPatch(n int) string {
	ops := []string{`{"op":"add","path":"/metadata/annotations","value":{"a":"` + strings.Repeat("x", 1000) + `"}}`}
	for range n {
		ops = append(ops,
			`{"op":"copy","from":"/metadata/annotations","path":"/metadata/annotations/b"}`,
			`{"op":"copy","from":"/metadata/annotations","path":"/metadata/annotations/c"}`)
	}
	return "[" + strings.Join(ops, ",") + "]"
}

// overtaken is a reader behind whose first Get somebody else writes.
type overtaken struct {
	store.Reader
	write func()
}

func (o *overtaken) Get(ctx context.Context, key schema.Key, opts store.ReadOptions) (*schema.Object, error) {
	obj, err := o.Reader.Get(ctx, key, opts)
	if write := o.write; write != nil {
		o.write = nil
		write()
	}
	return obj, err
}

// TestPatchLosesNoWrite patches while somebody else writes. A patch that takes
// the version away is no licence to overwrite what it never saw.
func TestPatchLosesNoWrite(t *testing.T) {
	for name, c := range map[string]struct{ media, patch string }{
		"merge":         {mergePatch, `{"metadata":{"labels":{"mine":"1"}}}`},
		"merge to null": {mergePatch, `{"metadata":{"resourceVersion":null,"labels":{"mine":"1"}}}`},
		"merge to none": {mergePatch, `{"metadata":{"resourceVersion":"","labels":{"mine":"1"}}}`},
		"ops": {jsonPatch, `[{"op":"remove","path":"/metadata/resourceVersion"},` +
			`{"op":"add","path":"/metadata/labels","value":{"mine":"1"}}]`},
	} {
		t.Run(name, func(t *testing.T) {
			reads := &overtaken{}
			w := start(t, func(o *server.Options) { reads.Reader, o.Reads = o.Reads, reads })
			w.create("reviews")
			reads.write = func() { w.want(http.StatusOK, "PUT", rulesPath+"/reviews", rule("reviews", 40), asYAML) }
			got := w.want(http.StatusOK, "PATCH", rulesPath+"/reviews", c.patch, c.media)
			if !strings.Contains(got.text, `"weight":40`) || !strings.Contains(got.text, `"mine":"1"`) {
				t.Errorf("one of two writes is lost: %s", got.text)
			}
		})
	}
}
