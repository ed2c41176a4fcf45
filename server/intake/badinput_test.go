package intake_test

import (
	"github.com/pilot-api/pilot-api/server/servertest"

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
	good := servertest.Rule("reviews", 100)
	for _, c := range []struct {
		name, path, body, media string
		code                    int
		says                    string
	}{
		{"malformed YAML", servertest.RulesPath, "kind: [RouteRule\nmetadata: {", servertest.AsYAML, 400, "line"},
		{"malformed YAML on line 3", servertest.RulesPath, "kind: RouteRule\nmetadata:\n  name: a: b\nspec: {}\n", servertest.AsYAML, 400, "line 3, column 10: not valid YAML"},
		{"malformed JSON", servertest.RulesPath, `{"kind":"RouteRule",}`, servertest.AsJSON, 400, "line 1, column"},
		{"YAML sent as JSON", servertest.RulesPath, good, servertest.AsJSON, 400, "application/yaml"},
		{"empty", servertest.RulesPath, "", servertest.AsYAML, 400, "empty"},
		{"two documents", servertest.RulesPath, good + "---\n" + good, servertest.AsYAML, 400, "2"},
		{"deep YAML", servertest.RulesPath, "a: " + strings.Repeat("[", 5000) + strings.Repeat("]", 5000), servertest.AsYAML, 400, "deep"},
		{"deep JSON", servertest.RulesPath, strings.Repeat(`{"a":`, 5000) + "1" + strings.Repeat("}", 5000), servertest.AsJSON, 400, "deep"},
		{"unknown field", servertest.RulesPath, strings.Replace(good, "weight: 100", "wieght: 100", 1), servertest.AsYAML, 422, "spec.route[0].wieght"},
		{"wrong type", servertest.RulesPath, strings.Replace(good, "weight: 100", `weight: "100"`, 1), servertest.AsYAML, 422, "spec.route[0].weight"},
		{"bad sum", servertest.RulesPath, strings.Replace(good, "weight: 100", "weight: 99", 1), servertest.AsYAML, 422, "weight"},
		{"bad name", servertest.RulesPath, strings.Replace(good, "name: reviews", "name: Reviews_1", 1), servertest.AsYAML, 422, "metadata.name"},
		{"unknown kind", servertest.RulesPath, strings.Replace(good, "kind: RouteRule", "kind: RouteRuel", 1), servertest.AsYAML, 422, "RouteRule"},
		{"unknown version", servertest.RulesPath, strings.Replace(good, "v1alpha2", "v1beta1", 1), servertest.AsYAML, 422, "config.istio.io/v1alpha2"},
		{"version given on create", servertest.RulesPath, servertest.Rule("reviews", 100, `resourceVersion: "5"`), servertest.AsYAML, 422, "metadata.resourceVersion"},
		{"kind of another URL", strings.Replace(servertest.RulesPath, "routerules", "egressrules", 1), good, servertest.AsYAML, 400, `the URL says "EgressRule", the body says "RouteRule"`},
		{"namespace of another URL", servertest.RulesPath, servertest.Rule("reviews", 100, "namespace: other"), servertest.AsYAML, 400, `the URL says "default", the body says "other"`},
		{"another format", servertest.RulesPath, good, "Content-Type: application/vnd.kubernetes.protobuf", 415, "application/yaml"},
		{"curl's default", servertest.RulesPath, good, "Content-Type: application/x-www-form-urlencoded", 415, "application/yaml"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := servertest.Start(t)
			st := w.Want(c.code, "POST", c.path, c.body, c.media).Failure(t)
			if !strings.Contains(fmt.Sprint(st.Message, st.Details), c.says) {
				t.Errorf("no %q in %q %v", c.says, st.Message, st.Details)
			}
			if rev, _ := w.Store.Revision(t.Context()); rev != 1 {
				t.Error("something was stored")
			}
		})
	}
}

func TestNameOfAnotherURL(t *testing.T) {
	w := servertest.Start(t)
	w.Create("reviews")
	st := w.Want(http.StatusBadRequest, "PUT", servertest.RulesPath+"/reviews", servertest.Rule("ratings", 100), servertest.AsYAML).Failure(t)
	if want := `metadata.name: the URL says "reviews", the body says "ratings"`; !strings.Contains(st.Message, want) {
		t.Errorf("got %q, want it to say %s", st.Message, want)
	}
}

// TestCauses checks that a program can read each wrong field separately.
func TestCauses(t *testing.T) {
	body := strings.Replace(servertest.Rule("reviews", 100), "weight: 100", "weight: 101\n    lables: {}", 1)
	st := servertest.Start(t).Want(http.StatusUnprocessableEntity, "POST", servertest.RulesPath, body, servertest.AsYAML).Failure(t)
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
	body := strings.Replace(servertest.Rule("reviews", 100), "v1alpha2", "v1alpha1", 1)
	got := servertest.Start(t).Want(http.StatusCreated, "POST", servertest.RulesPath, body, servertest.AsYAML)
	if h := got.Header.Get("Warning"); !strings.HasPrefix(h, `299 - "`) || !strings.Contains(h, "v1alpha2") {
		t.Errorf("Warning: %q", h)
	}
}

// TestHugeBody sends five megabytes and must be answered before the server has read
// all of them.
func TestHugeBody(t *testing.T) {
	w := servertest.Start(t)
	const size = 5 << 20
	t.Run("announced", func(t *testing.T) {
		st := w.Want(http.StatusRequestEntityTooLarge, "POST", servertest.RulesPath, strings.Repeat("#", size), servertest.AsYAML).Failure(t)
		if !strings.Contains(st.Message, strconv.Itoa(schema.MaxTextBytes)) {
			t.Errorf("the limit is not named: %s", st.Message)
		}
	})
	t.Run("chunked", func(t *testing.T) {
		conn, err := net.Dial("tcp", strings.TrimPrefix(w.URL, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/yaml\r\nTransfer-Encoding: chunked\r\n\r\n", servertest.RulesPath)
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
	w := servertest.Start(t)
	created := w.Create("reviews")
	object := servertest.RulesPath + "/reviews"
	for _, c := range []struct {
		method, path string
		code         int
		says         string
	}{
		{"GET", servertest.RulesPath + "?labelselector=a%3Db", 400, "labelSelector"},
		{"GET", servertest.RulesPath + "?labelSelector=a%3D%3D%3Db", 400, "labelSelector"},
		{"GET", servertest.RulesPath + "?fieldSelector=spec.precedence%3D1", 400, "metadata.name"},
		{"GET", servertest.RulesPath + "?labelSelector=a&labelSelector=b", 400, "2 times"},
		{"GET", servertest.RulesPath + "?resourceVersion=abc", 400, "resourceVersion"},
		{"GET", servertest.RulesPath + "?resourceVersion=-5", 400, "resourceVersion"},
		{"GET", servertest.RulesPath + "?resourceVersionMatch=Exact", 400, "together with resourceVersion"},
		{"GET", servertest.RulesPath + "?resourceVersionMatch=Exact&resourceVersion=0", 400, "other than 0"},
		{"GET", servertest.RulesPath + "?resourceVersionMatch=Newest&resourceVersion=1", 400, "NotOlderThan"},
		{"GET", servertest.RulesPath + "?resourceVersionMatch=Exact&resourceVersion=999", 504, "999"},
		{"GET", object + "?timeout=50ms&resourceVersion=999", 504, "999"},
		{"GET", servertest.RulesPath + "?labelSelector=!a" + strings.Repeat(",!a", 99), 200, ""},
		{"GET", servertest.RulesPath + "?labelSelector=!a" + strings.Repeat(",!a", 100), 400, "at most 100"},
		{"GET", servertest.RulesPath + "?watch=true&labelSelector=!a&fieldSelector=metadata.name!%3Da" + strings.Repeat(",metadata.name!%3Da", 99), 400, "found 101"},
		{"GET", servertest.RulesPath + "?limit=many", 400, "limit"},
		{"GET", servertest.RulesPath + "?continue=abc", 400, "continue"},
		{"GET", servertest.RulesPath + "?timeout=soon", 400, "30s"},
		{"GET", servertest.RulesPath + "?watch=perhaps", 400, "true or false"},
		{"GET", object + "?watch=true", 400, "resourceVersion"},
		{"GET", object + "?includeObject=Some", 200, ""},
		{"POST", servertest.RulesPath + "?dryRun=Some", 400, "All"},
		{"POST", servertest.RulesPath + "?fieldValidation=Lax", 400, "Strict"},
		{"PUT", object + "?force=true", 400, "fieldManager"},
		{"DELETE", object + "?labelSelector=a", 400, "dryRun"},
		{"GET", servertest.RulesPath + "?watch=true&timeoutSeconds=x", 400, "timeoutSeconds"},
		{"GET", servertest.RulesPath + "?watch=true&allowWatchBookmarks=y", 400, "allowWatchBookmarks"},
		{"GET", servertest.RulesPath + "?watch=true&sendInitialEvents=true", 422, "NotOlderThan"},
		{"GET", servertest.RulesPath + "?watch=true&sendInitialEvents=false&resourceVersionMatch=Exact", 422, "NotOlderThan"},
		{"GET", servertest.RulesPath + "?watch=true&sendInitialEvents=yes&resourceVersionMatch=NotOlderThan", 400, "true or false"},
		{"GET", servertest.RulesPath + "?watch=true&resourceVersionMatch=NotOlderThan&resourceVersion=1", 422, "sendInitialEvents"},
		{"GET", servertest.RulesPath + "?sendInitialEvents=true&resourceVersionMatch=NotOlderThan", 422, "watch=true"},
		{"GET", servertest.RulesPath + "?watch=true&resourceVersion=999", 504, "999"},
	} {
		got := w.Want(c.code, c.method, c.path, servertest.Rule("reviews", 50), servertest.AsYAML)
		if !strings.Contains(got.Text, c.says) {
			t.Errorf("%s %s: no %q in %s", c.method, c.path, c.says, got.Text)
		}
	}
	if rev, _ := w.Store.Revision(t.Context()); rev != servertest.MustRevision(t, created) {
		t.Error("something was written")
	}
}

func TestUnknownPathsAndMethods(t *testing.T) {
	w := servertest.Start(t)
	for _, path := range []string{"/nope", "/apis/nope", "/apis/config.istio.io/v9", servertest.AllRules + "/x", "/openapi/v3/apis/a/b", "/apis/config.istio.io/v1alpha2/namespaces/default/nopes"} {
		if st := w.Want(http.StatusNotFound, "GET", path, "").Failure(t); !strings.Contains(st.Message, path) {
			t.Errorf("%s: %s", path, st.Message)
		}
	}
	for path, allow := range map[string]string{
		servertest.AllRules:               "GET, HEAD",
		servertest.RulesPath:              "GET, HEAD, POST, DELETE",
		servertest.RulesPath + "/reviews": "GET, HEAD, PUT, PATCH, DELETE",
		"/healthz":                        "GET, HEAD",
	} {
		got := w.Want(http.StatusMethodNotAllowed, "OPTIONS", path, "")
		if got.Header.Get("Allow") != allow || got.Failure(t).Reason != metav1.StatusReasonMethodNotAllowed {
			t.Errorf("%s: Allow %q, want %q", path, got.Header.Get("Allow"), allow)
		}
	}
	// A needlessly escaped name is the same name.
	w.Create("reviews")
	w.Want(http.StatusOK, "GET", servertest.RulesPath+"/revi%65ws", "")
	w.Want(http.StatusNotFound, "GET", servertest.RulesPath+"/a%2Fb", "")
}

// TestSlowHead checks that a client cannot hold a connection forever with half a
// request. It needs the real Serve.
func TestSlowHead(t *testing.T) {
	_, addr, _ := servertest.Serve(t, func(o *server.Options) { o.RequestTimeout = 50 * time.Millisecond })
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
