package server

import (
	"time"

	"github.com/pilot-api/pilot-api/schema"
)

// proxyReturn is the time after the start of a replica in which proxies that were
// connected before may be on their way back to it.
type proxyReturn struct{ started, over time.Time }

func newProxyReturn(lasts time.Duration) proxyReturn {
	now := time.Now()
	return proxyReturn{now, now.Add(lasts)}
}

// due reports whether proxies may still come back, to a mesh of these objects. One
// that is no older than the replica had none.
func (p proxyReturn) due(objects []*schema.Object) bool {
	if !time.Now().Before(p.over) {
		return false
	}
	started := p.started.Truncate(time.Second) // A creation has no more.
	for _, o := range objects {
		if o.Meta.CreationTimestamp.Time.Before(started) {
			return true
		}
	}
	return false
}

// awaited is what people read while they may.
func (p proxyReturn) awaited() string {
	return "this replica was started at " + p.started.Format(time.TimeOnly)
}
