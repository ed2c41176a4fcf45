package rest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCacheStats(t *testing.T) {
	url := envoys(t, published(t, webService(t)))
	poll := func(paths ...string) {
		for _, path := range paths {
			if code, text := send(t, http.MethodGet, url+path, ""); code != http.StatusOK {
				t.Errorf("%s: %d %s", path, code, text)
			}
		}
	}
	want := func(want map[string]pathStats) {
		t.Helper()
		code, text := send(t, http.MethodGet, url+"/cache_stats", "")
		var got struct {
			Stats map[string]pathStats `json:"cache_stats"`
		}
		if err := json.Unmarshal([]byte(text), &got); err != nil || code != http.StatusOK {
			t.Fatalf("%d %s: %v", code, text, err)
		}
		if diff := cmp.Diff(want, got.Stats, cmp.AllowUnexported(pathStats{})); diff != "" {
			t.Errorf("statistics (-want +got):\n%s", diff)
		}
	}
	clusters, endpoints := "/v1/clusters/web/"+pollingNode, "/v1/registration/web.example|http"

	want(map[string]pathStats{})
	poll(clusters, clusters, clusters, "/v1/registration/web.example%7Chttp", endpoints)
	send(t, http.MethodGet, url+"/v1/clusters/web/nobody", "")
	want(map[string]pathStats{clusters: {Hit: 2, Miss: 1}, endpoints: {Hit: 1, Miss: 1}})

	if code, text := send(t, http.MethodPost, url+"/cache_stats_delete", ""); code != http.StatusOK || text != "" {
		t.Errorf("reset: %d %s", code, text)
	}
	want(map[string]pathStats{clusters: {}, endpoints: {}})
	poll(clusters)
	send(t, http.MethodPost, url+"/cache_stats_delete", "")
	want(map[string]pathStats{clusters: {}})
}

func TestCacheStatsCountChanges(t *testing.T) {
	c := newCacheStats()
	for _, version := range []string{"1", "1", "2", "1", "1"} {
		c.count("/path", version)
	}
	if got := c.paths["/path"]; got.Hit != 2 || got.Miss != 3 {
		t.Errorf("%d hits, %d misses; want 2 and 3", got.Hit, got.Miss)
	}
}

func TestCacheStatsAreBounded(t *testing.T) {
	c := newCacheStats()
	c.count(strings.Repeat("x", maxCountedPath+1), "1")
	for i := range maxCountedPaths + 10 {
		c.count(fmt.Sprintf("/%d", i), "1")
	}
	c.count("/0", "1")
	if len(c.paths) != maxCountedPaths || c.paths["/0"].Hit != 1 {
		t.Errorf("%d paths, want %d, and the known ones still counted", len(c.paths), maxCountedPaths)
	}
}
