package envoy_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"

	v1 "github.com/pilot-api/pilot-api/envoy/v1"
	v3 "github.com/pilot-api/pilot-api/envoy/v3"
	"github.com/pilot-api/pilot-api/internal/v1schema"
	"github.com/pilot-api/pilot-api/ir"
)

func TestEndpoints(t *testing.T) {
	for _, tc := range []struct {
		name           string
		endpoints      []ir.Endpoint
		wantV1, wantV3 string
	}{
		{"none", nil, `{"hosts": []}`, `{"clusterName": "a|http"}`},
		{
			"regions and weights",
			[]ir.Endpoint{
				{Host: "10.0.0.2", Port: 80, Zone: "z2", Weight: 200},
				{Host: "10.0.0.1", Port: 80},
				{Host: "10.0.0.3", Port: 81, Zone: "z1", Weight: 1},
				{Host: "10.0.0.4", Port: 80, Zone: "z2"},
			},
			`{"hosts": [
				{"ip_address": "10.0.0.2", "port": 80, "tags": {"az": "z2", "load_balancing_weight": 100}},
				{"ip_address": "10.0.0.1", "port": 80},
				{"ip_address": "10.0.0.3", "port": 81, "tags": {"az": "z1", "load_balancing_weight": 1}},
				{"ip_address": "10.0.0.4", "port": 80, "tags": {"az": "z2"}}]}`,
			`{"clusterName": "a|http", "endpoints": [
				{"lbEndpoints": [
					{"endpoint": {"address": {"socketAddress": {"address": "10.0.0.1", "portValue": 80}}}}]},
				{"locality": {"region": "z1"}, "lbEndpoints": [
					{"endpoint": {"address": {"socketAddress": {"address": "10.0.0.3", "portValue": 81}}}, "loadBalancingWeight": 1}]},
				{"locality": {"region": "z2"}, "lbEndpoints": [
					{"endpoint": {"address": {"socketAddress": {"address": "10.0.0.2", "portValue": 80}}}, "loadBalancingWeight": 200},
					{"endpoint": {"address": {"socketAddress": {"address": "10.0.0.4", "portValue": 80}}}}]}]}`,
		},
		{
			"weights beyond 100",
			[]ir.Endpoint{
				{Host: "10.0.0.1", Port: 80, Weight: 4000}, {Host: "10.0.0.2", Port: 80, Weight: 1000},
				{Host: "10.0.0.3", Port: 80, Weight: 1}, {Host: "10.0.0.4", Port: 80},
			},
			`{"hosts": [
				{"ip_address": "10.0.0.1", "port": 80, "tags": {"load_balancing_weight": 100}},
				{"ip_address": "10.0.0.2", "port": 80, "tags": {"load_balancing_weight": 25}},
				{"ip_address": "10.0.0.3", "port": 80, "tags": {"load_balancing_weight": 1}},
				{"ip_address": "10.0.0.4", "port": 80}]}`,
			`{"clusterName": "a|http", "endpoints": [{"lbEndpoints": [
				{"endpoint": {"address": {"socketAddress": {"address": "10.0.0.1", "portValue": 80}}}, "loadBalancingWeight": 4000},
				{"endpoint": {"address": {"socketAddress": {"address": "10.0.0.2", "portValue": 80}}}, "loadBalancingWeight": 1000},
				{"endpoint": {"address": {"socketAddress": {"address": "10.0.0.3", "portValue": 80}}}, "loadBalancingWeight": 1},
				{"endpoint": {"address": {"socketAddress": {"address": "10.0.0.4", "portValue": 80}}}}]}]}`,
		},
		{
			"localities",
			[]ir.Endpoint{
				{Host: "10.0.0.2", Port: 80, Zone: "r/z/s"}, {Host: "10.0.0.1", Port: 80, Zone: "r/z"}, {Host: "10.0.0.3", Port: 80, Zone: "r/z/s"},
			},
			`{"hosts": [
				{"ip_address": "10.0.0.2", "port": 80, "tags": {"az": "r/z/s"}},
				{"ip_address": "10.0.0.1", "port": 80, "tags": {"az": "r/z"}},
				{"ip_address": "10.0.0.3", "port": 80, "tags": {"az": "r/z/s"}}]}`,
			`{"clusterName": "a|http", "endpoints": [
				{"locality": {"region": "r", "zone": "z"}, "lbEndpoints": [
					{"endpoint": {"address": {"socketAddress": {"address": "10.0.0.1", "portValue": 80}}}}]},
				{"locality": {"region": "r", "zone": "z", "subZone": "s"}, "lbEndpoints": [
					{"endpoint": {"address": {"socketAddress": {"address": "10.0.0.2", "portValue": 80}}}},
					{"endpoint": {"address": {"socketAddress": {"address": "10.0.0.3", "portValue": 80}}}}]}]}`,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			text, err := json.Marshal(v1.Endpoints(tc.endpoints))
			if err != nil {
				t.Fatal(err)
			}
			v1schema.Validate(t, "sds-response", text)
			sameJSON(t, "v1", tc.wantV1, text)
			assignment := v3.Endpoints("a|http", tc.endpoints)
			if err := validateDeeply(assignment); err != nil {
				t.Error(err)
			}
			if text, err = protojson.Marshal(assignment); err != nil {
				t.Fatal(err)
			}
			sameJSON(t, "v3", tc.wantV3, text)
		})
	}
}

func sameJSON(t *testing.T, what, want string, got []byte) {
	t.Helper()
	var w, g any
	if err := json.Unmarshal([]byte(want), &w); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(got, &g); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(w, g); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}
