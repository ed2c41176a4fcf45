package describe

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/client"
	"github.com/pilot-api/pilot-api/schema"
)

// TestProxyRow: a proxy that may be the one that refuses an object does not run it.
func TestProxyRow(t *testing.T) {
	for _, c := range []struct {
		name, status   string
		runs           int64
		routes, wanted string
	}{
		{"settled", `"reason":"Programmed"`, 7, "SYNCED", "runs it"},
		{"behind", `"reason":"Pending"`, 6, "SENT", "SENT routes"},
		{"refuses a part that is of the object", `"reason":"Rejected"`, 7, "REJECTED", "REJECTED routes"},
		{"refuses what is not of the object", `"reason":"Programmed"`, 7, "REJECTED", "runs it"},
		{"another one refuses it", `"reason":"Rejected"`, 7, "SYNCED", "runs it"},
	} {
		d := &description{ObjectWithStatus: client.ObjectWithStatus{
			Object: &schema.Object{Meta: metav1.ObjectMeta{ResourceVersion: "7"}},
			Raw:    []byte(`{"conditions":[{"type":"Programmed",` + c.status + `}]}`),
		}}
		got := d.proxyRow(client.Proxy{Node: "n", Revision: c.runs, Types: map[string]client.ProxyType{"routes": {State: c.routes}}})
		if !strings.Contains(got, c.wanted) {
			t.Errorf("%s: %s", c.name, got)
		}
	}
}
