package discovery_test

import (
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/schema"
)

// TestPollsWaitForNoEncoding checks that a publication makes the JSON that proxies poll
// for, so that the first poll after a large change costs little more than a later one.
func TestPollsWaitForNoEncoding(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const services = 100
		all := func(ip string) (out []*schema.Object) {
			for i := range services {
				out = append(out, service(t, fmt.Sprintf("s%d.%s.example", i, ip), ip))
			}
			return out
		}
		src := newObjects(all("10.0.0.1")...)
		s := follow(t, src, discovery.Options{})
		types := []string{discovery.ClusterType, discovery.ListenerType}
		for _, typeURL := range types {
			v3(t, s, typeURL, nodeA)
		}
		src.set(append(all("10.0.0.1"), all("10.0.0.2")...)...)
		time.Sleep(time.Minute)
		synctest.Wait()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for _, typeURL := range types {
			v3(t, s, typeURL, nodeA)
		}
		runtime.ReadMemStats(&after)
		// To make the JSON of one cluster takes more than 100 allocations.
		if n := after.Mallocs - before.Mallocs; n > 20*services {
			t.Errorf("the first polls after a change allocated %d times", n)
		}
	})
}
