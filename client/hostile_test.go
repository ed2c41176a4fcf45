package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/client"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// most bounds the requests that a test waits for. A client that sends more would never
// stop.
const most = 10

// listText is a list of rules at revision 7 with a metadata member.
func listText(meta string, items ...string) string {
	return `{"kind":"RouteRuleList","metadata":{"resourceVersion":"7"` + meta + `},"items":[` + strings.Join(items, ",") + `]}`
}

// rulesOf returns the names of the rules of all pages of two rules.
func rulesOf(ctx context.Context, c *client.Client, kind *schema.Kind) (names []string, err error) {
	for page, err := range c.Pages(ctx, client.Selection{Kinds: []*schema.Kind{kind}}, store.ListOptions{Limit: 2}) {
		if err != nil {
			return names, err
		}
		for _, o := range page.Items {
			names = append(names, o.Meta.Name)
		}
		if len(names) > most {
			return names, nil
		}
	}
	return names, nil
}

// TestPagesOfAHostileServer checks that a server can neither make a list endless nor end
// it early without an error.
func TestPagesOfAHostileServer(t *testing.T) {
	const more = `,"continue":"x"`
	for name, c := range map[string]struct{ answer, want string }{
		"the same page again":         {listText(more, rule("a", 1), rule("b", 1)), "RouteRule books/a comes after RouteRule books/b"},
		"an object twice":             {listText(more, rule("a", 1), rule("a", 1)), "RouteRule books/a comes after RouteRule books/a"},
		"an empty page with continue": {listText(more), "no items"},
		"no items with continue":      {`{"metadata":{"resourceVersion":"7","continue":"x"},"items":null}`, "no items"},
		"nothing that remains":        {listText(more+`,"remainingItemCount":0`, rule("a", 1)), "comes after"},
		"less than nothing remains":   {listText(more+`,"remainingItemCount":-9`, rule("a", 1)), "comes after"},
	} {
		t.Run(name, func(t *testing.T) {
			rec := &recorder{code: http.StatusOK, answer: c.answer}
			names, err := rulesOf(t.Context(), rec.start(t, client.Options{}), routeRules(t))
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "/routerules?") {
				t.Errorf("%q, error %v, want one with %q and the URL", names, err, c.want)
			}
		})
	}
}

// TestListsOfAHostileServer checks the same without pages, and that a list has only
// objects of its kind.
func TestListsOfAHostileServer(t *testing.T) {
	named := func(kind, name string) string {
		return fmt.Sprintf(`{"apiVersion":"config.istio.io/v1alpha2","kind":%q,"metadata":{"name":%q,"namespace":"books"},"spec":{}}`, kind, name)
	}
	for name, c := range map[string]struct{ answer, want string }{
		"a continue nobody asked for": {listText(`,"continue":"x"`, rule("a", 1)), "no limit was asked for"},
		"an object twice":             {listText("", rule("a", 1), rule("a", 1)), "comes after"},
		"in no order":                 {listText("", rule("b", 1), rule("a", 1)), "comes after"},
		"items twice":                 {`{"metadata":{"resourceVersion":"7"},"items":[` + rule("a", 1) + `],"items":[` + rule("a", 1) + `]}`, "comes after"},
		"no object":                   {listText("", "{}"), "item 0: it has no name"},
		"no object later":             {listText("", rule("a", 1), "{}"), "item 1: it has no name"},
		"no kind":                     {listText("", named("", "a")), `want config.istio.io/v1alpha2 "RouteRule"`},
		"another kind":                {listText("", named("Gateway", "a")), `want config.istio.io/v1alpha2 "RouteRule"`},
		"no list":                     {`["a"]`, "it has [, want {"},
		"items of no list":            {`{"items":"a"}`, "it has a, want ["},
		"a large item":                {listText("", `"`+strings.Repeat("x", 9<<20)+`"`), "a value is larger than"},
		"half a list":                 {`{"metadata":{"resourceVersion":"7"},"items":[` + rule("a", 1), "unexpected EOF"},
		"two lists":                   {listText("") + listText(""), "something follows"},
	} {
		t.Run(name, func(t *testing.T) {
			rec := &recorder{code: http.StatusOK, answer: c.answer}
			_, err := rec.start(t, client.Options{}).ListWithStatuses(t.Context(), store.Scope{Kind: routeRules(t)}, store.ListOptions{})
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "/routerules") {
				t.Errorf("error %v, want one with %q and the URL", err, c.want)
			}
		})
	}
}

// endless answers with a text and then with others, far more than a client may read, and
// says when it is done or its reader has left.
type endless struct {
	begin string
	next  func(i int) string
	left  chan int // the number of bytes sent
}

func (e *endless) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	sent, err := io.WriteString(w, e.begin)
	for i := 0; err == nil && sent < 64<<20; i++ {
		var n int
		n, err = io.WriteString(w, e.next(i))
		sent += n
	}
	e.left <- sent
}

// same returns a text that repeats one text.
func same(text string) func(int) string {
	text = strings.Repeat(text, max(1, 4096/len(text)))
	return func(int) string { return text }
}

// TestEndlessAnswers checks that a server that sends small values without end is left
// long before they fill the memory.
func TestEndlessAnswers(t *testing.T) {
	key := schema.Key{Kind: "RouteRule", Namespace: "books", Name: "x"}
	rules := func(i int) string { return "," + rule(fmt.Sprintf("b%09d", i), 1) }
	list := func(scope store.Scope) func(*client.Client) error {
		return func(c *client.Client) error {
			_, err := c.ListWithStatuses(t.Context(), scope, store.ListOptions{})
			return err
		}
	}
	head := `{"metadata":{"resourceVersion":"7"},"items":[`
	for name, c := range map[string]struct {
		begin string
		next  func(int) string
		call  func(*client.Client) error
		want  string
	}{
		"items":   {head + "{}", same(",{}"), list(store.Scope{Kind: routeRules(t)}), "no name"},
		"objects": {head + rule("a", 1), rules, list(store.Scope{Kind: routeRules(t)}), "too much memory"},
		"spaces":  {head, same(" "), list(store.Scope{Kind: routeRules(t)}), "larger than"},
		"owners":  {head + `{"metadata":{"ownerReferences":[{}`, same(",{}"), list(store.Scope{Kind: routeRules(t)}), "a value is larger than"},
		"proxies": {"[{}", same(",{}"), func(c *client.Client) error { _, err := c.Proxies(t.Context()); return err }, "too much memory"},
		"problems": {`{"problems":[{}`, same(",{}"), func(c *client.Client) error { _, err := c.Problems(t.Context(), client.ProblemsOptions{}); return err },
			"/debug/problems: it takes too much memory"},
		"versions": {`{"items":[{}`, same(",{}"), func(c *client.Client) error { _, err := c.History(t.Context(), key); return err }, "too much memory"},
		"texts":    {`{"nodes":[""`, same(`,""`), func(c *client.Client) error { _, err := c.Preview(t.Context(), nil, "a"); return err }, "too much memory"},
		"arrays":   {`{"a":[`, same("["), func(c *client.Client) error { _, err := c.Sockets(t.Context()); return err }, "/v3/discovery:sockets: it takes"},
	} {
		t.Run(name, func(t *testing.T) {
			server := &endless{begin: c.begin, next: c.next, left: make(chan int, 1)}
			srv := httptest.NewServer(server)
			t.Cleanup(srv.Close)
			api := connect(t, srv.URL, client.Options{})
			api.Bounded(16 << 20)
			err := c.call(api)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
			if sent := <-server.left; sent > 48<<20 { // The connection holds some.
				t.Errorf("%d bytes were read", sent)
			}
		})
	}
}

// TestAllKindsShareABound checks that the lists of all kinds together are bounded.
func TestAllKindsShareABound(t *testing.T) {
	const each = 100
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var items []string
		for _, kind := range schema.Kinds() {
			if r.URL.Path != kind.Root(kind.Version)+"/"+kind.Plural {
				continue
			}
			for i := range each {
				items = append(items, fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"name":"a%03d","namespace":"books"},"spec":{}}`,
					kind.APIVersion(), kind.Kind, i))
			}
		}
		_, _ = io.WriteString(w, listText("", items...))
	}))
	t.Cleanup(srv.Close)
	c := connect(t, srv.URL, client.Options{})
	c.Bounded(4 * each << 10)
	if _, err := c.List(t.Context(), store.Scope{Kind: routeRules(t)}, store.ListOptions{}); err != nil {
		t.Errorf("one kind: %v", err)
	}
	if _, err := c.List(t.Context(), store.Scope{}, store.ListOptions{}); err == nil || !strings.Contains(err.Error(), "too much memory") {
		t.Errorf("all kinds: error %v", err)
	}
}

// TestChangesOfAHostileServer checks that all changes are neither endless nor incomplete
// without an error.
func TestChangesOfAHostileServer(t *testing.T) {
	change := func(name, states string) string {
		return fmt.Sprintf(`{"kind":"RouteRule","namespace":"books","name":%q,"revision":"5"%s}`, name, states)
	}
	page := func(items string) string { return `{"metadata":{"continue":"x"},"items":[` + items + `]}` }
	for name, c := range map[string]struct{ answer, want string }{
		"an empty page that is not the last": {page(""), "empty"},
		"the same page again":                {page(change("a", "")), "RouteRule books/a twice"},
	} {
		t.Run(name, func(t *testing.T) {
			rec := &recorder{code: http.StatusOK, answer: c.answer}
			_, err := rec.start(t, client.Options{}).Changes(t.Context(), store.Scope{}, 3)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
			if len(rec.asked) > most {
				t.Errorf("%d requests", len(rec.asked))
			}
		})
	}
	t.Run("large pages without end", func(t *testing.T) {
		asked := 0
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			asked++
			name := fmt.Sprintf("a%d", asked)
			large := strings.Replace(rule(name, 5), `"spec":{}`, `"spec":{"a":"`+strings.Repeat("x", 1<<20)+`"}`, 1)
			text := page(change(name, `,"now":`+large))
			if asked > most {
				text = strings.Replace(text, `"continue":"x"`, "", 1) // Enough is seen.
			}
			_, _ = io.WriteString(w, text)
		}))
		t.Cleanup(srv.Close)
		c := connect(t, srv.URL, client.Options{})
		c.Bounded(16 << 20)
		_, err := c.Changes(t.Context(), store.Scope{}, 3)
		if !errors.Is(err, store.ErrTooLarge) || asked > most {
			t.Errorf("error %v after %d pages", err, asked)
		}
	})
}

// TestRollbackThatDoesNotGoOn checks that a server cannot make the steps of a rollback
// endless with one step.
func TestRollbackThatDoesNotGoOn(t *testing.T) {
	rec := &recorder{code: http.StatusOK, answer: `{"status":{"continue":"x","results":[]}}`}
	var last error
	for _, err := range rec.start(t, client.Options{}).RollbackInSteps(t.Context(), store.Scope{Namespace: "books"}, 3) {
		if last = err; len(rec.asked) > most {
			break
		}
	}
	if last == nil || !strings.Contains(last.Error(), `the continue "x" of the step before`) {
		t.Errorf("error %v after %d steps", last, len(rec.asked))
	}
}

// TestEventsThatNothingCompletes checks that a watch ends if its server sends changes
// that take little text and much memory, and never completes a revision.
func TestEventsThatNothingCompletes(t *testing.T) {
	owned := strings.Replace(rule("a", 3), `"name":`, `"managedFields":[{}`+strings.Repeat(",{}", 300_000)+`],"name":`, 1)
	event := eventText("MODIFIED", owned)
	server := &endless{next: func(int) string { return event }, left: make(chan int, 1)}
	srv := httptest.NewServer(server)
	t.Cleanup(srv.Close)
	w, err := connect(t, srv.URL, client.Options{}).Watch(t.Context(), store.Scope{Kind: routeRules(t)}, 1)
	if err != nil {
		t.Fatal(err)
	}
	drain(w)
	if !errors.Is(w.Err(), store.ErrSlow) {
		t.Errorf("error %v, want ErrSlow", w.Err())
	}
	if sent := <-server.left; sent > 24<<20 {
		t.Errorf("%d bytes were read", sent)
	}
}

// TestSizeErrorsNameTheRequest checks that the error of a large answer says to which
// request.
func TestSizeErrorsNameTheRequest(t *testing.T) {
	large := strings.Repeat("x", 5<<20)
	for code, want := range map[int]string{200: "larger than 4194304 bytes", 500: "larger than 1048576 bytes"} {
		rec := &recorder{code: code, answer: large}
		c := rec.start(t, client.Options{})
		_, err := c.Get(t.Context(), schema.Key{Kind: "RouteRule", Namespace: "books", Name: "x"}, store.ReadOptions{})
		url := "GET " + c.Server() + "/apis/config.istio.io/v1alpha2/namespaces/books/routerules/x"
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), url) {
			t.Errorf("%d: error %v, want one with %q and %q", code, err, want, url)
		}
	}
}
