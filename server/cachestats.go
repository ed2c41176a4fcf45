package server

import (
	"encoding/json"
	"net/http"
	"sync"
)

// Bounds of what is counted: anybody can ask for any number of paths.
const (
	maxCountedPaths = 1 << 14
	maxCountedPath  = 1 << 10 // bytes
)

// cacheStats counts the answers at each path of the v1 API, as Pilot did for
// its response cache. There is no such cache here: a hit is the very answer
// that the path had before, a miss is one that is new to the path. It is safe
// for concurrent use.
type cacheStats struct {
	mu    sync.Mutex
	paths map[string]*pathStats
}

// pathStats is one path since the last reset.
type pathStats struct {
	Hit  uint64 `json:"hit"`
	Miss uint64 `json:"miss"`

	version string // of the last answer
}

func newCacheStats() *cacheStats { return &cacheStats{paths: map[string]*pathStats{}} }

// count notes an answer. Beyond the bounds, new paths are not counted.
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

// show answers the counts, in Pilot's form.
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

// reset starts all counts at 0, and forgets the paths that nobody asked for
// since the last reset.
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
