package envoy_test

import (
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/envoy"
	"github.com/pilot-api/pilot-api/ir"
)

func TestClusterName(t *testing.T) {
	fits := strings.Repeat("a", 189)
	for full, want := range map[string]string{
		"out.a|http": "out.a|http",
		fits:         fits,
		fits + "a":   fits[:149] + "f077c7d36a72f6ecab2df866a57023199c6138a9",
	} {
		if got := envoy.ClusterName(full); got != want {
			t.Errorf("%d bytes: got %s, want %s", len(full), got, want)
		}
	}
}

// TestEndpointsName checks that an order is read back, whatever its labels are, and that a name
// without an order is a key.
func TestEndpointsName(t *testing.T) {
	c := &ir.Cluster{EndpointKey: "a|http|version=v1", Order: &ir.Order{Labels: []ir.LabelValue{{Name: "x", Value: "|{}"}}, Near: "r/z"}}
	name := envoy.EndpointsName(c)
	order, key := envoy.ParseEndpointsName(name)
	if !strings.HasPrefix(name, "a|") || key != c.EndpointKey || order.String() != c.Order.String() {
		t.Errorf("%s is read as %s of %q", name, order, key)
	}
	for _, name := range []string{"a|http", "a|http|{", `a|http|{"far":1}`, "", "|"} {
		if order, key := envoy.ParseEndpointsName(name); order != nil || key != name {
			t.Errorf("%s is read as %s of %q", name, order, key)
		}
	}
}
