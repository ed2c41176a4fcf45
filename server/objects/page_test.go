package objects_test

import (
	"github.com/pilot-api/pilot-api/server/servertest"

	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// TestPages checks in every format that pages show the list as it was at the first
// one, whatever changes meanwhile.
func TestPages(t *testing.T) {
	for _, accept := range []string{"application/json", "application/yaml", "application/json;as=Table;v=v1;g=meta.k8s.io"} {
		w := servertest.Start(t)
		for _, name := range []string{"a", "b", "c", "d", "e"} {
			w.Create(name)
		}
		first := w.Page("limit=2", "Accept: "+accept)
		w.Delete("d")
		w.Create("c-new")
		got := first.Names()
		page, left := first, []int64{}
		for page.Metadata.Continue != "" {
			left = append(left, *page.Metadata.RemainingItemCount)
			page = w.Page("limit=2&continue="+page.Metadata.Continue, "Accept: "+accept)
			if page.Metadata.ResourceVersion != first.Metadata.ResourceVersion {
				t.Errorf("a page is at %s, the first at %s", page.Metadata.ResourceVersion, first.Metadata.ResourceVersion)
			}
			got = append(got, page.Names()...)
		}
		if diff := cmp.Diff([]string{"a", "b", "c", "d", "e"}, got); diff != "" {
			t.Errorf("%s: (-want +got):\n%s", accept, diff)
		}
		if diff := cmp.Diff([]int64{3, 1}, left); diff != "" || page.Metadata.RemainingItemCount != nil {
			t.Errorf("%s: remaining (-want +got):\n%s", accept, diff)
		}
	}
}

// TestPagesOfSelected checks that a page is full of selected objects, without a
// count of the remaining ones.
func TestPagesOfSelected(t *testing.T) {
	w := servertest.Start(t)
	for i := range 9 {
		w.Create(fmt.Sprintf("r%d", i), fmt.Sprintf("labels: {odd: %q}", fmt.Sprint(i%2)))
	}
	query := "limit=2&labelSelector=odd%3D1"
	first := w.Page(query)
	second := w.Page(query + "&continue=" + first.Metadata.Continue)
	if diff := cmp.Diff([][]string{{"r1", "r3"}, {"r5", "r7"}}, [][]string{first.Names(), second.Names()}); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if first.Metadata.RemainingItemCount != nil || second.Metadata.Continue != "" {
		t.Errorf("metadata of the pages: %+v, %+v", first.Metadata, second.Metadata)
	}
}

// TestPagesOfSelectedAreFound also among more objects than are read at a time.
func TestPagesOfSelectedAreFound(t *testing.T) {
	w := servertest.Start(t)
	kind, _ := schema.KindByName("RouteRule")
	var ops []store.Op
	for i := range 1203 {
		meta := metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("r%04d", i), Labels: map[string]string{"last": fmt.Sprint(i >= 1200)}}
		obj, err := schema.New(kind, meta, json.RawMessage(`{"destination":{"name":"reviews"}}`))
		if err != nil {
			t.Fatal(err)
		}
		ops = append(ops, store.Op{Verb: store.OpCreate, Object: obj})
	}
	if _, err := w.Store.Txn(t.Context(), ops); err != nil {
		t.Fatal(err)
	}
	first := w.Page("limit=2&labelSelector=last%3Dtrue")
	rest := w.Page("limit=2&labelSelector=last%3Dtrue&continue=" + first.Metadata.Continue)
	if diff := cmp.Diff([][]string{{"r1200", "r1201"}, {"r1202"}}, [][]string{first.Names(), rest.Names()}); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestPagesExpire checks that when the revision has expired, the answer has a token
// to go on anyway.
func TestPagesExpire(t *testing.T) {
	w := servertest.Start(t)
	w.Create("a")
	w.Create("b")
	first := w.Page("limit=1")
	w.Store.Compact(servertest.MustRevision(t, w.Create("c")))
	st := w.Want(http.StatusGone, "GET", servertest.RulesPath+"?limit=1&continue="+first.Metadata.Continue, "").Failure(t)
	if st.Reason != metav1.StatusReasonExpired || st.Continue == "" {
		t.Fatalf("got %+v", st)
	}
	second := w.Page("limit=1&continue=" + st.Continue)
	last := w.Page("limit=1&continue=" + second.Metadata.Continue)
	if diff := cmp.Diff([]string{"b", "c"}, append(second.Names(), last.Names()...)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestContinueOfStrangers checks that a token of another list is refused.
func TestContinueOfStrangers(t *testing.T) {
	w := servertest.Start(t)
	w.Create("a")
	token := func(revision int64, kind, namespace, name string) string {
		return store.Continue{Revision: revision, After: schema.Key{Kind: kind, Namespace: namespace, Name: name}}.Token()
	}
	good := token(1, "RouteRule", "default", "a")
	for _, query := range []string{
		"continue=abc",
		"continue=" + url.QueryEscape(good+"="),
		"continue=" + good[:len(good)/2],
		"continue=" + strings.Repeat("A", 5000),
		"continue=" + token(-1, "RouteRule", "default", "a"),
		"continue=" + token(1, "Secret", "default", "a"),
		"continue=" + token(1, "EgressRule", "default", "a"),
		"continue=" + token(1, "RouteRule", "", "a"),
		"continue=" + token(1, "RouteRule", "default", "../../a"),
		"continue=" + token(1, "RouteRule", "default", "a\x00"),
		"continue=" + good + "&resourceVersion=1",
		"continue=" + good + "&resourceVersionMatch=Exact",
		"limit=-1",
	} {
		st := w.Want(http.StatusBadRequest, "GET", servertest.RulesPath+"?"+query, "").Failure(t)
		if !strings.Contains(st.Message, "query parameter") {
			t.Errorf("%s: %s", query, st.Message)
		}
	}
	// A key of another namespace only sets the beginning.
	if got := w.Page("continue=" + token(0, "RouteRule", "aaa", "z")).Names(); len(got) != 1 {
		t.Errorf("after another namespace: %v", got)
	}
	w.Want(http.StatusGatewayTimeout, "GET", servertest.RulesPath+"?continue="+token(999, "RouteRule", "default", "a"), "")
}

// FuzzContinue checks that any token is decoded or refused, and that a decoded one
// can be encoded again.
func FuzzContinue(f *testing.F) {
	f.Add(store.Continue{Revision: 7, After: schema.Key{Kind: "RouteRule", Namespace: "default", Name: "a"}}.Token())
	f.Add("e30")
	f.Fuzz(func(t *testing.T, token string) {
		c, err := store.ParseContinue(token)
		if err != nil {
			return
		}
		if again, err := store.ParseContinue(c.Token()); err != nil || again != c {
			t.Errorf("%+v became %+v, %v", c, again, err)
		}
	})
}
