// Package bridge lets today's Envoy run on Envoy's first discovery API, which
// Envoy lost with version 1.9. It is test code: it does what an old Envoy did,
// and shows that v1 answers route real requests.
//
// One round (Poll) has three steps, each in a file of its own or several: Ask
// gets listeners and clusters, and the route tables and endpoints those name,
// over HTTP from the servers that a v1 bootstrap gives (ask.go, start.go); Turn
// spells the answers in v3, field by field (clusters.go to tcp.go); and the
// result is put into files that Envoy watches (files.go). The bridge knows nothing but Envoy's formats, and refuses every
// v1 field that it does not know: nothing is lost on the way in silence.
//
// An old Envoy took captured connections. Here a client plays the kernel: what
// it writes to the listener that hands off begins with the line of the PROXY
// protocol, which names the original destination.
package bridge

import (
	"context"
	"fmt"
	"net/url"
	"path/filepath"
)

// Bridge stands in for one old Envoy.
type Bridge struct {
	cluster, node string // As in --service-cluster and --service-node.
	dir           string
	start         *start
}

// New stands in for an Envoy that is started with the v1 bootstrap, as a member
// of the service cluster, as the node. Its files will be in dir.
func New(bootstrap []byte, cluster, node, dir string) (*Bridge, error) {
	s, err := readStart(bootstrap)
	if err != nil {
		return nil, fmt.Errorf("v1 bootstrap: %w", err)
	}
	return &Bridge{cluster: cluster, node: node, dir: dir, start: s}, nil
}

// Poll is one round of all that an old Envoy polls for. It returns the version
// of everything that Envoy is to take now: "clusters", "listeners", and
// "routes/" with the name of the table. Envoy reads everything anew, changed or
// not, and so gets over a table that came before its clusters as an old one did.
func (b *Bridge) Poll(ctx context.Context) (map[string]string, error) {
	answers, err := b.Ask(ctx)
	if err != nil {
		return nil, err
	}
	resources, err := Turn(answers, b.tableFile)
	if err != nil {
		return nil, err
	}
	return b.write(resources)
}

// tableFile is where Envoy finds a route table.
func (b *Bridge) tableFile(name string) string {
	return filepath.Join(b.dir, "routes-"+url.PathEscape(name)+".json")
}
