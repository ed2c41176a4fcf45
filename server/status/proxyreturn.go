package status

import (
	"time"

	"github.com/pilot-api/pilot-api/schema"
)

// proxyReturn is the time after the start of a replica in which proxies that were
// connected before may reconnect to it.
type proxyReturn struct{ started, over time.Time }

func newProxyReturn(lasts time.Duration) proxyReturn {
	now := time.Now()
	return proxyReturn{now, now.Add(lasts)}
}

// due reports whether proxies may still reconnect, to a mesh of these objects. If
// all objects are younger than the replica, there were no proxies before.
func (p proxyReturn) due(objects []*schema.Object) bool {
	if !time.Now().Before(p.over) {
		return false
	}
	started := p.started.Truncate(time.Second) // A creation time has whole seconds.
	for _, o := range objects {
		if o.Meta.CreationTimestamp.Time.Before(started) {
			return true
		}
	}
	return false
}

// awaited returns the text for people while proxies may reconnect.
func (p proxyReturn) awaited() string {
	return "this replica was started at " + p.started.Format(time.TimeOnly)
}
