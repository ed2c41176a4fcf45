package hostile

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// proxy is one of a kind: those with other numbers in their ids see the same.
type proxy struct {
	name, id string
	labels   map[string]string
	v1       bool
}

// answers are what a proxy is told, each resource under its type and name.
type answers map[string]string

// client is one proxy. It polls as an Envoy does: with the versions that it has.
type client struct {
	proxy
	node     string
	server   *server
	versions map[string]string
	has      answers
}

func newClient(p proxy, n int, s *server) *client {
	return &client{proxy: p, node: fmt.Sprintf(p.id, n), server: s, versions: map[string]string{}, has: answers{}}
}

// quietServices are the clusters whose endpoints all proxies ask for.
var quietServices = []string{quietHost + "|http", quietHost + "|tcp", "api.quiet.svc.cluster.local|http", "shop.quiet.example|http"}

// fetch asks for everything, and for the endpoints of some more clusters.
func (c *client) fetch(ctx context.Context, more ...string) error {
	if c.v1 {
		return c.fetchV1(ctx)
	}
	for _, kind := range []struct {
		name  string
		names []string
	}{{"clusters", nil}, {"endpoints", append(slices.Clone(quietServices), more...)}, {"listeners", nil}, {"routes", nil}} {
		for part := range slices.Chunk(append(kind.names, ""), 50) {
			names := slices.DeleteFunc(slices.Clone(part), func(s string) bool { return s == "" })
			if len(names) == 0 && len(kind.names) > 0 {
				continue
			}
			if err := c.poll(ctx, kind.name, names); err != nil {
				return fmt.Errorf("%s are not told to %s: %w", kind.name, c.node, err)
			}
		}
	}
	return nil
}

func (c *client) poll(ctx context.Context, kind string, names []string) error {
	at := kind + " " + strings.Join(names, " ")
	body, err := json.Marshal(spec{
		"node":         spec{"id": c.node, "metadata": spec{"LABELS": c.labels}},
		"version_info": c.versions[at], "resource_names": names,
	})
	if err != nil {
		return err
	}
	code, text, err := c.server.until(ctx, http.MethodPost, "/v3/discovery:"+kind, body, func(code int) bool { return code != http.StatusServiceUnavailable })
	switch {
	case err != nil:
		return err
	case code == http.StatusNotModified:
		return nil
	case code != http.StatusOK:
		return fmt.Errorf("%d: %.500s", code, text)
	}
	var in struct {
		Version   string            `json:"version_info"`
		Resources []json.RawMessage `json:"resources"`
	}
	if err := json.Unmarshal(text, &in); err != nil {
		return err
	}
	c.versions[at] = in.Version
	maps.DeleteFunc(c.has, func(key, _ string) bool {
		return strings.HasPrefix(key, kind+" ") && (len(names) == 0 || slices.Contains(names, strings.TrimPrefix(key, kind+" ")))
	})
	for _, r := range in.Resources {
		if err := c.take(kind, r); err != nil {
			return err
		}
	}
	return nil
}

// take keeps a resource; of a route table, each virtual host for itself.
func (c *client) take(kind string, text json.RawMessage) error {
	var in struct {
		Name         string            `json:"name"`
		ClusterName  string            `json:"cluster_name"`
		VirtualHosts []json.RawMessage `json:"virtual_hosts"`
	}
	if err := json.Unmarshal(text, &in); err != nil {
		return err
	}
	if kind != "routes" {
		c.has[kind+" "+in.Name+in.ClusterName] = string(text)
		return nil
	}
	for _, host := range in.VirtualHosts {
		var of struct {
			Name string `json:"name"`
		}
		if err := json.Unmarshal(host, &of); err != nil {
			return err
		}
		c.has["routes "+in.Name+" "+of.Name] = string(host)
	}
	return nil
}

func (c *client) fetchV1(ctx context.Context) error {
	for _, kind := range []string{"clusters", "listeners", "routes/80"} {
		path := fmt.Sprintf("/v1/%s/x/%s", kind, c.node)
		code, text, err := c.server.until(ctx, http.MethodGet, path, nil, func(code int) bool { return code != http.StatusServiceUnavailable })
		if err != nil || code != http.StatusOK {
			return fmt.Errorf("%s: %d, %w: %.500s", path, code, err, text)
		}
		var in struct {
			Clusters     []json.RawMessage `json:"clusters"`
			Listeners    []json.RawMessage `json:"listeners"`
			VirtualHosts []json.RawMessage `json:"virtual_hosts"`
		}
		if err := json.Unmarshal(text, &in); err != nil {
			return err
		}
		maps.DeleteFunc(c.has, func(key, _ string) bool { return strings.HasPrefix(key, kind+" ") })
		for _, r := range slices.Concat(in.Clusters, in.Listeners, in.VirtualHosts) {
			if err := c.take(kind, r); err != nil {
				return err
			}
		}
	}
	return nil
}
