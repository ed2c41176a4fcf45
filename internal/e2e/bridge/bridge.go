// Package bridge lets a current Envoy run on Envoy's first discovery API, which Envoy
// removed in version 1.9. It is test code: it does what an old Envoy did, and shows that
// v1 answers route real requests.
//
// One round (Poll) has three steps, each in one or several files. Ask gets listeners and
// clusters, and the route tables and endpoints that they name, over HTTP from the servers
// in a v1 bootstrap (ask.go, start.go). Turn converts the answers to v3, field by field
// (clusters.go to tcp.go). The result is written to files that Envoy watches (files.go).
// The bridge knows only Envoy's formats, and refuses every v1 field that it does not know,
// so nothing is lost silently.
//
// An old Envoy accepted captured connections. Here a client does the kernel's part: what
// it writes to the listener that hands off begins with a line of the PROXY protocol, which
// names the original destination.
package bridge

import (
	"context"
	"fmt"
	"net/url"
	"path/filepath"
)

// Bridge does the work of one old Envoy.
type Bridge struct {
	cluster, node string // As in --service-cluster and --service-node.
	dir           string
	start         *start
}

// New returns a Bridge for an Envoy with the v1 bootstrap, service cluster and node. Its
// files will be in dir.
func New(bootstrap []byte, cluster, node, dir string) (*Bridge, error) {
	s, err := readStart(bootstrap)
	if err != nil {
		return nil, fmt.Errorf("v1 bootstrap: %w", err)
	}
	return &Bridge{cluster: cluster, node: node, dir: dir, start: s}, nil
}

// Poll is one round of everything that an old Envoy polls for. It returns the versions
// that Envoy should take now, by "clusters", "listeners", and "routes/" with the name of
// the table. Envoy reads everything anew, changed or not. So it recovers from a table that
// came before its clusters, as an old Envoy did.
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

// tableFile returns the file of a route table.
func (b *Bridge) tableFile(name string) string {
	return filepath.Join(b.dir, "routes-"+url.PathEscape(name)+".json")
}
