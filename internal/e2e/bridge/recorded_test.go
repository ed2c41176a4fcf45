package bridge

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/internal/selfsigned"
	"github.com/pilot-api/pilot-api/internal/v1schema"
)

// What Pilot itself answered is turned into something that Envoy takes.
func TestRecordedAnswers(t *testing.T) {
	envoy := outside.Tool(t, "envoy")
	cases, err := filepath.Glob(filepath.Join(outside.Shared(t, "conformance", "pilot-v1", "cases"), "?ds-*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range cases {
		api, _, _ := strings.Cut(filepath.Base(dir), "-")
		if filepath.Base(dir) == "sds-list-all" {
			continue // No Envoy asks for that.
		}
		t.Run(filepath.Base(dir), func(t *testing.T) {
			t.Parallel()
			body := recorded(t, dir)
			v1schema.Validate(t, api+"-response", body)
			take(t, envoy, static(t, turnAlone(t, api, body)))
		})
	}
}

// recorded is the answer of a case without Mixer, which nobody has any more.
func recorded(t *testing.T, dir string) []byte {
	t.Helper()
	body, err := os.ReadFile(filepath.Join(dir, "expected-nomixer.json"))
	if os.IsNotExist(err) {
		body, err = os.ReadFile(filepath.Join(dir, "expected.json"))
	}
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// turnAlone turns one answer among others that say nothing.
func turnAlone(t *testing.T, api string, body []byte) *Resources {
	t.Helper()
	a := &Answers{
		Clusters: []byte(`{"clusters": []}`), Listeners: []byte(`{"listeners": []}`),
		Routes: map[string][]byte{}, Hosts: map[string][]byte{},
	}
	switch api {
	case "cds":
		a.Clusters = body
		services, err := servicesOf(body)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range services {
			a.Hosts[name] = []byte(`{"hosts": []}`)
		}
	case "lds":
		dir := t.TempDir()
		selfsigned.Write(t, filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"))
		a.Listeners = bytes.ReplaceAll(body, []byte("/etc/istio/ingress-certs"), []byte(dir))
	case "rds":
		a.Routes["80"] = body
	case "sds":
		a.Clusters = []byte(`{"clusters": [{"name": "c", "type": "sds", "lb_type": "random", "connect_timeout_ms": 1}]}`)
		a.Hosts["c"] = body
	}
	r, err := Turn(a, func(string) string { return os.DevNull })
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// static is a bootstrap with all resources in it. Clusters that are named and
// not there are added, since a table that is not polled for must have them.
func static(t *testing.T, r *Resources) object {
	t.Helper()
	for name, table := range r.Routes {
		r.Listeners = append(r.Listeners, object{
			"name": name, "address": object{"socket_address": object{"address": "127.0.0.1", "port_value": 80}},
			"filter_chains": list{object{"filters": list{typed("envoy.filters.network.http_connection_manager",
				"envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager", object{
					"stat_prefix": "http", "route_config": table,
					"http_filters": list{typed("envoy.filters.http.router", "envoy.extensions.filters.http.router.v3.Router", nil)},
				})}}},
		})
	}
	clusters := r.Clusters
	for name := range named(t, r.Listeners) {
		clusters = append(clusters, object{"name": name})
	}
	return object{
		"node":             object{"cluster": "c", "id": "n"},
		"static_resources": object{"clusters": clusters, "listeners": r.Listeners},
	}
}

// named are the names of clusters, which are recognised by how they begin.
func named(t *testing.T, value any) map[string]bool {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, part := range strings.Split(string(text), `"`) {
		if strings.HasPrefix(part, "in.") || strings.HasPrefix(part, "out.") {
			names[part] = true
		}
	}
	return names
}

func take(t *testing.T, envoy string, bootstrap object) {
	t.Helper()
	text, err := json.Marshal(bootstrap)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := outside.Validate(t.Context(), envoy, "", text); err != nil {
		t.Errorf("Envoy refuses what was turned: %v\n%s", err, text)
	}
}
