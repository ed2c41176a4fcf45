package watch_test

import (
	"github.com/pilot-api/pilot-api/server/servertest"

	"context"
	"net"
	"net/http"
	"testing"

	"github.com/pilot-api/pilot-api/server"
)

// TestWatchesLeaveRoom checks that however many watches a client opens, others get
// short requests answered, over their own connections.
func TestWatchesLeaveRoom(t *testing.T) {
	const most = 16
	w, _, _ := servertest.Serve(t, func(o *server.Options) { o.MaxConnections = most })
	for range most / 4 * 3 {
		w.Watch("")
	}
	for range 3 * most {
		got := w.Want(http.StatusTooManyRequests, "GET", servertest.RulesPath+"?watch=true", "", "Connection: close")
		if got.Header.Get("Retry-After") == "" {
			t.Fatal("a watch too many is not told when to come again")
		}
	}
	for _, path := range []string{"/healthz", "/readyz", "/metrics", servertest.RulesPath} {
		w.Want(http.StatusOK, "GET", path, "", "Connection: close")
	}
}

// TestWatchesGiveWay checks that a client with few watches takes places from a
// client that has all, whose oldest watches end so that they can be resumed.
func TestWatchesGiveWay(t *testing.T) {
	w, addr, _ := servertest.Serve(t, func(o *server.Options) { o.MaxWatches = 4 })
	var greedy []*servertest.Watching
	for range 4 {
		greedy = append(greedy, w.Watch("&allowWatchBookmarks=true"))
	}
	other := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
		return d.DialContext(ctx, network, addr)
	}}}
	watch := func() int {
		req, err := http.NewRequestWithContext(t.Context(), "GET", w.URL+servertest.RulesPath+"?watch=true", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := other.Do(req)
		if err != nil {
			t.Skipf("no second loopback address: %v", err)
		}
		t.Cleanup(func() { resp.Body.Close() })
		return resp.StatusCode
	}
	for i, want := range []int{http.StatusOK, http.StatusOK, http.StatusTooManyRequests} {
		if got := watch(); got != want {
			t.Errorf("watch %d of another client: %d, want %d", i, got, want)
		}
	}
	for _, ended := range greedy[:2] {
		ended.Want("BOOKMARK")
		ended.WantEnd()
	}
}
