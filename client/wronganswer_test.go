package client_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pilot-api/pilot-api/client"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// askedFor is the object that the calls ask for.
var askedFor = schema.Key{Kind: "RouteRule", Namespace: "books", Name: "x"}

// anObject returns a rule with that key.
func anObject(t *testing.T) *schema.Object {
	t.Helper()
	o, err := schema.New(routeRules(t), metav1.ObjectMeta{Namespace: askedFor.Namespace, Name: askedFor.Name}, json.RawMessage(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// calls are calls of all methods of a Client that send a request, by name.
func calls(t *testing.T) map[string]func(context.Context, *client.Client) error {
	obj, kind := anObject(t), routeRules(t)
	scope := store.Scope{Kind: kind, Namespace: askedFor.Namespace}
	text := client.Text{Kind: kind, Namespace: askedFor.Namespace, Name: askedFor.Name, Body: obj.Written()}
	of := client.ProxyRef{Node: "sidecar~10.0.0.1~a.b~b.svc.cluster.local"}
	same := func(o *schema.Object) (*schema.Object, error) { return o, nil }
	return map[string]func(context.Context, *client.Client) error{
		"AllProxies":   func(ctx context.Context, c *client.Client) error { _, err := c.AllProxies(ctx); return err },
		"AllProxiesOf": func(ctx context.Context, c *client.Client) error { _, err := c.AllProxiesOf(ctx, askedFor); return err },
		"Changes":      func(ctx context.Context, c *client.Client) error { _, err := c.Changes(ctx, scope, 3); return err },
		"ChangesPage": func(ctx context.Context, c *client.Client) error {
			_, _, err := c.ChangesPage(ctx, scope, store.ChangesOptions{Since: 3, Limit: 2})
			return err
		},
		"Config":     func(ctx context.Context, c *client.Client) error { _, err := c.Config(ctx, of, "all"); return err },
		"Create":     func(ctx context.Context, c *client.Client) error { _, err := c.Create(ctx, obj); return err },
		"CreateText": func(ctx context.Context, c *client.Client) error { _, err := c.CreateText(ctx, text); return err },
		"CreateToken": func(ctx context.Context, c *client.Client) error {
			_, err := c.CreateToken(ctx, "books", "x", nil, time.Hour)
			return err
		},
		"Delete": func(ctx context.Context, c *client.Client) error {
			_, err := c.Delete(ctx, askedFor, store.Preconditions{})
			return err
		},
		"Authority": func(ctx context.Context, c *client.Client) error { _, err := c.Authority(ctx); return err },
		"RotateAuthority": func(ctx context.Context, c *client.Client) error {
			_, err := c.RotateAuthority(ctx, "add", false)
			return err
		},
		"RevokeCertificate": func(ctx context.Context, c *client.Client) error {
			_, err := c.RevokeCertificate(ctx, "7d", false)
			return err
		},
		"Explain": func(ctx context.Context, c *client.Client) error {
			_, err := c.Explain(ctx, of, "GET", "http://a/", nil)
			return err
		},
		"FollowStatuses": func(ctx context.Context, c *client.Client) error {
			return c.FollowStatuses(ctx, scope, func(client.ObjectWithStatus) {})
		},
		"Get": func(ctx context.Context, c *client.Client) error {
			_, err := c.Get(ctx, askedFor, store.ReadOptions{})
			return err
		},
		"GetWithFreshStatus": func(ctx context.Context, c *client.Client) error {
			_, err := c.GetWithFreshStatus(ctx, askedFor, store.ReadOptions{})
			return err
		},
		"GetWithStatus": func(ctx context.Context, c *client.Client) error {
			_, err := c.GetWithStatus(ctx, askedFor, store.ReadOptions{})
			return err
		},
		"History": func(ctx context.Context, c *client.Client) error { _, err := c.History(ctx, askedFor); return err },
		"List": func(ctx context.Context, c *client.Client) error {
			_, err := c.List(ctx, scope, store.ListOptions{})
			return err
		},
		"ListWithStatuses": func(ctx context.Context, c *client.Client) error {
			_, err := c.ListWithStatuses(ctx, scope, store.ListOptions{})
			return err
		},
		"Pages": func(ctx context.Context, c *client.Client) (err error) {
			for _, err = range c.Pages(ctx, client.InScope(scope), store.ListOptions{}) {
			}
			return err
		},
		"Patch": func(ctx context.Context, c *client.Client) error {
			_, err := c.Patch(ctx, askedFor, types.MergePatchType, []byte("{}"))
			return err
		},
		"Preview": func(ctx context.Context, c *client.Client) error { _, err := c.Preview(ctx, nil, "books"); return err },
		"PreviewInV1": func(ctx context.Context, c *client.Client) error {
			_, err := c.PreviewInV1(ctx, nil, "books")
			return err
		},
		"PreviewWithout": func(ctx context.Context, c *client.Client) error {
			_, err := c.PreviewWithout(ctx, nil, "books", []schema.Key{askedFor})
			return err
		},
		"Problems": func(ctx context.Context, c *client.Client) error {
			_, err := c.Problems(ctx, client.ProblemsOptions{})
			return err
		},
		"Proxies":    func(ctx context.Context, c *client.Client) error { _, err := c.Proxies(ctx); return err },
		"ProxiesOf":  func(ctx context.Context, c *client.Client) error { _, err := c.ProxiesOf(ctx, askedFor); return err },
		"Proxy":      func(ctx context.Context, c *client.Client) error { _, err := c.Proxy(ctx, of.Node); return err },
		"Reach":      func(ctx context.Context, c *client.Client) error { _, err := c.Reach(ctx, "", "", 0); return err },
		"References": func(ctx context.Context, c *client.Client) error { _, err := c.References(ctx, askedFor); return err },
		"Revision":   func(ctx context.Context, c *client.Client) error { _, err := c.Revision(ctx); return err },
		"RevokeToken": func(ctx context.Context, c *client.Client) error {
			return c.RevokeToken(ctx, "books", "x", "id")
		},
		"Rollback": func(ctx context.Context, c *client.Client) error { _, err := c.Rollback(ctx, scope, 3); return err },
		"RollbackInSteps": func(ctx context.Context, c *client.Client) (err error) {
			for _, err = range c.RollbackInSteps(ctx, scope, 3) {
			}
			return err
		},
		"ServerVersion": func(ctx context.Context, c *client.Client) error { _, err := c.ServerVersion(ctx); return err },
		"Sockets":       func(ctx context.Context, c *client.Client) error { _, err := c.Sockets(ctx); return err },
		"Summary":       func(ctx context.Context, c *client.Client) error { _, err := c.Summary(ctx, of, "all"); return err },
		"Txn": func(ctx context.Context, c *client.Client) error {
			_, err := c.Txn(ctx, []store.Op{{Verb: store.OpUpdate, Object: obj}})
			return err
		},
		"Update": func(ctx context.Context, c *client.Client) error { _, err := c.Update(ctx, obj); return err },
		"UpdateFunc": func(ctx context.Context, c *client.Client) error {
			_, err := c.UpdateFunc(ctx, askedFor, same)
			return err
		},
		"UpdateText": func(ctx context.Context, c *client.Client) error { _, err := c.UpdateText(ctx, text); return err },
		"Watch": func(ctx context.Context, c *client.Client) error {
			w, err := c.Watch(ctx, scope, 1)
			if err == nil {
				drain(w)
				err = w.Err()
			}
			return err
		},
		"WhoAmI": func(ctx context.Context, c *client.Client) error { _, err := c.WhoAmI(ctx); return err },
	}
}

// allowed are answers that a pilot-api server may give, by method. A server without sockets
// answers an object without a member that is known.
var allowed = map[string]string{
	"AllProxies": "[]", "AllProxiesOf": "[]", "Proxies": "[]", "ProxiesOf": "[]", "Proxy": "[]",
	"RevokeToken": `{"kind":"Status","apiVersion":"v1","status":"Success"}`,
}

// TestAnswersOfAnotherServer checks that no call takes an answer that is not one of a
// pilot-api server for one that says that there is nothing: no object, no problem, no proxy.
func TestAnswersOfAnotherServer(t *testing.T) {
	all := calls(t)
	typ := reflect.TypeFor[*client.Client]()
	for i := range typ.NumMethod() {
		name := typ.Method(i).Name
		if all[name] == nil && name != "Server" && name != "Paused" && name != "Bounded" {
			t.Errorf("%s: no call in the test", name)
		}
	}
	for _, answer := range []string{
		"", "{}", "null", "[]", "[{}]", `""`, "7", "true", "<html><body>It works!</body></html>", `{"status":"ok"}`, `{"status":{}}`, `{"items":null}`,
		`{"revision":0,"problems":[]}`, `{"kind":"Status","apiVersion":"v1","status":"Success"}`,
	} {
		rec := &recorder{code: http.StatusOK, answer: answer}
		c := rec.start(t, client.Options{})
		for name, call := range all {
			rec.asked = nil
			err := call(t.Context(), c)
			if allowed[name] == answer && answer != "" || name == "Sockets" && strings.HasPrefix(answer, "{") {
				if err != nil {
					t.Errorf("%s: the answer %s is refused: %v", name, answer, err)
				}
				continue
			}
			if err == nil {
				t.Errorf("%s: no error for the answer %q", name, answer)
			}
			if len(rec.asked) == 0 || len(rec.asked) > most {
				t.Errorf("%s: %d requests", name, len(rec.asked))
			}
		}
	}
}

// TestAnswersAboutOtherObjects checks that a server cannot pass off one object as another,
// nor an object that cannot exist.
func TestAnswersAboutOtherObjects(t *testing.T) {
	all := calls(t)
	for _, tc := range []struct{ namespace, name, want string }{
		{"books", "x", ""},
		{"other", "x", "RouteRule other/x, which was not asked for"},
		{"books", "y", "RouteRule books/y, which was not asked for"},
		{"books", "", "name"},
		{"books", "a\nvs/victim", `the name "a\nvs/victim" of a RouteRule must be`},
		{"books", "$(touch x)", `the name "$(touch x)" of a RouteRule must be`},
		{"books", "--server=evil", `the name "--server=evil" of a RouteRule must be`},
		{"books", "../../x", `the name "../../x" of a RouteRule must be`},
		{"", "x", `the namespace "" must be`},
		{"../..", "x", `the namespace "../.." must be`},
	} {
		object := fmt.Sprintf(`{"apiVersion":"config.istio.io/v1alpha2","kind":"RouteRule","metadata":{"resourceVersion":"5","namespace":%q,"name":%q},"spec":{}}`,
			tc.namespace, tc.name)
		change := fmt.Sprintf(`{"kind":"RouteRule","namespace":%q,"name":%q,"revision":"5","now":%s}`, tc.namespace, tc.name, object)
		status := fmt.Sprintf(`{"status":{"results":[{"verb":"update","object":%s}]}}`, object)
		answers := map[string]string{
			"Changes": `{"items":[` + change + `]}`, "ChangesPage": `{"items":[` + change + `]}`,
			"History": `{"items":[{"revision":"5","object":` + object + `}]}`,
			"Txn":     status, "Rollback": status, "RollbackInSteps": status,
			"List": listText("", object), "ListWithStatuses": listText("", object), "Pages": listText("", object),
			"Watch": eventText("ADDED", object) + bookmark(7), "FollowStatuses": eventText("ADDED", object),
			"Create": object, "CreateText": object, "Delete": object, "Get": object, "GetWithFreshStatus": object, "GetWithStatus": object,
			"Patch": object, "Update": object, "UpdateFunc": object, "UpdateText": object,
		}
		for name, answer := range answers {
			wholeNamespace := strings.Contains("Changes ChangesPage List ListWithStatuses Pages Watch FollowStatuses Rollback RollbackInSteps", name)
			if tc.name == "y" && wholeNamespace || tc.namespace == "other" && strings.HasPrefix(name, "Rollback") {
				continue // It was asked for.
			}
			rec := &recorder{code: http.StatusOK, answer: answer}
			err := all[name](t.Context(), rec.start(t, client.Options{}))
			ended := err != nil && strings.Contains(err.Error(), "the server ended the watch")
			switch {
			case tc.want == "" && err != nil && !ended:
				t.Errorf("%s: %v", name, err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) && !(strings.HasPrefix(name, "Changes") && strings.Contains(err.Error(), "not asked for")):
				t.Errorf("%s: error %v, want one with %q", name, err, tc.want)
			}
		}
	}
}

// TestListOfOneName checks that a list that selects one name has no other.
func TestListOfOneName(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, listText("", rule("y", 5))) }))
	t.Cleanup(srv.Close)
	scope := store.Scope{Kind: routeRules(t), Namespace: "books", Name: "x"}
	_, err := connect(t, srv.URL, client.Options{}).List(t.Context(), scope, store.ListOptions{})
	if err == nil || !strings.Contains(err.Error(), "want x in namespace books") {
		t.Errorf("error %v, want one about the name", err)
	}
}
