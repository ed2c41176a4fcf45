package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/internal/outside"
)

// reviewsAs is the service of reviews with another port name, labels and audience.
const reviewsAs = `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: reviews, namespace: default}
spec:
  hosts: [reviews.default.svc.cluster.local]
  exportTo: [%q]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: 9080, name: %s, protocol: HTTP}]
  endpoints:
  - {address: 127.0.0.41, labels: {version: %s}}
  - {address: 127.0.0.42, labels: {version: %[3]s}}
`

// subsetAs has the requests to reviews go to the instances of a version, by a rule with a
// name.
const subsetAs = `
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: reviews, namespace: default}
spec:
  host: reviews
  subsets: [{name: chosen, labels: {version: %s}}]
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: %s, namespace: default}
spec:
  hosts: [reviews]
  http: [{route: [{destination: {host: reviews, subset: chosen}}]}]
`

// TestNoGapWhenEndpointsMove: nor while a change moves instances from one set of endpoints
// to another, and the routes with them.
func TestNoGapWhenEndpointsMove(t *testing.T) {
	outside.Slow(t)
	all := func(name, version string) string {
		return fmt.Sprintf(reviewsAs, "*", "http", version) + fmt.Sprintf(subsetAs, version, name)
	}
	first, second, third := fmt.Sprintf(reviewsAs, "*", "http", "v1"), fmt.Sprintf(reviewsAs, "*", "web", "v1"), fmt.Sprintf(reviewsAs, ".", "web", "v1")
	states := []string{first, second, first, second, third, second, third, first,
		all("blue", "v1"), all("blue", "v9"), all("blue", "v1"), all("green", "v1"), all("blue", "v9"), all("green", "v1")}
	for _, api := range []string{"delta", "ads", "rest"} {
		t.Run(api, func(t *testing.T) {
			t.Parallel()
			w := open(t, bookshop, proxyPortWith("--api", api))
			gapless(t, w, func(ctx context.Context) {
				for i, state := range states {
					w.move(ctx, t, state)
					if t.Failed() {
						t.Fatalf("after change %d", i)
					}
				}
			})
		})
	}
}

// move makes one write that leads to the objects of a text, and returns when the Envoy uses
// them. Rules that an earlier text has are pruned.
func (w *World) move(ctx context.Context, t *testing.T, text string) {
	t.Helper()
	file := filepath.Join(w.Dir, "moved.yaml")
	if err := os.WriteFile(file, []byte(w.moved.Replace(strings.TrimPrefix(text, "\n"))), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Pilot.Istioctl(ctx, "apply", "--atomic", "--owner", "shop", "--prune", "-f", file); err != nil {
		t.Fatal(err)
	}
	if err := w.Pilot.Published(ctx); err != nil {
		t.Fatal(err)
	}
	if err := w.Sidecar.Settle(ctx); err != nil {
		t.Fatal(err)
	}
}
