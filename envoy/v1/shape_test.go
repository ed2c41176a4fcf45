package v1_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1 "github.com/pilot-api/pilot-api/envoy/v1"
	"github.com/pilot-api/pilot-api/internal/outside"
)

// filterConfigs are the types behind Filter.Config by filter name.
var filterConfigs = map[string]func() any{
	"http_connection_manager": func() any { return &v1.HTTPConnectionManager{} },
	"tcp_proxy":               func() any { return &v1.TCPProxy{} },
	"mongo_proxy":             func() any { return &v1.MongoProxy{} },
	"fault":                   func() any { return &v1.Fault{} },
	"cors":                    func() any { return &struct{}{} },
	"router":                  func() any { return &struct{}{} },
}

// TestPilotsShape reads every answer that Pilot gave into the types of this
// package and writes it again: no key is unknown, none is lost or added.
func TestPilotsShape(t *testing.T) {
	cases, err := filepath.Glob(filepath.Join(outside.Shared(t, "conformance", "pilot-v1", "cases"), "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range cases {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			want := expected(t, dir)
			body := answerFor(filepath.Base(dir))
			if body == nil {
				t.Skip("the list of all services is no discovery answer")
			}
			strictly(t, want, body)
			if l, ok := body.(*v1.ListenersResponse); ok {
				for i := range l.Listeners {
					typeFilters(t, l.Listeners[i].Filters)
				}
			}
			got, err := json.Marshal(body)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(generic(t, want), generic(t, got)); d != "" {
				t.Errorf("(-Pilot +ours):\n%s", d)
			}
		})
	}
}

// expected is the answer without Mixer where the two differ.
func expected(t *testing.T, dir string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "expected-nomixer.json"))
	if os.IsNotExist(err) {
		text, err = os.ReadFile(filepath.Join(dir, "expected.json"))
	}
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func answerFor(name string) any {
	if name == "sds-list-all" {
		return nil
	}
	switch name[:3] {
	case "cds":
		return &v1.ClustersResponse{}
	case "lds":
		return &v1.ListenersResponse{}
	case "rds":
		return &v1.RouteConfiguration{}
	default:
		return &v1.EndpointsResponse{}
	}
}

func typeFilters(t *testing.T, filters []v1.Filter) {
	t.Helper()
	for i, f := range filters {
		newConfig, ok := filterConfigs[f.Name]
		if !ok {
			t.Fatalf("no type for filter %s", f.Name)
		}
		text, err := json.Marshal(f.Config)
		if err != nil {
			t.Fatal(err)
		}
		filters[i].Config = newConfig()
		strictly(t, text, filters[i].Config)
		if manager, ok := filters[i].Config.(*v1.HTTPConnectionManager); ok {
			typeFilters(t, manager.Filters)
		}
	}
}

func strictly(t *testing.T, text []byte, into any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		t.Fatal(err)
	}
}

func generic(t *testing.T, text []byte) any {
	t.Helper()
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	return v
}
