package watch

import (
	"net/url"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/server/wire"
)

// readInitialEvents reads sendInitialEvents by the rules of Kubernetes. true asks
// for the state first, not older than the resourceVersion, and for a bookmark that
// marks its end. false asks only for changes. Clients that are refused with Invalid
// fall back to "list, then watch".
func (a *watchRequest) readInitialEvents(q url.Values, f wire.Format) error {
	match := q.Get("resourceVersionMatch")
	if q.Get("sendInitialEvents") == "" {
		if match != "" {
			return wire.BadListOption("resourceVersionMatch", "goes with a watch only beside sendInitialEvents")
		}
		return nil
	}
	send, err := wire.BoolParam(q, "sendInitialEvents")
	switch {
	case err != nil:
		return err
	case match != string(metav1.ResourceVersionMatchNotOlderThan):
		return wire.BadListOption("sendInitialEvents", "needs resourceVersionMatch=NotOlderThan")
	case send && f == wire.Table && q.Get("includeObject") == string(metav1.IncludeNone):
		return wire.BadListOption("sendInitialEvents", "needs the metadata of rows: leave includeObject=None out")
	case send:
		a.after, a.marked = 0, true
	default:
		a.changes = true
	}
	return nil
}
