package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"
)

const (
	rulesPath    = "/apis/config.istio.io/v1alpha2/namespaces/default/routerules"
	servicesPath = "/apis/networking.istio.io/v1/namespaces/default/serviceentries"
)

// object is what these tests see of any config object.
type object struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec json.RawMessage `json:"spec"`
}

// rule returns the i-th of many rules, no two alike. The members of its spec
// stand in the order in which they are stored.
func rule(i int) object {
	o := object{APIVersion: "config.istio.io/v1alpha2", Kind: "RouteRule"}
	o.Metadata.Name = fmt.Sprintf("rule-%04d", i)
	o.Spec = fmt.Appendf(nil, `{"destination":{"name":"service-%d"},"httpReqTimeout":{"simpleTimeout":{"timeout":"%ds"}},"precedence":%d}`, i, i+1, i)
	return o
}

// create posts the object and returns the status and the body of the answer;
// the error is of a request that got none.
func create(ctx context.Context, url string, o object) (int, []byte, error) {
	text, err := json.Marshal(o)
	if err != nil {
		return 0, nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(text))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp.StatusCode, body, err
}

// rules returns the specs of all stored rules by name.
func rules(t *testing.T, p *Pilot) map[string]string {
	t.Helper()
	body, err := fetch(t.Context(), p.URL+rulesPath)
	if err != nil {
		t.Fatal(err)
	}
	var list struct{ Items []object }
	if err := json.Unmarshal(body, &list); err != nil {
		t.Fatal(err)
	}
	specs := map[string]string{}
	for _, o := range list.Items {
		specs[o.Metadata.Name] = string(o.Spec)
	}
	return specs
}
