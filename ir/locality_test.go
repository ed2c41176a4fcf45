package ir_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pilot-api/pilot-api/ir"
)

// arranged are endpoints as an order has them: priority and share of each, by
// their hosts.
func arranged(o *ir.Order, endpoints ...ir.Endpoint) map[string]string {
	out := map[string]string{}
	for _, e := range o.Arranged(endpoints) {
		out[e.Host] = fmt.Sprintf("%d/%d", e.Priority, e.Share)
	}
	return out
}

var spread = []ir.Endpoint{
	{Host: "same", Zone: "r/z/s"}, {Host: "zone", Zone: "r/z/t", Labels: map[string]string{"lane": "fast"}},
	{Host: "region", Zone: "r/y", Weight: 3}, {Host: "next", Zone: "q/z/s"}, {Host: "other", Zone: "p"}, {Host: "nowhere"},
}

func TestOrder(t *testing.T) {
	fast := map[string]string{"lane": "fast"}
	closer := &ir.Localities{Closer: true, Takeover: []ir.Takeover{{From: "x", To: "y"}, {From: "r", To: "q"}}}
	divided := &ir.Localities{Distribute: []ir.Distribution{{From: "q/*", To: map[string]int{"p": 100}}, {From: "r", To: map[string]int{"r/*": 60, "q": 40}}}}
	for _, test := range []struct {
		name   string
		of     *ir.Localities
		place  string
		labels map[string]string
		want   map[string]string // nil for no order
	}{
		{"closer", closer, "r/z/s", nil, map[string]string{"same": "0/0", "zone": "1/0", "region": "2/0", "next": "3/0", "other": "4/0", "nowhere": "4/0"}},
		{"no takeover", &ir.Localities{Closer: true}, "r/z/s", nil,
			map[string]string{"same": "0/0", "zone": "1/0", "region": "2/0", "next": "3/0", "other": "3/0", "nowhere": "3/0"}},
		{"nobody near", closer, "o/z/s", nil, map[string]string{"same": "0/0", "zone": "0/0", "region": "0/0", "next": "0/0", "other": "0/0", "nowhere": "0/0"}},
		{"nobody knows where", closer, "", nil, nil},
		{"labels", &ir.Localities{Labels: []string{"topology.kubernetes.io/region", "lane"}}, "r/z/s", fast,
			map[string]string{"same": "1/0", "zone": "0/0", "region": "1/0", "next": "2/0", "other": "2/0", "nowhere": "2/0"}},
		{"a label for all callers", &ir.Localities{Labels: []string{"lane=fast"}}, "", nil,
			map[string]string{"same": "1/0", "zone": "0/0", "region": "1/0", "next": "1/0", "other": "1/0", "nowhere": "1/0"}},
		{"labels before places", &ir.Localities{Labels: []string{"lane"}, Closer: true}, "r/z/s", fast,
			map[string]string{"same": "1/0", "zone": "0/0", "region": "2/0", "next": "3/0", "other": "3/0", "nowhere": "3/0"}},
		{"shares", divided, "q/z", nil, map[string]string{"other": "0/100"}},
		{"a divided share", divided, "r/y", nil, map[string]string{"same": "0/120000", "zone": "0/120000", "region": "0/360000", "next": "0/400000"}},
		{"shares of others", divided, "p", nil, nil},
	} {
		order := test.of.For(test.place, test.labels)
		if test.want == nil {
			if order != nil {
				t.Errorf("%s: %s, want none", test.name, order)
			}
			continue
		}
		if d := cmp.Diff(test.want, arranged(order, spread...)); d != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, d)
		}
		if d := cmp.Diff(order, ir.ParseOrder(order.String())); d != "" {
			t.Errorf("%s: read again (-want +got):\n%s", test.name, d)
		}
	}
}

func TestNoOrder(t *testing.T) {
	for _, text := range []string{"a|http", "", "{", "{}x", "{}{}", "{}}", `{"near":1}`, `{"far":"x"}`, `{"shares":[{"to":"a","weight":0}]}`,
		`{"shares":[{"to":"a","weight":99999}]}`, `{"near":"` + strings.Repeat("a", 17<<10) + `"}`} {
		if order := ir.ParseOrder(text); order != nil {
			t.Errorf("%.40q: %v", text, order)
		}
	}
}
