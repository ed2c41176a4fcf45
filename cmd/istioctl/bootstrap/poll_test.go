package bootstrap_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/cli"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/clitest"
	"github.com/pilot-api/pilot-api/internal/simulated"
)

// TestServerAnswersTheNodeOfABootstrap: an Envoy that starts with a bootstrap polls the
// server at --server as the node that the bootstrap states, and gets its clusters.
func TestServerAnswersTheNodeOfABootstrap(t *testing.T) {
	url, _ := clitest.Live(t)
	clitest.Apply(t, url, simulated.Reviews+"---\n"+clitest.Rule("all-to-v2", "v2"))
	stdout, stderr, code := clitest.Run(t, url, "", "bootstrap", simulated.Node(1), "--api", "rest", "--labels", "app=web")
	if code != cli.ExitDone || !strings.Contains(stderr, "no private keys") {
		t.Fatalf("exit %d: %s", code, stderr) // This server has no sockets.
	}
	var bootstrap struct {
		Node            json.RawMessage
		StaticResources struct {
			Clusters []struct {
				LoadAssignment struct {
					Endpoints []struct {
						LBEndpoints []struct {
							Endpoint struct {
								Address struct {
									SocketAddress struct {
										Address   string
										PortValue json.Number `json:"port_value"`
									} `json:"socket_address"`
								}
							}
						} `json:"lb_endpoints"`
					}
				} `json:"load_assignment"`
			}
		} `json:"static_resources"`
	}
	if err := yaml.Unmarshal([]byte(stdout), &bootstrap); err != nil {
		t.Fatal(err)
	}
	server := bootstrap.StaticResources.Clusters[0].LoadAssignment.Endpoints[0].LBEndpoints[0].Endpoint.Address.SocketAddress
	clitest.Run(t, url, "", "problems") // When this returns, the rule is published.
	poll := append(append([]byte(`{"node":`), bootstrap.Node...), '}')
	answer, err := http.Post("http://"+server.Address+":"+server.PortValue.String()+"/v3/discovery:clusters", "application/json", bytes.NewReader(poll))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var body bytes.Buffer
	if _, err := body.ReadFrom(answer.Body); err != nil {
		t.Fatal(err)
	}
	if answer.StatusCode != http.StatusOK || !strings.Contains(body.String(), "|http|version=v2") {
		t.Errorf("%s answers %d: %s", poll, answer.StatusCode, &body)
	}
}
