package proxies

import (
	"testing"

	"github.com/pilot-api/pilot-api/client"
)

// TestDoing: a proxy that refuses is not said to run something older without a word
// of why.
func TestDoing(t *testing.T) {
	refusing := map[string]client.ProxyType{"routes": {State: "SYNCED"}, "listeners": {State: Rejected, Error: "cannot bind\n"}}
	for _, c := range []struct {
		p    client.Proxy
		want string
	}{
		{client.Proxy{Revision: 7}, "runs revision 7"},
		{client.Proxy{}, "runs nothing yet that is known"},
		{client.Proxy{Revision: 7, Types: refusing}, "refuses its listeners and runs revision 7: cannot bind"},
		{client.Proxy{Types: refusing}, "refuses its listeners and runs nothing yet that is known: cannot bind"},
	} {
		if got := Doing(c.p); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
