package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/server"
	"github.com/pilot-api/pilot-api/store"
)

func (a answer) listed(t *testing.T) listed {
	t.Helper()
	var l listed
	if err := json.Unmarshal([]byte(a.text), &l); err != nil {
		t.Fatalf("%v in %s", err, a.text)
	}
	return l
}

func (w *world) wantRules(names ...string) {
	w.Helper()
	if diff := cmp.Diff(append([]string{}, names...), w.page("").names()); diff != "" {
		w.Errorf("there are (-want +got):\n%s", diff)
	}
}

// TestDeleteCollection checks that exactly the selected objects are deleted, at one
// revision.
func TestDeleteCollection(t *testing.T) {
	w := start(t)
	for _, name := range []string{"a", "b", "c"} {
		w.create(name, "labels: {team: red}")
	}
	w.create("d")
	w.want(http.StatusCreated, "POST", strings.Replace(rulesPath, "/default/", "/other/", 1), rule("e", 100, "labels: {team: red}"), asYAML)
	const red = rulesPath + "?labelSelector=team%3Dred"
	watch := w.watch("&resourceVersion=" + w.page("").Metadata.ResourceVersion)

	for _, dry := range []string{"&dryRun=All", ""} {
		got := w.want(http.StatusOK, "DELETE", red+"&fieldSelector=metadata.name!%3Db"+dry, "").listed(t)
		if diff := cmp.Diff([]string{"a", "c"}, got.names()); diff != "" {
			t.Errorf("answer (-want +got):\n%s", diff)
		}
		if dry != "" {
			w.wantRules("a", "b", "c", "d")
		}
	}
	w.wantRules("b", "d")
	var revisions []int64
	for _, want := range []string{"DELETED a", "DELETED c"} {
		f, _ := watch.next()
		var o object
		if err := json.Unmarshal(f.Object, &o); err != nil || f.String() != want {
			t.Fatalf("got %s, want %s", f, want)
		}
		revisions = append(revisions, mustRevision(t, o))
	}
	if revisions[0] != revisions[1] {
		t.Errorf("they went at %v", revisions)
	}
	if got := w.want(http.StatusOK, "DELETE", rulesPath+"?fieldSelector=metadata.name%3Dnone", "").listed(t); len(got.Items) > 0 || got.Metadata.ResourceVersion == "" {
		t.Errorf("of none: %+v", got)
	}
	w.want(http.StatusOK, "DELETE", rulesPath, "")
	w.wantRules()
	if left := w.names(allRules, "labelSelector", "team"); len(left) != 1 {
		t.Errorf("in other namespaces: %v", left)
	}
}

// TestDeleteCollectionRefuses whatever might delete more than was meant.
func TestDeleteCollectionRefuses(t *testing.T) {
	w := start(t)
	w.create("a")
	for _, c := range []struct {
		path, body string
		code       int
		says       string
	}{
		{allRules, "", 405, "GET"},
		{rulesPath + "/", "", 404, "no path"},
		{rulesPath + "?labelselector=x%3Dy", "", 400, "labelSelector"},
		{rulesPath + "?labelSelector=x%3D%3D%3Dy", "", 400, "labelSelector"},
		{rulesPath + "?fieldSelector=spec.none%3Dx", "", 400, "spec.destination.name"},
		{rulesPath + "?limit=1", "", 400, "limit"},
		{rulesPath + "?continue=x", "", 400, "continue"},
		{rulesPath + "?dryRun=Some", "", 400, "dryRun"},
		{rulesPath + "?propagationPolicy=Upwards", "", 422, "propagationPolicy"},
		{rulesPath + "?propagationPolicy=Orphan&orphanDependents=true", "", 422, "both"},
		{rulesPath + "/a?propagationPolicy=Upwards", "", 422, "propagationPolicy"},
		{rulesPath + "/a", `{"propagationPolicy":"Upwards"}`, 422, "propagationPolicy"},
		{rulesPath, `{"preconditions":{"resourceVersion":"1"}}`, 409, "stored object"},
		{rulesPath, `{"preconditions":{"uid":"none"}}`, 409, "stored object"},
		{rulesPath, `{"labelSelector":"x=y"}`, 400, "DeleteOptions"},
		{rulesPath, `{"dryRun":["All"]}`, 200, ""},
		{rulesPath + "?propagationPolicy=Foreground&dryRun=All", "", 200, ""},
	} {
		got := w.want(c.code, "DELETE", c.path, c.body, asJSON)
		if !strings.Contains(got.text, c.says) {
			t.Errorf("%s %s: no %q in %s", c.path, c.body, c.says, got.text)
		}
	}
	w.wantRules("a")
}

// TestDeleteCollectionMarks objects that have a finalizer.
func TestDeleteCollectionMarks(t *testing.T) {
	w := start(t)
	w.create("a")
	w.create("b", "finalizers: [example.com/clean-up]")
	for range 2 {
		got := w.want(http.StatusOK, "DELETE", rulesPath, "").listed(t)
		if b := got.Items[len(got.Items)-1]; b.Metadata.DeletionTimestamp == nil {
			t.Errorf("answer: %+v", b)
		}
		w.wantRules("b")
	}
}

// TestDeleteCollectionOvertaken checks that an object which is changed between the
// search and the deletion is deleted only if it is still selected.
func TestDeleteCollectionOvertaken(t *testing.T) {
	meddled := &meddler{}
	w := start(t, func(o *server.Options) { meddled.Interface, o.Store = o.Store, meddled })
	for _, name := range []string{"a", "b", "c"} {
		w.create(name, "labels: {team: red}")
	}
	meddled.steps = []func(){
		func() { w.put("a", 50, "labels: {team: blue}") },
		func() { w.put("b", 50, "labels: {team: red}") },
		func() { w.delete("c") },
	}
	got := w.want(http.StatusOK, "DELETE", rulesPath+"?labelSelector=team%3Dred", "").listed(t)
	if diff := cmp.Diff([]string{"b"}, got.names()); diff != "" {
		t.Errorf("answer (-want +got):\n%s", diff)
	}
	w.wantRules("a")
}

// meddler calls a function before each transaction.
type meddler struct {
	store.Interface
	steps []func()
}

func (m *meddler) Txn(ctx context.Context, ops []store.Op) ([]*schema.Object, error) {
	if len(m.steps) > 0 {
		step := m.steps[0]
		m.steps = m.steps[1:]
		step()
	}
	return m.Interface.Txn(ctx, ops)
}

// TestDeleteCollectionInParts checks that objects beyond one transaction are
// deleted in several.
func TestDeleteCollectionInParts(t *testing.T) {
	w := start(t, func(o *server.Options) { o.Store = narrow{o.Store} })
	var names []string
	for i := range 10 {
		names = append(names, fmt.Sprintf("r%d", i))
	}
	w.transaction(names...)
	got := w.want(http.StatusOK, "DELETE", rulesPath, "").listed(t)
	if diff := cmp.Diff(names, got.names()); diff != "" {
		t.Errorf("answer (-want +got):\n%s", diff)
	}
	w.wantRules()
}

// narrow is a store that accepts three operations at a time.
type narrow struct{ store.Interface }

func (n narrow) Txn(ctx context.Context, ops []store.Op) ([]*schema.Object, error) {
	if len(ops) > 3 {
		return nil, &store.Error{Kind: store.ErrTooLarge}
	}
	return n.Interface.Txn(ctx, ops)
}

// TestDeleteCollectionWithClientGo deletes a collection by client-go.
func TestDeleteCollectionWithClientGo(t *testing.T) {
	w := start(t)
	client, err := dynamic.NewForConfig(&rest.Config{Host: w.url})
	if err != nil {
		t.Fatal(err)
	}
	w.create("a", "labels: {team: red}")
	w.create("b")
	rules := client.Resource(ruleResource).Namespace("default")
	background := metav1.DeletePropagationBackground
	opts := metav1.DeleteOptions{PropagationPolicy: &background}
	if err := rules.DeleteCollection(t.Context(), opts, metav1.ListOptions{LabelSelector: "team in (red)"}); err != nil {
		t.Fatal(err)
	}
	w.wantRules("b")
	if err := rules.DeleteCollection(t.Context(), opts, metav1.ListOptions{FieldSelector: "spec.none=x"}); !apierrors.IsBadRequest(err) {
		t.Errorf("of an unknown field: %v", err)
	}
	if err := rules.DeleteCollection(t.Context(), opts, metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	w.wantRules()
}
