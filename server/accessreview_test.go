package server_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	authorization "k8s.io/api/authorization/v1"
)

const reviewsPath = "/apis/authorization.k8s.io/v1/"

// TestAccessReview checks that everything possible is allowed.
func TestAccessReview(t *testing.T) {
	w := start(t)
	for _, c := range []struct {
		spec    string
		allowed bool
		reason  string
	}{
		{`"resourceAttributes":{"verb":"create","group":"config.istio.io","resource":"routerules"}`, true, "whoever"},
		{`"resourceAttributes":{"verb":"get","group":"config.istio.io","resource":"routerules","subresource":"status"}`, true, "whoever"},
		{`"resourceAttributes":{"verb":"*","group":"*","resource":"*"}`, true, "whoever"},
		{`"resourceAttributes":{"verb":"patch","group":"config.istio.io","resource":"routerules","subresource":"status"}`, false, "nobody can patch routerules/status"},
		{`"resourceAttributes":{"verb":"impersonate","group":"config.istio.io","resource":"routerules"}`, false, "nobody can impersonate"},
		{`"resourceAttributes":{"verb":"get","resource":"pods"}`, false, `no resource "pods"`},
		{`"nonResourceAttributes":{"verb":"get","path":"/healthz"}`, true, ""},
		{`"nonResourceAttributes":{"verb":"delete","path":"/healthz"}`, false, "not possible on /healthz"},
	} {
		got := w.want(http.StatusCreated, "POST", reviewsPath+"selfsubjectaccessreviews", `{"spec":{`+c.spec+`}}`, asJSON)
		var review authorization.SelfSubjectAccessReview
		if err := json.Unmarshal([]byte(got.text), &review); err != nil {
			t.Fatal(err)
		}
		if s := review.Status; s.Allowed != c.allowed || !strings.Contains(s.Reason, c.reason) || review.Kind != "SelfSubjectAccessReview" {
			t.Errorf("%s: %s", c.spec, got.text)
		}
	}
	for _, body := range []string{`{}`, `{"spec":{"nonResourceAttributes":{},"resourceAttributes":{}}}`, `{"spec":1}`, ``} {
		w.want(http.StatusBadRequest, "POST", reviewsPath+"selfsubjectaccessreviews", body, asJSON)
	}
	got := w.want(http.StatusCreated, "POST", reviewsPath+"selfsubjectrulesreviews", `{"spec":{"namespace":"default"}}`, asJSON)
	if !strings.Contains(got.text, `{"verbs":["get"],"apiGroups":["config.istio.io"],"resources":["routerules/status"]}`) {
		t.Error(got.text)
	}
}

// TestStatusIsReadOnly checks that the status of an object can be read but not
// written.
func TestStatusIsReadOnly(t *testing.T) {
	w := start(t)
	made := w.create("a")
	whole := w.want(http.StatusOK, "GET", rulesPath+"/a", "").text
	if got := w.want(http.StatusOK, "GET", rulesPath+"/a/status", ""); got.text != whole {
		t.Errorf("at /status it is %s", got.text)
	}
	w.want(http.StatusNotFound, "GET", rulesPath+"/none/status", "")
	for method, media := range map[string]string{"PUT": asJSON, "PATCH": mergePatch} {
		got := w.want(http.StatusMethodNotAllowed, method, rulesPath+"/a/status", whole, media)
		if st := got.status(t); !strings.Contains(st.Message, "computed") || got.Header.Get("Allow") != "GET, HEAD" {
			t.Errorf("%s: %s", method, st.Message)
		}
	}
	got := w.want(http.StatusOK, "PATCH", rulesPath+"/a", `{"status":{"programmed":{"proxies":7}}}`, mergePatch).object(t)
	if got.Metadata.ResourceVersion != made.Metadata.ResourceVersion {
		t.Errorf("a status was stored at %s", got.Metadata.ResourceVersion)
	}
}
