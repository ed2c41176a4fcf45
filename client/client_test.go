package client_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pilot-api/pilot-api/client"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

const (
	emptyList = `{"kind":"RouteRuleList","metadata":{"resourceVersion":"7"},"items":[]}`
	oneRule   = `{"apiVersion":"config.istio.io/v1alpha2","kind":"RouteRule",` +
		`"metadata":{"resourceVersion":"5","name":"x","namespace":"books"},"spec":{"destination":{"name":"reviews"}}}`
)

// recorder is a server that always gives the same answer and records requests.
type recorder struct {
	code   int
	header http.Header
	answer string

	asked []string // "METHOD /path?query [content-type] body"
}

func (rec *recorder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(err)
	}
	asked := r.Method + " " + r.URL.String()
	if len(body) > 0 {
		asked += fmt.Sprintf(" [%s] %s", r.Header.Get("Content-Type"), body)
	}
	rec.asked = append(rec.asked, asked)
	for name, values := range rec.header {
		w.Header()[name] = values
	}
	w.WriteHeader(rec.code)
	_, _ = io.WriteString(w, rec.answer)
}

func (rec *recorder) start(t *testing.T, opts client.Options) *client.Client {
	t.Helper()
	srv := httptest.NewServer(rec)
	t.Cleanup(srv.Close)
	return connect(t, srv.URL, opts)
}

func connect(t *testing.T, url string, opts client.Options) *client.Client {
	t.Helper()
	c, err := client.New(url, opts)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func routeRules(t *testing.T) *schema.Kind {
	t.Helper()
	kind, ok := schema.KindByName("RouteRule")
	if !ok {
		t.Fatal("no kind RouteRule")
	}
	return kind
}

func TestRequests(t *testing.T) {
	kind := routeRules(t)
	key := schema.Key{Kind: kind.Kind, Namespace: "books", Name: "x"}
	const base = "/apis/config.istio.io/v1alpha2/"
	text := client.Text{Kind: kind, Namespace: "books", Name: "x", Body: []byte("# mine\nkind: RouteRule\n")}
	cases := []struct {
		name, answer string
		call         func(*client.Client) error
		want         string
	}{
		{"get", oneRule, func(c *client.Client) error {
			_, err := c.Get(t.Context(), key, store.ReadOptions{})
			return err
		}, "GET " + base + "namespaces/books/routerules/x"},
		{"get not older", oneRule, func(c *client.Client) error {
			_, err := c.Get(t.Context(), key, store.ReadOptions{AtLeast: 4})
			return err
		}, "GET " + base + "namespaces/books/routerules/x?resourceVersion=4"},
		{"get any", oneRule, func(c *client.Client) error {
			_, err := c.Get(t.Context(), key, store.ReadOptions{AtLeast: store.Any})
			return err
		}, "GET " + base + "namespaces/books/routerules/x?resourceVersion=0"},
		{"list of all namespaces", emptyList, func(c *client.Client) error {
			_, err := c.List(t.Context(), store.Scope{Kind: kind}, store.ListOptions{})
			return err
		}, "GET " + base + "routerules"},
		{"list exact", emptyList, func(c *client.Client) error {
			_, err := c.List(t.Context(), store.Scope{Kind: kind, Namespace: "books"}, store.ListOptions{Exact: 7})
			return err
		}, "GET " + base + "namespaces/books/routerules?resourceVersion=7&resourceVersionMatch=Exact"},
		{"list one", emptyList, func(c *client.Client) error {
			_, err := c.List(t.Context(), store.Scope{Kind: kind, Namespace: "books", Name: "x"}, store.ListOptions{AtLeast: 3})
			return err
		}, "GET " + base + "namespaces/books/routerules?fieldSelector=metadata.name%3Dx&resourceVersion=3&resourceVersionMatch=NotOlderThan"},
		{"create text", oneRule, func(c *client.Client) error {
			_, err := c.CreateText(t.Context(), text)
			return err
		}, "POST " + base + "namespaces/books/routerules [application/yaml] # mine\nkind: RouteRule\n"},
		{"update text", oneRule, func(c *client.Client) error {
			_, err := c.UpdateText(t.Context(), text)
			return err
		}, "PUT " + base + "namespaces/books/routerules/x [application/yaml] # mine\nkind: RouteRule\n"},
		{"delete", oneRule, func(c *client.Client) error {
			_, err := c.Delete(t.Context(), key, store.Preconditions{})
			return err
		}, "DELETE " + base + "namespaces/books/routerules/x"},
		{"delete on conditions", oneRule, func(c *client.Client) error {
			_, err := c.Delete(t.Context(), key, store.Preconditions{UID: "u", ResourceVersion: "5"})
			return err
		}, "DELETE " + base + "namespaces/books/routerules/x [application/json] " +
			`{"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"uid":"u","resourceVersion":"5"}}`},
		{"escaped name", oneRule, func(c *client.Client) error {
			_, _ = c.Get(t.Context(), schema.Key{Kind: kind.Kind, Namespace: "a/b", Name: "../x?y"}, store.ReadOptions{}) // No object has this name.
			return nil
		}, "GET " + base + "namespaces/a%2Fb/routerules/..%2Fx%3Fy"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			rec := &recorder{code: http.StatusOK, answer: tc.answer}
			if err := tc.call(rec.start(t, client.Options{})); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{tc.want}, rec.asked); diff != "" {
				t.Errorf("request (-want +got):\n%s", diff)
			}
		})
	}
}

// TestNoSuchKind checks that no request is sent and that the error lists the kinds.
func TestNoSuchKind(t *testing.T) {
	rec := &recorder{code: 200}
	_, err := rec.start(t, client.Options{}).Get(t.Context(), schema.Key{Kind: "RoutRule", Namespace: "books", Name: "x"}, store.ReadOptions{})
	if !errors.Is(err, store.ErrInvalid) || !strings.Contains(err.Error(), "did you mean RouteRule?") || len(rec.asked) > 0 {
		t.Errorf("%v, asked %v", err, rec.asked)
	}
}

func TestErrors(t *testing.T) {
	cases := []struct {
		name   string
		code   int
		answer string
		want   error  // nil: any
		text   string // part of the message
	}{
		{"conflict", 409, `{"kind":"Status","status":"Failure","reason":"Conflict","code":409,"message":"m"}`, store.ErrConflict, "m"},
		{"exists", 409, `{"kind":"Status","status":"Failure","reason":"AlreadyExists","code":409}`, store.ErrExists, ""},
		{"a proxy's own page", 502, "<html>bad gateway</html>\nmore", store.ErrUnavailable, "<html>bad gateway</html>"},
		{"another path", 404, `{"kind":"Status","status":"Failure","reason":"NotFound","code":404,"message":"no /x"}`, client.ErrNoPath, "no /x"},
		{"no pilot-api", 404, "404 page not found", nil, "no Status of a pilot-api server"},
		{"garbage", 200, "{", nil, "decode the server's answer"},
		{"another kind", 200, `{"apiVersion":"v1","kind":"Pod"}`, nil, `v1 "Pod"`},
	}
	key := schema.Key{Kind: "RouteRule", Namespace: "books", Name: "x"}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			rec := &recorder{code: tc.code, answer: tc.answer}
			_, err := rec.start(t, client.Options{}).Get(t.Context(), key, store.ReadOptions{})
			if err == nil || !strings.Contains(err.Error(), tc.text) {
				t.Fatalf("error %v, want one with %q", err, tc.text)
			}
			if tc.want != nil && !errors.Is(err, tc.want) {
				t.Errorf("error %v is not %v", err, tc.want)
			}
		})
	}
}

func TestUnreachableServerIsUnavailable(t *testing.T) {
	srv := httptest.NewServer(http.NotFoundHandler())
	srv.Close()
	_, err := connect(t, srv.URL, client.Options{}).Revision(t.Context())
	if !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("error %v, want ErrUnavailable", err)
	}
}

// TestUnansweredIsNotUnreached checks that a request that may have been executed is
// distinguished from one that certainly was not.
func TestUnansweredIsNotUnreached(t *testing.T) {
	hangUp := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	t.Cleanup(hangUp.Close)
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	for url, want := range map[string]error{hangUp.URL: store.ErrOutcomeUnknown, gone.URL: store.ErrUnavailable} {
		_, err := connect(t, url, client.Options{}).CreateText(t.Context(), client.Text{Kind: routeRules(t), Namespace: "books"})
		if got := errors.Is(err, client.ErrNoAnswer); got != (want == store.ErrOutcomeUnknown) || !errors.Is(err, want) {
			t.Errorf("error %v: ErrNoAnswer %v, want %v", err, got, want)
		}
	}
}

func TestAnswersAreBounded(t *testing.T) {
	rec := &recorder{code: http.StatusOK, answer: `{"a":"` + strings.Repeat("x", 5<<20) + `"}`}
	key := schema.Key{Kind: "RouteRule", Namespace: "books", Name: "x"}
	_, err := rec.start(t, client.Options{}).Get(t.Context(), key, store.ReadOptions{})
	if err == nil || !strings.Contains(err.Error(), "larger than") {
		t.Errorf("error %v, want one about the size", err)
	}
}

func TestWarningsReachTheCaller(t *testing.T) {
	rec := &recorder{code: http.StatusOK, answer: oneRule, header: http.Header{
		"Warning": {`299 - "spec.a \"b\" is ignored"`, `199 - "not ours"`, `nonsense`},
	}}
	var got []string
	c := rec.start(t, client.Options{Warn: func(text string) { got = append(got, text) }})
	if _, err := c.Get(t.Context(), schema.Key{Kind: "RouteRule", Namespace: "books", Name: "x"}, store.ReadOptions{}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{`spec.a "b" is ignored`}, got); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}

func TestTransactionsOfSeveralOperationsAreRefused(t *testing.T) {
	rec := &recorder{code: http.StatusCreated, answer: `{"status":{"results":[{"verb":"delete","object":` + oneRule + `}]}}`}
	key := schema.Key{Kind: "RouteRule", Namespace: "books", Name: "x"}
	op := store.Op{Verb: store.OpDelete, Key: key}
	c := rec.start(t, client.Options{})
	if _, err := c.Txn(t.Context(), []store.Op{op, op}); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("two operations: error %v, want ErrInvalid", err)
	}
	if len(rec.asked) != 0 {
		t.Errorf("something was sent: %v", rec.asked)
	}
	if _, err := c.Txn(t.Context(), []store.Op{op}); err != nil {
		t.Errorf("one operation: %v", err)
	}
}

func TestServerURLs(t *testing.T) {
	for _, url := range []string{"", "localhost:8080", "ftp://x", "http://", "http://x?y=z", "http://x#y", "http://[::1"} {
		if _, err := client.New(url, client.Options{}); err == nil {
			t.Errorf("%q is accepted", url)
		}
	}
	c := connect(t, "https://host/prefix/", client.Options{})
	if got, want := c.Server(), "https://host/prefix"; got != want {
		t.Errorf("Server() = %q, want %q", got, want)
	}
}
