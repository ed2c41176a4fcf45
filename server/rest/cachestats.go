package rest

import (
	"encoding/json"
	"net/http"
	"sync"
)

// Limits of the counts, because anybody can ask for any number of paths.
const (
	maxCountedPaths = 1 << 14
	maxCountedPath  = 1 << 10 // bytes
)

// cacheStats counts the answers at each path of the v1 API, as Pilot did for its
// response cache. This server has no such cache: a hit is an answer equal to the
// path's previous one, a miss is an answer that is new to the path. It is safe for
// concurrent use.
type cacheStats struct {
	mu    sync.Mutex
	paths map[string]*pathStats
}

// pathStats counts the answers of one path since the last reset.
type pathStats struct {
	Hit  uint64 `json:"hit"`
	Miss uint64 `json:"miss"`

	version string // of the last answer
}

func newCacheStats() *cacheStats { return &cacheStats{paths: map[string]*pathStats{}} }

// count records an answer. Beyond the bounds it ignores new paths.
func (c *cacheStats) count(path, version string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.paths[path]
	if p == nil {
		if len(path) > maxCountedPath || len(c.paths) >= maxCountedPaths {
			return
		}
		p = &pathStats{}
		c.paths[path] = p
	}
	if p.version == version {
		p.Hit++
		return
	}
	p.Miss++
	p.version = version
}

// show answers with the counts in Pilot's format.
func (c *cacheStats) show(w http.ResponseWriter, _ *http.Request) {
	c.mu.Lock()
	body, err := json.Marshal(map[string]any{"cache_stats": c.paths})
	c.mu.Unlock()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	writeBody(w, body)
}

// reset sets all counts to 0 and forgets the paths that were not requested since
// the last reset.
func (c *cacheStats) reset(http.ResponseWriter, *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for path, p := range c.paths {
		if p.Hit+p.Miss == 0 {
			delete(c.paths, path)
		}
		p.Hit, p.Miss = 0, 0
	}
}
