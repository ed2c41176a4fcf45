package authority

import (
	"slices"
	"testing"
	"time"

	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/discovery/feedback"
	"github.com/pilot-api/pilot-api/security/ca"
)

// TestProxiesWithoutARoot checks which proxies hold up a root, and which count as trusting.
func TestProxiesWithoutARoot(t *testing.T) {
	at := time.Date(2026, 11, 28, 9, 0, 0, 0, time.UTC)
	roots := func(acknowledged bool, names ...string) *feedback.RootsStatus {
		return &feedback.RootsStatus{Names: names, Acknowledged: acknowledged}
	}
	all := []discovery.ProxyStatus{
		{Node: "plain"},
		{Node: "trusting", Roots: roots(true, "a", "b")},
		{Node: "slow", Roots: roots(false, "a", "b")},
		{Node: "behind", Roots: roots(true, "a")},
		{Node: "closed", State: feedback.StateDisconnected, LastSeen: &at},
		{Node: "lost", State: feedback.StateDisconnected, LastSeen: &at, Lost: true},
	}
	want := []string{
		"proxy slow has not acknowledged the root", "proxy behind has not been sent the root",
		"proxy lost lost its connection at 2026-11-28T09:00:00Z and may still run without the root",
	}
	if got := missing(all, "b"); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	s := Status{Status: ca.Status{Authorities: []ca.AuthorityStatus{{Name: "a"}, {Name: "b"}}}}
	if s.count(all); s.Proxies != 3 || s.Trusting != 1 {
		t.Errorf("%d of %d proxies trust the roots, want 1 of 3", s.Trusting, s.Proxies)
	}
}
