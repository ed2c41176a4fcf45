package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
)

// state is what discovery offers or what Envoy has taken: a version for each type and, for
// route tables, for each name. All versions are hashes of content.
type state map[string]string

// taken reads from Envoy's dump the state that it uses. Anything that is warming or was
// refused is an error.
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

// dumped is one part of Envoy's dump. Its members depend on its type.
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
