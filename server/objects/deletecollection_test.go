package objects_test

import (
	"github.com/pilot-api/pilot-api/server/servertest"

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

func listed(a servertest.Answer, t *testing.T) servertest.Listed {
	t.Helper()
	var l servertest.Listed
	if err := json.Unmarshal([]byte(a.Text), &l); err != nil {
		t.Fatalf("%v in %s", err, a.Text)
	}
	return l
}

func wantRules(w *servertest.World, names ...string) {
	w.Helper()
	if diff := cmp.Diff(append([]string{}, names...), w.Page("").Names()); diff != "" {
		w.Errorf("there are (-want +got):\n%s", diff)
	}
}

// TestDeleteCollection checks that exactly the selected objects are deleted, at one
// revision.
func TestDeleteCollection(t *testing.T) {
	w := servertest.Start(t)
	for _, name := range []string{"a", "b", "c"} {
		w.Create(name, "labels: {team: red}")
	}
	w.Create("d")
	w.Want(http.StatusCreated, "POST", strings.Replace(servertest.RulesPath, "/default/", "/other/", 1), servertest.Rule("e", 100, "labels: {team: red}"), servertest.AsYAML)
	const red = servertest.RulesPath + "?labelSelector=team%3Dred"
	watch := w.Watch("&resourceVersion=" + w.Page("").Metadata.ResourceVersion)

	for _, dry := range []string{"&dryRun=All", ""} {
		got := listed(w.Want(http.StatusOK, "DELETE", red+"&fieldSelector=metadata.name!%3Db"+dry, ""), t)
		if diff := cmp.Diff([]string{"a", "c"}, got.Names()); diff != "" {
			t.Errorf("answer (-want +got):\n%s", diff)
		}
		if dry != "" {
			wantRules(w, "a", "b", "c", "d")
		}
	}
	wantRules(w, "b", "d")
	var revisions []int64
	for _, want := range []string{"DELETED a", "DELETED c"} {
		f, _ := watch.Next()
		var o servertest.Object
		if err := json.Unmarshal(f.Object, &o); err != nil || f.String() != want {
			t.Fatalf("got %s, want %s", f, want)
		}
		revisions = append(revisions, servertest.MustRevision(t, o))
	}
	if revisions[0] != revisions[1] {
		t.Errorf("they went at %v", revisions)
	}
	if got := listed(w.Want(http.StatusOK, "DELETE", servertest.RulesPath+"?fieldSelector=metadata.name%3Dnone", ""), t); len(got.Items) > 0 || got.Metadata.ResourceVersion == "" {
		t.Errorf("no object matches, but the answer is %+v", got)
	}
	w.Want(http.StatusOK, "DELETE", servertest.RulesPath, "")
	wantRules(w)
	if left := names(w, servertest.AllRules, "labelSelector", "team"); len(left) != 1 {
		t.Errorf("in other namespaces: %v", left)
	}
}

// TestDeleteCollectionRefuses whatever might delete more than was meant.
func TestDeleteCollectionRefuses(t *testing.T) {
	w := servertest.Start(t)
	w.Create("a")
	for _, c := range []struct {
		path, body string
		code       int
		says       string
	}{
		{servertest.AllRules, "", 405, "GET"},
		{servertest.RulesPath + "/", "", 404, "no path"},
		{servertest.RulesPath + "?labelselector=x%3Dy", "", 400, "labelSelector"},
		{servertest.RulesPath + "?labelSelector=x%3D%3D%3Dy", "", 400, "labelSelector"},
		{servertest.RulesPath + "?fieldSelector=spec.none%3Dx", "", 400, "spec.destination.name"},
		{servertest.RulesPath + "?limit=1", "", 400, "limit"},
		{servertest.RulesPath + "?continue=x", "", 400, "continue"},
		{servertest.RulesPath + "?dryRun=Some", "", 400, "dryRun"},
		{servertest.RulesPath + "?propagationPolicy=Upwards", "", 422, "propagationPolicy"},
		{servertest.RulesPath + "?propagationPolicy=Orphan&orphanDependents=true", "", 422, "both"},
		{servertest.RulesPath + "/a?propagationPolicy=Upwards", "", 422, "propagationPolicy"},
		{servertest.RulesPath + "/a", `{"propagationPolicy":"Upwards"}`, 422, "propagationPolicy"},
		{servertest.RulesPath, `{"preconditions":{"resourceVersion":"1"}}`, 409, "stored object"},
		{servertest.RulesPath, `{"preconditions":{"uid":"none"}}`, 409, "stored object"},
		{servertest.RulesPath, `{"labelSelector":"x=y"}`, 400, "DeleteOptions"},
		{servertest.RulesPath, `{"dryRun":["All"]}`, 200, ""},
		{servertest.RulesPath + "?propagationPolicy=Foreground&dryRun=All", "", 200, ""},
	} {
		got := w.Want(c.code, "DELETE", c.path, c.body, servertest.AsJSON)
		if !strings.Contains(got.Text, c.says) {
			t.Errorf("%s %s: no %q in %s", c.path, c.body, c.says, got.Text)
		}
	}
	wantRules(w, "a")
}

// TestDeleteCollectionMarks objects that have a finalizer.
func TestDeleteCollectionMarks(t *testing.T) {
	w := servertest.Start(t)
	w.Create("a")
	w.Create("b", "finalizers: [example.com/clean-up]")
	for range 2 {
		got := listed(w.Want(http.StatusOK, "DELETE", servertest.RulesPath, ""), t)
		if b := got.Items[len(got.Items)-1]; b.Metadata.DeletionTimestamp == nil {
			t.Errorf("answer: %+v", b)
		}
		wantRules(w, "b")
	}
}

// TestDeleteCollectionOvertaken checks that an object which is changed between the
// search and the deletion is deleted only if it is still selected.
func TestDeleteCollectionOvertaken(t *testing.T) {
	meddled := &meddler{}
	w := servertest.Start(t, func(o *server.Options) { meddled.Interface, o.Store = o.Store, meddled })
	for _, name := range []string{"a", "b", "c"} {
		w.Create(name, "labels: {team: red}")
	}
	meddled.steps = []func(){
		func() { w.Put("a", 50, "labels: {team: blue}") },
		func() { w.Put("b", 50, "labels: {team: red}") },
		func() { w.Delete("c") },
	}
	got := listed(w.Want(http.StatusOK, "DELETE", servertest.RulesPath+"?labelSelector=team%3Dred", ""), t)
	if diff := cmp.Diff([]string{"b"}, got.Names()); diff != "" {
		t.Errorf("answer (-want +got):\n%s", diff)
	}
	wantRules(w, "a")
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
	w := servertest.Start(t, func(o *server.Options) { o.Store = narrow{o.Store} })
	var names []string
	for i := range 10 {
		names = append(names, fmt.Sprintf("r%d", i))
	}
	w.Transaction(names...)
	got := listed(w.Want(http.StatusOK, "DELETE", servertest.RulesPath, ""), t)
	if diff := cmp.Diff(names, got.Names()); diff != "" {
		t.Errorf("answer (-want +got):\n%s", diff)
	}
	wantRules(w)
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
	w := servertest.Start(t)
	client, err := dynamic.NewForConfig(&rest.Config{Host: w.URL})
	if err != nil {
		t.Fatal(err)
	}
	w.Create("a", "labels: {team: red}")
	w.Create("b")
	rules := client.Resource(servertest.RuleResource).Namespace("default")
	background := metav1.DeletePropagationBackground
	opts := metav1.DeleteOptions{PropagationPolicy: &background}
	if err := rules.DeleteCollection(t.Context(), opts, metav1.ListOptions{LabelSelector: "team in (red)"}); err != nil {
		t.Fatal(err)
	}
	wantRules(w, "b")
	if err := rules.DeleteCollection(t.Context(), opts, metav1.ListOptions{FieldSelector: "spec.none=x"}); !apierrors.IsBadRequest(err) {
		t.Errorf("of an unknown field: %v", err)
	}
	if err := rules.DeleteCollection(t.Context(), opts, metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	wantRules(w)
}
