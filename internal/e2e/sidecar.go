package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Sidecar is a running Envoy that has its bootstrap from istioctl and the rest
// from a Pilot.
type Sidecar struct {
	Node  string // Node id: role~ip~id~domain.
	Admin string // URL of Envoy's own pages.
	pilot *Pilot
	asked int // how many newcomers have asked for it
	*process
}

// StartSidecar runs an Envoy for the node and returns when it is live. Its log
// and its bootstrap are in dir.
func StartSidecar(ctx context.Context, pilot *Pilot, dir, node string) (*Sidecar, error) {
	admin, err := freePort()
	if err != nil {
		return nil, err
	}
	bootstrap, err := pilot.Istioctl(ctx, "bootstrap", node, "--admin-port", strconv.Itoa(admin), "--refresh-delay", "200ms")
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "envoy.yaml")
	if err := os.WriteFile(file, bootstrap, 0o600); err != nil {
		return nil, err
	}
	s := &Sidecar{Node: node, Admin: fmt.Sprintf("http://127.0.0.1:%d", admin), pilot: pilot}
	s.process, err = start(ctx, dir, "envoy", pilot.programs.Envoy, "-c", file,
		"--concurrency", "1", "-l", "warning", "--use-dynamic-base-id")
	if err != nil {
		return nil, err
	}
	err = until(ctx, "Envoy to be live", s.process, func(ctx context.Context) error {
		_, err := fetch(ctx, s.Admin+"/ready")
		return err
	})
	if err != nil {
		return nil, errors.Join(err, s.stop())
	}
	return s, nil
}

// state is what discovery says or what Envoy has taken: a version for each
// type and, for route tables, for each name. All are hashes of content.
type state map[string]string

// Settle returns when Envoy has taken all that discovery offers it now. The
// server must have published what the caller waits for; see Pilot.Published.
func (s *Sidecar) Settle(ctx context.Context) error {
	return until(ctx, "Envoy to take what is published", s.process, func(ctx context.Context) error {
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

// offered asks the server for all that this proxy has taken. It asks as a proxy
// that has just started in the same place: a change reaches a running one in
// steps, and its polls must be its own.
func (s *Sidecar) offered(ctx context.Context, taken state) (state, error) {
	offered := state{}
	s.asked++
	newcomer := s.newcomer()
	for key := range taken {
		kind, name, _ := strings.Cut(key, "/")
		version, err := s.version(ctx, newcomer, kind, name)
		if err != nil {
			return nil, err
		}
		offered[key] = version
	}
	return offered, nil
}

// newcomer is the sidecar's node with an id that was never used.
func (s *Sidecar) newcomer() string {
	part := strings.Split(s.Node, "~")
	part[2] = fmt.Sprintf("newcomer-%d-to-%s", s.asked, part[2])
	return strings.Join(part, "~")
}

// version asks the server for one type, and one name if it is not empty.
func (s *Sidecar) version(ctx context.Context, node, kind, name string) (string, error) {
	var names string
	if name != "" {
		names = strconv.Quote(name)
	}
	body := fmt.Sprintf(`{"node":{"id":%q,"cluster":"e2e"},"resource_names":[%s]}`, node, names)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.pilot.URL+"/v3/discovery:"+kind, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	req.Header.Set("Content-Type", "application/json")
	text, err := send(req)
	if err != nil {
		return "", err
	}
	var answer struct {
		Version string `json:"version_info"`
	}
	return answer.Version, json.Unmarshal(text, &answer)
}

// taken reads from Envoy's dump what it works by; something that still warms
// or was refused is an error.
func (s *Sidecar) taken(ctx context.Context) (state, error) {
	text, err := fetch(ctx, s.Admin+"/config_dump")
	if err != nil {
		return nil, err
	}
	var dump struct{ Configs []dumped }
	if err := json.Unmarshal(text, &dump); err != nil {
		return nil, err
	}
	got := state{}
	for _, c := range dump.Configs {
		if err := c.addTo(got); err != nil {
			return nil, err
		}
	}
	return got, nil
}

// dumped is one part of Envoy's dump; which members it has depends on its type.
type dumped struct {
	Type            string            `json:"@type"`
	Version         string            `json:"version_info"`
	WarmingClusters []json.RawMessage `json:"dynamic_warming_clusters"`
	Listeners       []struct {
		Name    string
		Warming json.RawMessage `json:"warming_state"`
		Error   json.RawMessage `json:"error_state"`
	} `json:"dynamic_listeners"`
	Routes []struct {
		Version string                `json:"version_info"`
		Table   struct{ Name string } `json:"route_config"`
	} `json:"dynamic_route_configs"`
}

func (d *dumped) addTo(got state) error {
	if len(d.WarmingClusters) > 0 {
		return fmt.Errorf("%d clusters are warming", len(d.WarmingClusters))
	}
	for _, l := range d.Listeners {
		if l.Warming != nil || l.Error != nil {
			return fmt.Errorf("listener %s: warming %s, error %s", l.Name, l.Warming, l.Error)
		}
	}
	switch {
	case strings.HasSuffix(d.Type, ".ClustersConfigDump"):
		got["clusters"] = d.Version
	case strings.HasSuffix(d.Type, ".ListenersConfigDump"):
		got["listeners"] = d.Version
	}
	for _, r := range d.Routes {
		got["routes/"+r.Table.Name] = r.Version
	}
	return nil
}

// Counter sums Envoy's counters and gauges whose names match the pattern.
func (s *Sidecar) Counter(ctx context.Context, pattern string) (int, error) {
	text, err := fetch(ctx, s.Admin+"/stats?format=json&filter="+url.QueryEscape(pattern))
	if err != nil {
		return 0, err
	}
	var stats struct {
		Stats []struct{ Value int }
	}
	if err := json.Unmarshal(text, &stats); err != nil {
		return 0, err
	}
	sum := 0
	for _, counter := range stats.Stats {
		sum += counter.Value
	}
	return sum, nil
}
