package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/pilot-api/pilot-api/internal/outside"
)

// tightenedGateway has two servers on a port. The TLS settings of the first change.
const tightenedGateway = `
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: edge}
spec:
  servers:
  - port: {number: %[1]d, name: first, protocol: HTTPS}
    hosts: [first.example]
    tls: %[2]s
  - port: {number: %[1]d, name: other, protocol: HTTPS}
    hosts: [other.example]
    tls: {mode: SIMPLE, credentialName: other}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: hosts}
spec:
  hosts: [first.example, other.example]
  gateways: [edge]
  http:
  - directResponse: {status: 204}
`

// TestTightenedGateway: when a server asks more of its clients than before, connections
// that proved less end within the drain time of the Envoy, however busy they are.
// Connections to other hosts of the port are served on.
func TestTightenedGateway(t *testing.T) {
	outside.Slow(t)
	t.Parallel()
	for _, api := range []string{"delta", "rest"} {
		for what, before := range map[string]string{
			"SIMPLE to MUTUAL":          "{mode: SIMPLE, credentialName: first}",
			"OPTIONAL_MUTUAL to MUTUAL": "{mode: OPTIONAL_MUTUAL, credentialName: first}",
		} {
			t.Run(api+", "+what, func(t *testing.T) {
				t.Parallel()
				tightened(t, api, before)
			})
		}
	}
}

func tightened(t *testing.T, api, before string) {
	w := openSecretsBy(t, nil, []string{"--drain-time-s", "2"}, "--api", api)
	w.issue("first", "first.example")
	w.issue("other", "other.example")
	w.write(fmt.Sprintf(tightenedGateway, w.port, before))
	w.shows("first.example", "first.example")
	w.shows("other.example", "other.example")
	var held []*lasting
	for range 3 {
		held = append(held, w.connectAs("first.example", nil))
	}
	other := w.connectAs("other.example", nil)
	w.write(fmt.Sprintf(tightenedGateway, w.port, "{mode: MUTUAL, credentialName: first}"))
	w.wait("a new connection without a certificate to be refused", func(ctx context.Context) error {
		if _, err := w.reach(ctx, "first.example", nil); err == nil {
			return errors.New("it is served")
		}
		return nil
	})
	for _, conn := range held {
		w.wait("a connection of before to end", func(context.Context) error {
			if resp, err := conn.get(); err == nil && !resp.Close {
				return errors.New("it is served on")
			}
			return nil
		})
	}
	if _, err := w.reach(t.Context(), "first.example", w.client); err != nil {
		t.Errorf("with a certificate: %v", err)
	}
	w.serves(other)
}
