package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"

	"sigs.k8s.io/yaml"
)

// envoyNode is what an Envoy says of itself.
type envoyNode struct {
	ID       string         `json:"id"`
	Cluster  string         `json:"cluster"`
	Metadata map[string]any `json:"metadata,omitempty"`
}

// restPoller polls as the node would.
type restPoller struct {
	pilot *Pilot
	node  envoyNode
	asked int // Counts the newcomers.
}

// newRESTPoller is for the Envoy of a bootstrap.
func newRESTPoller(pilot *Pilot, bootstrap []byte) (*restPoller, error) {
	var stated struct{ Node envoyNode }
	if err := yaml.Unmarshal(bootstrap, &stated); err != nil {
		return nil, err
	}
	return &restPoller{pilot: pilot, node: stated.Node}, nil
}

// offered asks the server for all that this proxy has taken. It asks as a proxy
// that has just started in the same place: a change reaches a running one in
// steps, and its polls must be its own.
func (r *restPoller) offered(ctx context.Context, taken state) (state, error) {
	offered := state{}
	r.asked++
	newcomer := r.newcomer()
	for key := range taken {
		kind, name, _ := strings.Cut(key, "/")
		answer, err := r.pilot.discover(ctx, newcomer, kind, name)
		if err != nil {
			return nil, err
		}
		version, empty, err := versionOf(answer)
		if err != nil {
			return nil, err
		}
		offered[key] = version
		if kind == "routes" && empty {
			offered[key] = taken[key] // A listener that drains keeps its table.
		}
	}
	return offered, nil
}

// newcomer is the node with an id that was never used.
func (r *restPoller) newcomer() envoyNode {
	part := strings.Split(r.node.ID, "~")
	part[2] = fmt.Sprintf("newcomer-%d-to-%s", r.asked, part[2])
	node := r.node
	node.ID = strings.Join(part, "~")
	return node
}

// discover asks the server, as the node, for one type, and one name if it is
// not empty. It asks over the server's socket, as an Envoy of its user does.
func (p *Pilot) discover(ctx context.Context, node envoyNode, kind, name string) ([]byte, error) {
	poll := map[string]any{"node": node}
	if name != "" {
		poll["resource_names"] = []string{name}
	}
	body, err := json.Marshal(poll)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.URL+"/v3/discovery:"+kind, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	file, err := p.socket(ctx)
	if err != nil {
		return nil, err
	}
	over := overSocket(file)
	defer over.CloseIdleConnections()
	return sendOver(&http.Client{Transport: over}, req)
}

// overSocket sends every request over the socket in the file.
func overSocket(file string) *http.Transport {
	return &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", file)
	}}
}

// socket is the file of the one for HTTP.
func (p *Pilot) socket(ctx context.Context) (string, error) {
	text, err := fetch(ctx, p.URL+"/v3/discovery:sockets")
	if err != nil {
		return "", err
	}
	var told struct{ HTTP string }
	err = json.Unmarshal(text, &told)
	return told.HTTP, err
}

// versionOf is that of an answer, which may have nothing in it.
func versionOf(answer []byte) (version string, empty bool, err error) {
	var a struct {
		Version   string `json:"version_info"`
		Resources []json.RawMessage
	}
	err = json.Unmarshal(answer, &a)
	return a.Version, len(a.Resources) == 0, err
}
