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

// envoyNode is the node in an Envoy's requests.
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

// newRESTPoller returns a poller for the Envoy of a bootstrap.
func newRESTPoller(pilot *Pilot, bootstrap []byte) (*restPoller, error) {
	var stated struct{ Node envoyNode }
	if err := yaml.Unmarshal(bootstrap, &stated); err != nil {
		return nil, err
	}
	return &restPoller{pilot: pilot, node: stated.Node}, nil
}

// offered asks the server for everything that this proxy has taken. It asks as a newly
// started proxy in the same place, because changes reach a running proxy in steps, and
// that proxy's polls must be its own.
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

// newcomer returns the node with an unused id.
func (r *restPoller) newcomer() envoyNode {
	part := strings.Split(r.node.ID, "~")
	part[2] = fmt.Sprintf("newcomer-%d-to-%s", r.asked, part[2])
	node := r.node
	node.ID = strings.Join(part, "~")
	return node
}

// discover asks the server, as the node, for one type, and for one name if it is not
// empty. It asks over the server's socket, as an Envoy of the server's user does.
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

// socket returns the file of the socket for HTTP.
func (p *Pilot) socket(ctx context.Context) (string, error) {
	text, err := fetch(ctx, p.URL+"/v3/discovery:sockets")
	if err != nil {
		return "", err
	}
	var told struct{ HTTP string }
	err = json.Unmarshal(text, &told)
	return told.HTTP, err
}

// versionOf returns the version of an answer, which may be empty.
func versionOf(answer []byte) (version string, empty bool, err error) {
	var a struct {
		Version   string `json:"version_info"`
		Resources []json.RawMessage
	}
	err = json.Unmarshal(answer, &a)
	return a.Version, len(a.Resources) == 0, err
}
