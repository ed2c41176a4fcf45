package server_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/server"
)

// TestBadBodies sends what must not be stored and checks the answer.
func TestBadBodies(t *testing.T) {
	good := rule("reviews", 100)
	for _, c := range []struct {
		name, path, body, media string
		code                    int
		says                    string
	}{
		{"malformed YAML", rulesPath, "kind: [RouteRule\nmetadata: {", asYAML, 400, "line"},
		{"malformed YAML on line 3", rulesPath, "kind: RouteRule\nmetadata:\n  name: a: b\nspec: {}\n", asYAML, 400, "line 3, column 10: not valid YAML"},
		{"malformed JSON", rulesPath, `{"kind":"RouteRule",}`, asJSON, 400, "line 1, column"},
		{"YAML sent as JSON", rulesPath, good, asJSON, 400, "application/yaml"},
		{"empty", rulesPath, "", asYAML, 400, "empty"},
		{"two documents", rulesPath, good + "---\n" + good, asYAML, 400, "2"},
		{"deep YAML", rulesPath, "a: " + strings.Repeat("[", 5000) + strings.Repeat("]", 5000), asYAML, 400, "deep"},
		{"deep JSON", rulesPath, strings.Repeat(`{"a":`, 5000) + "1" + strings.Repeat("}", 5000), asJSON, 400, "deep"},
		{"unknown field", rulesPath, strings.Replace(good, "weight: 100", "wieght: 100", 1), asYAML, 422, "spec.route[0].wieght"},
		{"wrong type", rulesPath, strings.Replace(good, "weight: 100", `weight: "100"`, 1), asYAML, 422, "spec.route[0].weight"},
		{"bad sum", rulesPath, strings.Replace(good, "weight: 100", "weight: 99", 1), asYAML, 422, "weight"},
		{"bad name", rulesPath, strings.Replace(good, "name: reviews", "name: Reviews_1", 1), asYAML, 422, "metadata.name"},
		{"unknown kind", rulesPath, strings.Replace(good, "kind: RouteRule", "kind: RouteRuel", 1), asYAML, 422, "RouteRule"},
		{"unknown version", rulesPath, strings.Replace(good, "v1alpha2", "v1beta1", 1), asYAML, 422, "config.istio.io/v1alpha2"},
		{"version given on create", rulesPath, rule("reviews", 100, `resourceVersion: "5"`), asYAML, 422, "metadata.resourceVersion"},
		{"kind of another URL", strings.Replace(rulesPath, "routerules", "egressrules", 1), good, asYAML, 400, `the URL says "EgressRule", the body says "RouteRule"`},
		{"namespace of another URL", rulesPath, rule("reviews", 100, "namespace: other"), asYAML, 400, `the URL says "default", the body says "other"`},
		{"another format", rulesPath, good, "Content-Type: application/vnd.kubernetes.protobuf", 415, "application/yaml"},
		{"curl's default", rulesPath, good, "Content-Type: application/x-www-form-urlencoded", 415, "application/yaml"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := start(t)
			st := w.want(c.code, "POST", c.path, c.body, c.media).status(t)
			if !strings.Contains(fmt.Sprint(st.Message, st.Details), c.says) {
				t.Errorf("no %q in %q %v", c.says, st.Message, st.Details)
			}
			if rev, _ := w.store.Revision(t.Context()); rev != 1 {
				t.Error("something was stored")
			}
		})
	}
}

func TestNameOfAnotherURL(t *testing.T) {
	w := start(t)
	w.create("reviews")
	st := w.want(http.StatusBadRequest, "PUT", rulesPath+"/reviews", rule("ratings", 100), asYAML).status(t)
	if want := `metadata.name: the URL says "reviews", the body says "ratings"`; !strings.Contains(st.Message, want) {
		t.Errorf("got %q, want it to say %s", st.Message, want)
	}
}

// TestCauses checks that a program can read each wrong field separately.
func TestCauses(t *testing.T) {
	body := strings.Replace(rule("reviews", 100), "weight: 100", "weight: 101\n    lables: {}", 1)
	st := start(t).want(http.StatusUnprocessableEntity, "POST", rulesPath, body, asYAML).status(t)
	fields := map[string]metav1.CauseType{}
	for _, c := range st.Details.Causes {
		fields[c.Field] = c.Type
	}
	if st.Reason != metav1.StatusReasonInvalid || fields["spec.route[0].lables"] == "" || fields["spec.route[0].weight"] == "" {
		t.Errorf("reason %s, causes %v", st.Reason, st.Details.Causes)
	}
}

// TestWarning checks that the answer to a write warns of what is stored but not
// honoured.
func TestWarning(t *testing.T) {
	body := strings.Replace(rule("reviews", 100), "v1alpha2", "v1alpha1", 1)
	got := start(t).want(http.StatusCreated, "POST", rulesPath, body, asYAML)
	if h := got.Header.Get("Warning"); !strings.HasPrefix(h, `299 - "`) || !strings.Contains(h, "v1alpha2") {
		t.Errorf("Warning: %q", h)
	}
}

// TestHugeBody sends five megabytes and must be answered before the server has read
// all of them.
func TestHugeBody(t *testing.T) {
	w := start(t)
	const size = 5 << 20
	t.Run("announced", func(t *testing.T) {
		st := w.want(http.StatusRequestEntityTooLarge, "POST", rulesPath, strings.Repeat("#", size), asYAML).status(t)
		if !strings.Contains(st.Message, strconv.Itoa(schema.MaxTextBytes)) {
			t.Errorf("the limit is not named: %s", st.Message)
		}
	})
	t.Run("chunked", func(t *testing.T) {
		conn, err := net.Dial("tcp", strings.TrimPrefix(w.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/yaml\r\nTransfer-Encoding: chunked\r\n\r\n", rulesPath)
		chunk := strings.Repeat("#", 1<<20)
		for range 2 { // The end of the body never comes.
			fmt.Fprintf(conn, "%x\r\n%s\r\n", len(chunk), chunk)
		}
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil || resp.StatusCode != http.StatusRequestEntityTooLarge {
			t.Fatalf("got %v, %v, want 413", resp, err)
		}
	})
}

func TestBadQueries(t *testing.T) {
	w := start(t)
	created := w.create("reviews")
	object := rulesPath + "/reviews"
	for _, c := range []struct {
		method, path string
		code         int
		says         string
	}{
		{"GET", rulesPath + "?labelselector=a%3Db", 400, "labelSelector"},
		{"GET", rulesPath + "?labelSelector=a%3D%3D%3Db", 400, "labelSelector"},
		{"GET", rulesPath + "?fieldSelector=spec.precedence%3D1", 400, "metadata.name"},
		{"GET", rulesPath + "?labelSelector=a&labelSelector=b", 400, "2 times"},
		{"GET", rulesPath + "?resourceVersion=abc", 400, "resourceVersion"},
		{"GET", rulesPath + "?resourceVersion=-5", 400, "resourceVersion"},
		{"GET", rulesPath + "?resourceVersionMatch=Exact", 400, "together with resourceVersion"},
		{"GET", rulesPath + "?resourceVersionMatch=Exact&resourceVersion=0", 400, "other than 0"},
		{"GET", rulesPath + "?resourceVersionMatch=Newest&resourceVersion=1", 400, "NotOlderThan"},
		{"GET", rulesPath + "?resourceVersionMatch=Exact&resourceVersion=999", 504, "999"},
		{"GET", object + "?timeout=50ms&resourceVersion=999", 504, "999"},
		{"GET", rulesPath + "?labelSelector=!a" + strings.Repeat(",!a", 99), 200, ""},
		{"GET", rulesPath + "?labelSelector=!a" + strings.Repeat(",!a", 100), 400, "at most 100"},
		{"GET", rulesPath + "?watch=true&labelSelector=!a&fieldSelector=metadata.name!%3Da" + strings.Repeat(",metadata.name!%3Da", 99), 400, "found 101"},
		{"GET", rulesPath + "?limit=many", 400, "limit"},
		{"GET", rulesPath + "?continue=abc", 400, "continue"},
		{"GET", rulesPath + "?timeout=soon", 400, "30s"},
		{"GET", rulesPath + "?watch=perhaps", 400, "true or false"},
		{"GET", object + "?watch=true", 400, "resourceVersion"},
		{"GET", object + "?includeObject=Some", 200, ""},
		{"POST", rulesPath + "?dryRun=Some", 400, "All"},
		{"POST", rulesPath + "?fieldValidation=Lax", 400, "Strict"},
		{"PUT", object + "?force=true", 400, "fieldManager"},
		{"DELETE", object + "?labelSelector=a", 400, "dryRun"},
		{"GET", rulesPath + "?watch=true&timeoutSeconds=x", 400, "timeoutSeconds"},
		{"GET", rulesPath + "?watch=true&allowWatchBookmarks=y", 400, "allowWatchBookmarks"},
		{"GET", rulesPath + "?watch=true&sendInitialEvents=true", 422, "NotOlderThan"},
		{"GET", rulesPath + "?watch=true&sendInitialEvents=false&resourceVersionMatch=Exact", 422, "NotOlderThan"},
		{"GET", rulesPath + "?watch=true&sendInitialEvents=yes&resourceVersionMatch=NotOlderThan", 400, "true or false"},
		{"GET", rulesPath + "?watch=true&resourceVersionMatch=NotOlderThan&resourceVersion=1", 422, "sendInitialEvents"},
		{"GET", rulesPath + "?sendInitialEvents=true&resourceVersionMatch=NotOlderThan", 422, "watch=true"},
		{"GET", rulesPath + "?watch=true&resourceVersion=999", 504, "999"},
	} {
		got := w.want(c.code, c.method, c.path, rule("reviews", 50), asYAML)
		if !strings.Contains(got.text, c.says) {
			t.Errorf("%s %s: no %q in %s", c.method, c.path, c.says, got.text)
		}
	}
	if rev, _ := w.store.Revision(t.Context()); rev != mustRevision(t, created) {
		t.Error("something was written")
	}
}

func TestUnknownPathsAndMethods(t *testing.T) {
	w := start(t)
	for _, path := range []string{"/nope", "/apis/nope", "/apis/config.istio.io/v9", allRules + "/x", "/openapi/v3/apis/a/b", "/apis/config.istio.io/v1alpha2/namespaces/default/nopes"} {
		if st := w.want(http.StatusNotFound, "GET", path, "").status(t); !strings.Contains(st.Message, path) {
			t.Errorf("%s: %s", path, st.Message)
		}
	}
	for path, allow := range map[string]string{
		allRules:               "GET, HEAD",
		rulesPath:              "GET, HEAD, POST, DELETE",
		rulesPath + "/reviews": "GET, HEAD, PUT, PATCH, DELETE",
		"/healthz":             "GET, HEAD",
	} {
		got := w.want(http.StatusMethodNotAllowed, "OPTIONS", path, "")
		if got.Header.Get("Allow") != allow || got.status(t).Reason != metav1.StatusReasonMethodNotAllowed {
			t.Errorf("%s: Allow %q, want %q", path, got.Header.Get("Allow"), allow)
		}
	}
	// A needlessly escaped name is the same name.
	w.create("reviews")
	w.want(http.StatusOK, "GET", rulesPath+"/revi%65ws", "")
	w.want(http.StatusNotFound, "GET", rulesPath+"/a%2Fb", "")
}

// TestSlowHead checks that a client cannot hold a connection forever with half a
// request. It needs the real Serve.
func TestSlowHead(t *testing.T) {
	_, addr, _ := serve(t, func(o *server.Options) { o.RequestTimeout = 50 * time.Millisecond })
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "GET / HTTP/1.1\r\nHo")
	if err := conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(conn); err != nil {
		t.Errorf("the connection was not closed: %v", err)
	}
}
