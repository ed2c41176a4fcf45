package traffic_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/envoy/envoytest"
	"github.com/pilot-api/pilot-api/explain"
	"github.com/pilot-api/pilot-api/internal/golden"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/mesh"
)

// A way is one in which the requests of the page come to a proxy.
type way struct {
	title string
	cfg   *ir.Config
	dial  func(ip string, port int) net.Conn
	// asked returns a request that comes in this way, for package explain.
	asked func(ip string, port int) explain.Request
}

// These words of the page say what becomes of a request. All other words say that the proxy
// refuses the request or closes the connection.
const (
	byRule     = "rule"
	goesOn     = "goes on"
	passesRule = "SERVICE" // It is answered as if there were no rule.
)

// TestMatchingPage sends every spelling of the page, in every way, to a real Envoy. It checks
// that no request for a host with a rule passes the rule, and that package explain says of
// each request what the Envoy does. It writes the results to the page.
//
// Observes VirtualService hosts http[].match[].uri.prefix http[].match[].scheme.exact http[].match[].queryParams http[].match[].headers http[].match[].method.exact tls[].match[].sniHosts
func TestMatchingPage(t *testing.T) {
	objects, err := os.ReadFile("../../testdata/matching/objects.yaml")
	if err != nil {
		t.Fatal(err)
	}
	ways := startWays(t, string(objects))
	page, err := os.ReadFile("../../testdata/matching/page.md.tmpl")
	if err != nil {
		t.Fatal(err)
	}
	text := string(page)
	for name, rows := range map[string]func(*testing.T, []way) string{"hosts": hostRows, "paths": pathRows, "rewrites": rewriteRows, "parts": partRows, "schemes": schemeRows, "names": nameRows} {
		text = strings.Replace(text, "{"+name+"}\n", rows(t, ways), 1)
	}
	golden.Page(t, "../../docs/reference/matching.md", text)
}

// startWays returns the ways to a sidecar, in both modes for unknown hosts, and to a router.
func startWays(t *testing.T, objects string) []way {
	t.Helper()
	var out []way
	for _, mode := range []mesh.OutboundMode{mesh.AllowAny, mesh.RegistryOnly} {
		settings := mesh.DefaultSettings()
		settings.OutboundTrafficPolicy, settings.ProxyHTTPPort = mode, 15002
		cfg, e := startMatching(t, settings, callerNode, objects)
		out = append(out, way{string(mode), cfg, e.Captured, func(ip string, port int) explain.Request {
			return explain.Request{Way: explain.Captured, Address: ip, Port: port}
		}})
		if mode == mesh.AllowAny {
			out = append(out, way{"proxy port", cfg, func(string, int) net.Conn { return e.Dial("http_127.0.0.1_15002") }, func(string, int) explain.Request {
				return explain.Request{Way: explain.Asked, Address: "127.0.0.1", Port: 15002}
			}})
		}
	}
	cfg, e := startMatching(t, mesh.DefaultSettings(), routerNode, objects)
	return append(out, way{"gateway", cfg, func(_ string, port int) net.Conn { return e.DialPort(port) }, func(_ string, port int) explain.Request {
		return explain.Request{Way: explain.Direct, Address: envoytest.ProxyIP, Port: port}
	}})
}

// startMatching compiles objects for a proxy and runs an Envoy with the result. The Envoy has
// one backend in place of every service, and another one in place of the destinations of
// requests to unknown hosts.
func startMatching(t *testing.T, settings *mesh.Settings, node, objects string) (*ir.Config, *envoytest.Envoy) {
	t.Helper()
	compiled, _ := compiledFor(t, settings, node, objects)
	cfg := selfContained(t, compiled)
	for i, c := range compiled.Clusters {
		switch {
		case c.Name == ir.Nobody:
			cfg.Clusters[i] = c
		case strings.Contains(c.Name, "-TLS-"):
			cfg.Clusters[i] = namedBackend(t, c.Name)
		case c.Name == ir.Passthrough:
			cfg.Clusters[i] = echoing(t, c.Name, goesOn)
		default:
			cfg.Clusters[i] = echoing(t, c.Name, passesRule)
		}
	}
	return cfg, envoytest.Start(t, cfg)
}

// echoing returns a cluster whose endpoint answers with a word, the host and the header
// x-secret of the request. If a client begins TLS, the endpoint writes the word and closes the
// connection.
func echoing(t *testing.T, name, word string) *ir.Cluster {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s host=%s secret=%s", word, r.Host, r.Header.Get("x-secret"))
	}))
	server.Listener = tlsSays{server.Listener, word}
	server.Start()
	t.Cleanup(server.Close)
	return envoytest.Cluster(name, server.Listener.Addr())
}

// A tlsSays is a listener that writes a word to a connection if the connection does not begin
// with an HTTP request.
type tlsSays struct {
	net.Listener
	word string
}

func (l tlsSays) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &peeked{Conn: conn, reader: bufio.NewReader(conn), word: l.word}, nil
}

type peeked struct {
	net.Conn
	reader *bufio.Reader
	word   string
	begun  bool
}

func (p *peeked) Read(into []byte) (int, error) {
	if !p.begun {
		p.begun = true
		if first, err := p.reader.Peek(1); err == nil && (first[0] == tlsHandshake || first[0] == notTLS[0]) {
			_, _ = io.WriteString(p.Conn, p.word)
			return 0, io.EOF
		}
	}
	return p.reader.Read(into)
}

// namedBackend returns a cluster whose endpoint writes the cluster's name to every connection
// and closes it.
func namedBackend(t *testing.T, name string) *ir.Cluster {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = bufio.NewReader(conn).ReadByte()
			_, _ = io.WriteString(conn, name)
			_ = conn.Close()
		}
	}()
	return envoytest.Cluster(name, listener.Addr())
}

// lines returns the lines of a file of the page. The lines after a heading name other hosts,
// which have no rule.
func lines(t *testing.T, file string) (all []string, others map[string]bool) {
	t.Helper()
	text, err := os.ReadFile("../../testdata/matching/" + file)
	if err != nil {
		t.Fatal(err)
	}
	others = map[string]bool{}
	other := false
	for _, line := range strings.Split(strings.TrimRight(string(text), "\n"), "\n") {
		if strings.HasPrefix(line, "# ") {
			other = true
			continue
		}
		all, others[line] = append(all, line), other
	}
	return all, others
}

// row returns a row of a table of the page.
func row(first string, cells []string) string {
	return fmt.Sprintf("| `%s` | %s |\n", strings.ReplaceAll(first, "|", `\|`), strings.Join(cells, " | "))
}

func head(first string, ways []way) string {
	titles := make([]string, len(ways))
	for i, w := range ways {
		titles[i] = w.title
	}
	return fmt.Sprintf("| %s | %s |\n%s\n", first, strings.Join(titles, " | "), strings.Repeat("|---", len(ways)+1)+"|")
}
