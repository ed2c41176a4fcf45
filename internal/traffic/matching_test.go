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

// way is how the requests of the page come to a proxy.
type way struct {
	title string
	cfg   *ir.Config
	dial  func(ip string, port int) net.Conn
	// asked is a request on that way, for package explain.
	asked func(ip string, port int) explain.Request
}

// What becomes of a request of the page. All others are refused or closed.
const (
	byRule     = "rule"
	goesOn     = "goes on"
	passesRule = "SERVICE" // It is answered as if there were no rule.
)

// TestMatchingPage sends every spelling of the page, in every way, to a real
// Envoy. Those that name a host with a rule never pass the rule, and explain says
// of each what the Envoy does.
//
// Observes VirtualService hosts http[].match[].uri.prefix http[].match[].scheme.exact tls[].match[].sniHosts
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
	for name, rows := range map[string]func(*testing.T, []way) string{"hosts": hostRows, "paths": pathRows, "schemes": schemeRows, "names": nameRows} {
		text = strings.Replace(text, "{"+name+"}\n", rows(t, ways), 1)
	}
	golden.Page(t, "../../docs/reference/matching.md", text)
}

// startWays are those of a sidecar, in both modes for unknown hosts, and of a
// router.
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

// startMatching runs an Envoy whose clusters are the service, which answers with
// what it was asked for, and the place where unknown hosts go on to.
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

// echoing is a cluster whose endpoint says what it was asked for, and a word first.
// It speaks to a client that begins TLS too: it says the word and hangs up.
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

// tlsSays is a listener that answers a word to what is not an HTTP request.
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

// namedBackend says the cluster's name to every connection, and hangs up.
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

// lines of a file of the page, and which of them are under the mark that they name
// another host, so that no rule is for them.
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

// row of a table of the page.
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
