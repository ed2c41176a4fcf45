package objects_test

import (
	"github.com/pilot-api/pilot-api/server/servertest"

	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/server"
	"github.com/pilot-api/pilot-api/store"
	"github.com/pilot-api/pilot-api/store/etcd"
	"github.com/pilot-api/pilot-api/store/etcd/etcdtest"
)

func TestPatch(t *testing.T) {
	const merge, ops = servertest.MergePatch, servertest.JsonPatch
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
		{"test fails", ops, `[{"op":"test","path":"/kind","value":"RouteRule"},{"op":"test","path":"/spec/precedence","value":9},{"op":"remove","path":"/nope"}]`, 422, "operation 1 (test /spec/precedence)"},
		{"no such path", ops, `[{"op":"replace","path":"/spec/nope/0","value":9}]`, 422, "operation 0 (replace /spec/nope/0)"},
		{"invalid result", merge, `{"spec":{"precedens":7}}`, 422, "precedens"},
		{"other name", merge, `{"metadata":{"name":"other"}}`, 400, "disagree on metadata.name"},
		{"no JSON", merge, `{"spec":`, 400, "not JSON"},
		{"null as a merge", merge, " null", 400, "a merge patch must be an object"},
		{"a list as a merge", merge, "[]", 400, "a merge patch must be an object"},
		{"a list of something else", ops, "[1]", 400, `must be a list of JSON patch operations, such as {\"op\"`},
		{"no list", ops, `{"spec":1}`, 400, "list of JSON patch operations"},
		{"strategic", "Content-Type: application/strategic-merge-patch+json", `{}`, 415, "application/merge-patch+json"},
		{"copies that double", ops, doublingPatch(30), 422, "does not fit"},
		{"another finalizer", merge, `{"metadata":{"finalizers":["not one"]}}`, 422, "metadata.finalizers[0]"},
		{"too deep", merge, strings.Repeat(`{"a":`, 9000) + "1" + strings.Repeat("}", 9000), 400, "at most 128 levels"},
		{"brackets in a text", merge, `{"metadata":{"annotations":{"a":"\"` + strings.Repeat("[{", 200) + `"}}}`, 200, "[{[{"},
		{"no such op", ops, `[{"op":"test","path":"/kind","value":"RouteRule"},{"op":"frob","path":"/kind"}]`, 400, `[1].op: must be add, copy, move, remove, replace, test, found \"frob\"`},
		{"no value", ops, `[{"op":"add","path":"/spec/precedence"}]`, 400, "[0].value: must be given to add"},
		{"null is a value", ops, `[{"op":"add","path":"/metadata/labels","value":null}]`, 200, `"generation":1`},
		{"no path", ops, `[{"op":"remove"}]`, 400, "[0].path: must be given"},
		{"path without a slash", ops, `[{"op":"add","path":"x/spec/precedence","value":7}]`, 400, "[0].path: must begin with a slash"},
		{"nowhere to copy from", ops, `[{"op":"test","path":"/kind","value":"RouteRule"},{"op":"copy","path":"/spec/precedence"}]`, 400, "[1].from: must be given"},
		{"a field twice", merge, `{"spec":{"precedence":7,"precedence":8}}`, 400, "spec.precedence: is given twice"},
		{"an operation's field twice", ops, `[{"op":"add","path":"/spec/precedence","path":"/spec/x","value":7}]`, 400, "path: is given twice"},
		{"too many", ops, "[" + strings.Repeat(`{"op":"test","path":"/kind","value":"RouteRule"},`, 1000) + `{"op":"test","path":"/kind","value":"RouteRule"}]`, 400, "at most 1000"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := servertest.Start(t)
			w.Create("reviews", "labels: {a: b}")
			if got := w.Want(c.code, "PATCH", servertest.RulesPath+"/reviews", c.patch, c.media); !strings.Contains(got.Text, c.holds) {
				t.Errorf("no %q in %s", c.holds, got.Text)
			}
		})
	}
	servertest.Start(t).Want(http.StatusNotFound, "PATCH", servertest.RulesPath+"/reviews", "{}", merge)
}

// TestAMisfitNamesItsOperation checks that the causes name the operation of a patch
// that does not fit.
func TestAMisfitNamesItsOperation(t *testing.T) {
	w := servertest.Start(t)
	w.Create("reviews")
	for _, c := range []struct{ patch, field, message string }{
		{`[{"op":"test","path":"/spec/precedence","value":9}]`, "[0].path", "operation 0 (test /spec/precedence)"},
		{`[{"op":"test","path":"/kind","value":"RouteRule"},{"op":"remove","path":"/spec/nope"},{"op":"remove","path":"/nope"}]`, "[1].path", "operation 1 (remove /spec/nope)"},
		{`[{"op":"add","path":"/spec/route/9","value":{}}]`, "[0].path", "operation 0 (add /spec/route/9)"},
		{`[{"op":"test","path":"/kind","value":"RouteRule"},{"op":"move","from":"/nope","path":"/spec/a"}]`, "[1].path", "operation 1 (move /spec/a)"},
	} {
		st := w.Want(http.StatusUnprocessableEntity, "PATCH", servertest.RulesPath+"/reviews", c.patch, servertest.JsonPatch).Failure(t)
		if st.Details == nil || len(st.Details.Causes) != 1 {
			t.Errorf("%s: details %v", c.patch, st.Details)
			continue
		}
		cause := st.Details.Causes[0]
		if cause.Type != metav1.CauseTypeFieldValueInvalid || cause.Field != c.field || !strings.Contains(cause.Message, c.message) || !strings.Contains(st.Message, c.message) {
			t.Errorf("%s: cause %+v of %q", c.patch, cause, st.Message)
		}
	}
}

// TestARefusedPatchHasNoPlace checks that the error of a refused patch has no
// position, because its sender never saw the text.
func TestARefusedPatchHasNoPlace(t *testing.T) {
	w := servertest.Start(t)
	w.Create("reviews")
	for media, patch := range map[string]string{
		servertest.MergePatch:                        `{"spec":{"precedence":"many"}}`,
		servertest.JsonPatch:                         `[{"op":"add","path":"/spec/precedence","value":"many"}]`,
		"Content-Type: application/apply-patch+yaml": `{"apiVersion":"config.istio.io/v1alpha2","kind":"RouteRule","metadata":{"name":"other"},"spec":{"precedence":2}}`,
	} {
		path := servertest.RulesPath + "/reviews"
		if strings.Contains(media, "apply") {
			path = servertest.RulesPath + "/other?fieldManager=a" // Which lacks a destination.
		}
		st := w.Want(http.StatusUnprocessableEntity, "PATCH", path, patch, media).Failure(t)
		if strings.Contains(st.Message, "line ") || !strings.Contains(st.Message, "spec") {
			t.Errorf("%s: %s", media, st.Message)
		}
	}
}

// doublingPatch returns a patch that doubles a document n times.
func doublingPatch(n int) string {
	ops := []string{`{"op":"add","path":"/metadata/annotations","value":{"a":"` + strings.Repeat("x", 1000) + `"}}`}
	for range n {
		ops = append(ops,
			`{"op":"copy","from":"/metadata/annotations","path":"/metadata/annotations/b"}`,
			`{"op":"copy","from":"/metadata/annotations","path":"/metadata/annotations/c"}`)
	}
	return "[" + strings.Join(ops, ",") + "]"
}

// TestPatchLosesNoWrite checks that when many clients patch one object at the same
// time, each patch is done, however often others were faster. A patch that removes
// the resourceVersion may not overwrite what it never saw.
func TestPatchLosesNoWrite(t *testing.T) {
	outside.Slow(t)
	const clients, each = 32, 20
	patches := []struct{ media, text string }{
		{servertest.MergePatch, `{"metadata":{"labels":{%q:"1"}}}`},
		{servertest.MergePatch, `{"metadata":{"resourceVersion":null,"labels":{%q:"1"}}}`},
		{servertest.MergePatch, `{"metadata":{"resourceVersion":"","labels":{%q:"1"}}}`},
		{servertest.JsonPatch, `[{"op":"remove","path":"/metadata/resourceVersion"},{"op":"add","path":"/metadata/labels/%s","value":"1"}]`},
	}
	objects := etcd.New(etcdtest.Start(t).Client(), etcd.DefaultPrefix, slog.New(slog.DiscardHandler))
	w := servertest.Start(t, func(o *server.Options) { o.Store, o.Reads, o.Log = store.Strict(objects), objects, nil })
	w.Create("reviews", "labels: {a: b}")
	var all errgroup.Group
	for c := range clients {
		all.Go(func() error {
			for i := range each {
				patch := patches[(c+i)%len(patches)]
				text := fmt.Sprintf(patch.text, fmt.Sprintf("mine-%d-%d", c, i))
				if got := w.Do("PATCH", servertest.RulesPath+"/reviews", text, patch.media); got.StatusCode != http.StatusOK {
					return fmt.Errorf("client %d, patch %d: %s", c, i, got.Text)
				}
			}
			return nil
		})
	}
	if err := all.Wait(); err != nil {
		t.Error(err)
	}
	got := w.Want(http.StatusOK, "GET", servertest.RulesPath+"/reviews", "").Object(t)
	if n := len(got.Metadata.Labels); n != 1+clients*each {
		t.Errorf("%d labels, want %d", n, 1+clients*each)
	}
}
