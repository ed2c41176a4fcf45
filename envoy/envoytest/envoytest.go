// Package envoytest runs a real Envoy for tests, with backends behind it, and sends requests
// to it. A test that uses it is skipped if there is no Envoy, or fails if CI is set.
package envoytest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	proxyprotocolv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/listener/proxy_protocol/v3"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/ir"
)

// ProxyIP is the address of the proxy. Listeners without an address of their own get it.
const ProxyIP = "10.0.0.7"

// ServiceIP and ServicePort are where the tests' service is said to be. Nothing is there.
const (
	ServiceIP   = "10.1.0.5"
	ServicePort = 80
)

// An Envoy is a running Envoy. Its methods fail the test that started it.
type Envoy struct {
	Admin string         // the URL of its administration, without a path
	Ports map[string]int // the open port of each listener, by the listener's name
	t     *testing.T
}

// Start runs an Envoy with the resources of a configuration until the test ends, and
// returns when the Envoy is ready. Each listener that binds gets a free port. The listener
// that captures connections reads their original destination from the PROXY protocol, so
// that no test needs iptables.
func Start(t *testing.T, cfg *ir.Config) *Envoy {
	t.Helper()
	return StartWorkers(t, cfg, 1)
}

// StartWorkers is Start for an Envoy with a number of worker threads.
func StartWorkers(t *testing.T, cfg *ir.Config, workers int) *Envoy {
	t.Helper()
	b := ParseBootstrap(t, Standalone(t, Encode(cfg)))
	b.Admin.Address.GetSocketAddress().PortSpecifier = FreePort
	for _, l := range b.StaticResources.Listeners {
		if l.GetBindToPort().GetValue() {
			l.Address.GetSocketAddress().PortSpecifier = FreePort
		}
		if l.GetUseOriginalDst().GetValue() {
			l.ListenerFilters = append(l.ListenerFilters, proxyProtocol(t))
		}
	}
	config := filepath.Join(t.TempDir(), "envoy.json")
	if err := os.WriteFile(config, BootstrapText(t, b), 0o600); err != nil {
		t.Fatal(err)
	}
	e := Run(t, exec.CommandContext(t.Context(), outside.Tool(t, "envoy"), "-c", config,
		"--concurrency", strconv.Itoa(workers), "--disable-hot-restart", "-l", "warning"), "/ready")
	e.readPorts()
	return e
}

// FreePort lets the system choose a port.
var FreePort = &corev3.SocketAddress_PortValue{}

// Run starts the command of an Envoy, and returns when the Envoy's administration answers a
// path with 200. The context of the command must end with the test. If the test fails, Run
// logs what the Envoy wrote.
func Run(t *testing.T, cmd *exec.Cmd, path string) *Envoy {
	t.Helper()
	adminFile := filepath.Join(t.TempDir(), "admin")
	cmd.Args = append(cmd.Args, "--admin-address-path", adminFile)
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		err := cmd.Wait()
		if t.Failed() {
			t.Logf("envoy: %v\n%s", err, log.Bytes())
		}
	})
	e := &Envoy{t: t}
	e.await(adminFile, path)
	return e
}

func proxyProtocol(t *testing.T) *listenerv3.ListenerFilter {
	t.Helper()
	config, err := anypb.New(&proxyprotocolv3.ProxyProtocol{})
	if err != nil {
		t.Fatal(err)
	}
	return &listenerv3.ListenerFilter{
		Name:       "envoy.filters.listener.proxy_protocol",
		ConfigType: &listenerv3.ListenerFilter_TypedConfig{TypedConfig: config},
	}
}

// await polls, as an Envoy does not say in any other way that it is up.
func (e *Envoy) await(adminFile, path string) {
	e.t.Helper()
	deadline := time.After(time.Minute)
	for ready := false; !ready; {
		if address, err := os.ReadFile(adminFile); err == nil && len(address) > 0 {
			e.Admin = "http://" + string(address)
			resp, err := http.Get(e.Admin + path)
			if err == nil {
				ready = resp.StatusCode == http.StatusOK
				resp.Body.Close()
			}
		}
		select {
		case <-deadline:
			e.t.Fatal("Envoy is not up after a minute")
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (e *Envoy) readPorts() {
	e.t.Helper()
	var status struct {
		Listeners []struct {
			Name    string `json:"name"`
			Address struct {
				Socket struct {
					Port int `json:"port_value"`
				} `json:"socket_address"`
			} `json:"local_address"`
		} `json:"listener_statuses"`
	}
	if err := json.Unmarshal([]byte(e.AdminText("/listeners?format=json")), &status); err != nil {
		e.t.Fatal(err)
	}
	e.Ports = map[string]int{}
	for _, l := range status.Listeners {
		e.Ports[l.Name] = l.Address.Socket.Port
	}
}

// Dial connects to a listener that binds, by the listener's name.
func (e *Envoy) Dial(listener string) net.Conn {
	e.t.Helper()
	port, ok := e.Ports[listener]
	if !ok {
		e.t.Fatalf("no listener %s among %v", listener, e.Ports)
	}
	conn, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", fmt.Sprint(port)))
	if err != nil {
		e.t.Fatal(err)
	}
	return conn
}

// DialPort connects to the one listener for a port of the proxy, at the free port that Start
// gave it.
func (e *Envoy) DialPort(port int) net.Conn {
	e.t.Helper()
	var names []string
	for name := range e.Ports {
		if strings.HasSuffix(name, fmt.Sprintf("_%d", port)) {
			names = append(names, name)
		}
	}
	if len(names) != 1 {
		e.t.Fatalf("%d listeners for port %d among %v, want one", len(names), port, e.Ports)
	}
	return e.Dial(names[0])
}

// Captured returns a connection that a workload at 127.0.0.1 opened to an IPv4 address and
// port, and that the proxy captured.
func (e *Envoy) Captured(ip string, port int) net.Conn {
	e.t.Helper()
	return e.CapturedFrom("127.0.0.1", ip, port)
}

// CapturedFrom is Captured for a workload at another address.
func (e *Envoy) CapturedFrom(client, ip string, port int) net.Conn {
	e.t.Helper()
	conn := e.Dial("virtual")
	fmt.Fprintf(conn, "PROXY TCP4 %s %s 5555 %d\r\n", client, ip, port)
	return conn
}

// AdminText returns the answer of the Envoy's administration to a path.
func (e *Envoy) AdminText(path string) string {
	e.t.Helper()
	resp, err := http.Get(e.Admin + path)
	if err != nil {
		e.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		e.t.Fatal(err)
	}
	return string(text)
}
