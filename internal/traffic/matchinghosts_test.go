package traffic_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/pilot-api/pilot-api/envoy/envoytest"
	"github.com/pilot-api/pilot-api/explain"
)

const ruledIP = "10.20.0.5" // of ext.example.com

// A seenAnswer is an answer to a request. A status of 0 says that the proxy closed the
// connection.
type seenAnswer struct {
	status int
	body   string
}

func (a seenAnswer) String() string {
	switch {
	case a.status == 0:
		return "closed"
	case a.status == http.StatusForbidden && a.body == "by rule":
		return byRule
	case a.status == http.StatusOK:
		word, _, _ := strings.Cut(a.body, " host=")
		return word
	case a.status == http.StatusForbidden:
		return "403, no host"
	}
	return fmt.Sprint(a.status)
}

func hostRows(t *testing.T, ways []way) string {
	all, others := lines(t, "hosts.txt")
	if len(all) < 60 {
		t.Errorf("the page has %d spellings of hosts", len(all))
	}
	out := head("Sent for `/admin`", ways)
	for _, line := range all {
		var cells []string
		for _, w := range ways {
			got := sendHost(t, w, line, "/admin")
			cells = append(cells, got.String())
			if word := got.String(); word == passesRule || word == goesOn && !others[line] {
				t.Errorf("%s: %s: %d %s: it passes the rule", w.title, line, got.status, got.body)
			}
			if got.String() == goesOn && strings.Contains(strings.ToLower(got.body), " host=ext.example.com") {
				t.Errorf("%s: %s: the place where it goes on takes it for a host with a rule: %s", w.title, line, got.body)
			}
			if got.String() == byRule {
				testFollowed(t, w, line)
			}
			testExplained(t, w, line, "/admin", got)
		}
		out += row(line, cells)
	}
	return out
}

// testFollowed checks that a request in the same spelling, for a path that the rule lets
// through, comes to the service without the header that the rule removes and without the
// final dot of the host.
func testFollowed(t *testing.T, w way, line string) {
	t.Helper()
	got := sendHost(t, w, line, "/")
	_, rest, _ := strings.Cut(got.body, " host=")
	host, secret, _ := strings.Cut(rest, " secret=")
	if got.status != http.StatusOK || secret != "" || host == "" || strings.HasSuffix(host, ".") || strings.Contains(host, ".:") {
		t.Errorf("%s: %s: %d %q", w.title, line, got.status, got.body)
	}
}

// testExplained checks that package explain says of a request what became of it. It checks
// only requests in HTTP/1.1 with one Host header.
func testExplained(t *testing.T, w way, line, path string, got seenAnswer) {
	t.Helper()
	host, ok := strings.CutPrefix(line, "Host:")
	host = strings.TrimSpace(host)
	if !ok || got.status == http.StatusBadRequest { // Envoy does not read such a head at all.
		return
	}
	r := w.asked(ruledIP, 80)
	r.Method, r.Scheme, r.Host, r.Path = http.MethodGet, "http", host, path
	e := explain.Proxy{Config: w.cfg, IP: envoytest.ProxyIP}.Explain(r)
	switch said := e.Answer; {
	case said == nil && e.Forward == nil:
		t.Errorf("%s: %s %s: got %s, explained as %q", w.title, line, path, got, e.Reason)
	case said == nil && got.status != http.StatusOK, said != nil && said.Status != got.status:
		t.Errorf("%s: %s %s: got %s, explained as %+v", w.title, line, path, got, e)
	}
}

// sendHost sends the request that a line of the page describes, and returns the answer.
func sendHost(t *testing.T, w way, line, path string) seenAnswer {
	t.Helper()
	conn := w.dial(ruledIP, 80)
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	const rest = "\r\nx-secret: s\r\nConnection: close\r\n\r\n"
	if fields, ok := strings.CutPrefix(line, "HTTP/2, "); ok {
		return overHTTP2(t, conn, fields, path)
	}
	request, host, _ := strings.Cut(line, ", Host: ")
	text := ""
	switch {
	case strings.HasPrefix(line, "Host:"):
		text = "GET " + path + " HTTP/1.1\r\n" + line + rest
	case strings.HasPrefix(line, "two Host headers: "):
		text = "GET " + path + " HTTP/1.1\r\nHost: ext.example.com\r\nHost: other.example" + rest
	case strings.HasPrefix(line, "GET "):
		text = strings.Replace(request, "/admin", path, 1) + " HTTP/1.1\r\nHost: " + host + rest
	case line == "HTTP/1.0, no Host", line == "HTTP/1.1, no Host":
		text = "GET " + path + " " + line[:len("HTTP/1.1")] + rest
	default:
		text = "GET " + path + " " + request + "\r\nHost: " + host + rest
	}
	return overHTTP1(t, conn, text)
}

func overHTTP1(t *testing.T, conn net.Conn, text string) seenAnswer {
	t.Helper()
	got := envoytest.Ask(t, conn, text)
	return seenAnswer{got.Status, got.Body}
}

// overHTTP2 sends a request with the fields of a line, such as ":authority: a, host: b".
func overHTTP2(t *testing.T, conn net.Conn, fields, path string) seenAnswer {
	t.Helper()
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	write := func(name, value string) {
		_ = encoder.WriteField(hpack.HeaderField{Name: name, Value: value}) // A buffer takes all.
	}
	write(":method", "GET")
	if !strings.Contains(fields, ":scheme: ") {
		write(":scheme", "http")
	}
	write(":path", path)
	for field := range strings.SplitSeq(fields, ", ") {
		name, value, ok := strings.Cut(field[1:], ": ")
		if ok {
			write(field[:1]+name, value)
		}
	}
	write("x-secret", "s")
	_, _ = io.WriteString(conn, http2.ClientPreface)
	framer := http2.NewFramer(conn, conn)
	framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	_ = framer.WriteSettings()
	_ = framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block.Bytes(), EndStream: true, EndHeaders: true})
	var out seenAnswer
	for {
		frame, err := framer.ReadFrame()
		if err != nil {
			return out
		}
		switch frame := frame.(type) {
		case *http2.MetaHeadersFrame:
			if _, err := fmt.Sscan(frame.PseudoValue("status"), &out.status); err != nil {
				t.Errorf("%s: %v", fields, err)
			}
		case *http2.DataFrame:
			out.body += string(frame.Data())
		case *http2.RSTStreamFrame, *http2.GoAwayFrame:
			return out
		}
		if h := frame.Header(); h.StreamID == 1 && h.Flags.Has(http2.FlagDataEndStream) {
			return out
		}
	}
}

func pathRows(t *testing.T, ways []way) string    { return rowsOfPaths(t, ways, "paths.txt") }
func rewriteRows(t *testing.T, ways []way) string { return rowsOfPaths(t, ways, "rewrites.txt") }

func rowsOfPaths(t *testing.T, ways []way, file string) string {
	all, others := lines(t, file)
	out := head("Path sent to `ext.example.com`", ways)
	for _, path := range all {
		var cells []string
		for _, w := range ways {
			got := sendHost(t, w, "Host: ext.example.com", path)
			word := got.String()
			if word == passesRule && others[path] {
				word = "service"
			}
			cells = append(cells, word)
			if word == passesRule || word == goesOn {
				t.Errorf("%s: %s: %d %s: it passes the rule", w.title, path, got.status, got.body)
			}
			testExplained(t, w, "Host: ext.example.com", path, got)
		}
		out += row(path, cells)
	}
	return out
}
