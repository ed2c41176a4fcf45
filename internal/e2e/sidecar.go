package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/pilot-api/pilot-api/internal/testbed"
)

// Sidecar is a running Envoy.
type Sidecar struct {
	Node  string // Node id: role~ip~id~domain.
	Admin string // URL of Envoy's admin pages.

	// offered returns what discovery offers an Envoy that has taken the given state.
	offered func(ctx context.Context, taken state) (state, error)
	*testbed.Process
}

// run starts the Envoy with the bootstrap and returns when it is live. Its log and its
// bootstrap are in dir.
func (s *Sidecar) run(ctx context.Context, programs Programs, dir string, bootstrap []byte) error {
	file := filepath.Join(dir, "envoy.yaml")
	err := os.WriteFile(file, bootstrap, 0o600)
	if err != nil {
		return err
	}
	flags := []string{"-c", file, "--concurrency", "1", "-l", "warning", "--use-dynamic-base-id", "--reject-unknown-dynamic-fields"}
	s.Process = testbed.NewProcess(dir, "envoy", programs.Envoy, append(flags, programs.EnvoyFlags...)...)
	if err = s.Start(); err != nil {
		return err
	}
	if err = s.live(ctx); err != nil {
		return errors.Join(err, s.Stop())
	}
	return nil
}

// live returns when Envoy reports that it is live.
func (s *Sidecar) live(ctx context.Context) error {
	return until(ctx, "Envoy to be live", s.Process, func(ctx context.Context) error {
		_, err := fetch(ctx, s.Admin+"/ready")
		return err
	})
}

// Settle returns when Envoy has taken everything that discovery offers it now. The server
// must have published what the caller waits for; see Pilot.Published.
func (s *Sidecar) Settle(ctx context.Context) error {
	return until(ctx, "Envoy to take what is published", s.Process, func(ctx context.Context) error {
		taken, err := s.taken(ctx)
		if err != nil {
			return err
		}
		offered, err := s.offered(ctx, taken)
		if err == nil && !maps.Equal(offered, taken) {
			err = fmt.Errorf("offered %v, taken %v", offered, taken)
		}
		return err
	})
}

// Counter sums Envoy's counters and gauges whose names match the pattern. It excludes
// those of the connection to pilot-api, where a stream is an endless request.
func (s *Sidecar) Counter(ctx context.Context, pattern string) (int, error) {
	text, err := fetch(ctx, s.Admin+"/stats?format=json&filter="+url.QueryEscape(pattern))
	if err != nil {
		return 0, err
	}
	var stats struct {
		Stats []struct {
			Name  string
			Value int
		}
	}
	if err := json.Unmarshal(text, &stats); err != nil {
		return 0, err
	}
	sum := 0
	for _, counter := range stats.Stats {
		if !strings.HasPrefix(counter.Name, "cluster.pilot-api.") {
			sum += counter.Value
		}
	}
	return sum, nil
}
