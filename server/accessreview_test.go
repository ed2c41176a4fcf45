package server_test

import (
	"github.com/pilot-api/pilot-api/server/servertest"

	"encoding/json"
	"net/http"
	"strings"
	"testing"

	authorization "k8s.io/api/authorization/v1"
)

const reviewsPath = "/apis/authorization.k8s.io/v1/"

// TestAccessReview checks that everything possible is allowed.
func TestAccessReview(t *testing.T) {
	w := servertest.Start(t)
	for _, c := range []struct {
		spec    string
		allowed bool
		reason  string
	}{
		{`"resourceAttributes":{"verb":"create","group":"config.istio.io","resource":"routerules"}`, true, "everybody"},
		{`"resourceAttributes":{"verb":"get","group":"config.istio.io","resource":"routerules","subresource":"status"}`, true, "everybody"},
		{`"resourceAttributes":{"verb":"*","group":"*","resource":"*"}`, true, "everybody"},
		{`"resourceAttributes":{"verb":"patch","group":"config.istio.io","resource":"routerules","subresource":"status"}`, false, "nobody can patch routerules/status"},
		{`"resourceAttributes":{"verb":"impersonate","group":"config.istio.io","resource":"routerules"}`, false, "nobody can impersonate"},
		{`"resourceAttributes":{"verb":"get","resource":"pods"}`, false, `no resource "pods"`},
		{`"nonResourceAttributes":{"verb":"get","path":"/healthz"}`, true, ""},
		{`"nonResourceAttributes":{"verb":"delete","path":"/healthz"}`, false, "not possible on /healthz"},
	} {
		got := w.Want(http.StatusCreated, "POST", reviewsPath+"selfsubjectaccessreviews", `{"spec":{`+c.spec+`}}`, servertest.AsJSON)
		var review authorization.SelfSubjectAccessReview
		if err := json.Unmarshal([]byte(got.Text), &review); err != nil {
			t.Fatal(err)
		}
		if s := review.Status; s.Allowed != c.allowed || !strings.Contains(s.Reason, c.reason) || review.Kind != "SelfSubjectAccessReview" {
			t.Errorf("%s: %s", c.spec, got.Text)
		}
	}
	for _, body := range []string{`{}`, `{"spec":{"nonResourceAttributes":{},"resourceAttributes":{}}}`, `{"spec":1}`, ``} {
		w.Want(http.StatusBadRequest, "POST", reviewsPath+"selfsubjectaccessreviews", body, servertest.AsJSON)
	}
	got := w.Want(http.StatusCreated, "POST", reviewsPath+"selfsubjectrulesreviews", `{"spec":{"namespace":"default"}}`, servertest.AsJSON)
	if !strings.Contains(got.Text, `{"verbs":["get"],"apiGroups":["config.istio.io"],"resources":["routerules/status"]}`) {
		t.Error(got.Text)
	}
}

// TestStatusIsReadOnly checks that the status of an object can be read but not
// written.
func TestStatusIsReadOnly(t *testing.T) {
	w := servertest.Start(t)
	made := w.Create("a")
	whole := w.Want(http.StatusOK, "GET", servertest.RulesPath+"/a", "").Text
	if got := w.Want(http.StatusOK, "GET", servertest.RulesPath+"/a/status", ""); got.Text != whole {
		t.Errorf("at /status it is %s", got.Text)
	}
	w.Want(http.StatusNotFound, "GET", servertest.RulesPath+"/none/status", "")
	for method, media := range map[string]string{"PUT": servertest.AsJSON, "PATCH": servertest.MergePatch} {
		got := w.Want(http.StatusMethodNotAllowed, method, servertest.RulesPath+"/a/status", whole, media)
		if st := got.Failure(t); !strings.Contains(st.Message, "computed") || got.Header.Get("Allow") != "GET, HEAD" {
			t.Errorf("%s: %s", method, st.Message)
		}
	}
	got := w.Want(http.StatusOK, "PATCH", servertest.RulesPath+"/a", `{"status":{"programmed":{"proxies":7}}}`, servertest.MergePatch).Object(t)
	if got.Metadata.ResourceVersion != made.Metadata.ResourceVersion {
		t.Errorf("a status was stored at %s", got.Metadata.ResourceVersion)
	}
}
