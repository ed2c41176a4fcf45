package envoy_test

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
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	proxyprotocolv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/listener/proxy_protocol/v3"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/ir"
)

// liveEnvoy is a real Envoy with the resources of a Config in its bootstrap.
type liveEnvoy struct {
	t     *testing.T
	admin string
	ports map[string]int // by listener name
}

// startEnvoy runs until the test ends. Listeners that bind do so on a free
// port. The one that hands off reads the original destination from the PROXY
// protocol, which stands for a captured connection without iptables.
func startEnvoy(t *testing.T, cfg *ir.Config) *liveEnvoy {
	t.Helper()
	program := outside.Tool(t, "envoy")
	b := parseBootstrap(t, standalone(t, encodedV3(cfg)))
	b.Admin.Address.GetSocketAddress().PortSpecifier = freePort
	for _, l := range b.StaticResources.Listeners {
		if l.GetBindToPort().GetValue() {
			l.Address.GetSocketAddress().PortSpecifier = freePort
		}
		if l.GetUseOriginalDst().GetValue() {
			l.ListenerFilters = append(l.ListenerFilters, proxyProtocol(t))
		}
	}
	dir := t.TempDir()
	config, adminFile := filepath.Join(dir, "envoy.json"), filepath.Join(dir, "admin")
	if err := os.WriteFile(config, bootstrapText(t, b), 0o600); err != nil {
		t.Fatal(err)
	}
	runEnvoy(t, exec.CommandContext(t.Context(), program, "-c", config, "--admin-address-path", adminFile,
		"--concurrency", "1", "--disable-hot-restart", "-l", "warning"))
	e := &liveEnvoy{t: t}
	e.await(adminFile)
	e.readPorts()
	return e
}

var freePort = &corev3.SocketAddress_PortValue{}

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

func runEnvoy(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
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
}

// await polls, as a process can tell in no other way that it is up.
func (e *liveEnvoy) await(adminFile string) {
	e.t.Helper()
	deadline := time.After(30 * time.Second)
	for ready := false; !ready; {
		if address, err := os.ReadFile(adminFile); err == nil && len(address) > 0 {
			e.admin = "http://" + string(address)
			resp, err := http.Get(e.admin + "/ready")
			if err == nil {
				ready = resp.StatusCode == http.StatusOK
				resp.Body.Close()
			}
		}
		select {
		case <-deadline:
			e.t.Fatal("Envoy is not ready after 30 s")
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (e *liveEnvoy) readPorts() {
	e.t.Helper()
	resp, err := http.Get(e.admin + "/listeners?format=json")
	if err != nil {
		e.t.Fatal(err)
	}
	defer resp.Body.Close()
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
	if err := json.NewDecoder(resp.Body).Decode(&status); err != nil {
		e.t.Fatal(err)
	}
	e.ports = map[string]int{}
	for _, l := range status.Listeners {
		e.ports[l.Name] = l.Address.Socket.Port
	}
}

func (e *liveEnvoy) dial(listener string) net.Conn {
	e.t.Helper()
	port, ok := e.ports[listener]
	if !ok {
		e.t.Fatalf("no listener %s among %v", listener, e.ports)
	}
	conn, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", fmt.Sprint(port)))
	if err != nil {
		e.t.Fatal(err)
	}
	return conn
}

// captured is a connection that was going to the address.
func (e *liveEnvoy) captured(ip string, port int) net.Conn {
	e.t.Helper()
	conn := e.dial("virtual")
	fmt.Fprintf(conn, "PROXY TCP4 127.0.0.1 %s 5555 %d\r\n", ip, port)
	return conn
}

// exchange writes all of a text and reads until the other side closes.
func exchange(t *testing.T, conn net.Conn, text string) string {
	t.Helper()
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	// A side that closes at once may do so before or after the write.
	_, _ = io.WriteString(conn, text)
	answer, _ := io.ReadAll(conn)
	return string(answer)
}

// adminText is what the administration answers.
func (e *liveEnvoy) adminText(path string) string {
	e.t.Helper()
	resp, err := http.Get(e.admin + path)
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
