package traffic_test

import (
	"bytes"
	"crypto/tls"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/pilot-api/pilot-api/envoy/envoytest"
	"github.com/pilot-api/pilot-api/explain"
)

// nameRows returns the tables for connections that begin TLS, to addresses that the proxy
// knows and to one that it does not know.
func nameRows(t *testing.T, ways []way) string {
	all, others := lines(t, "names.txt")
	var out strings.Builder
	for _, to := range []struct {
		ip, title string
		known     bool
	}{
		{"10.20.0.9", "an address of no ServiceEntry", false},
		{"10.20.0.6", "`10.20.0.6`, the address of `addressed.example.com`", true},
		{"10.20.1.9", "`10.20.1.9`, an address of `*.wide.example`", true},
	} {
		out.WriteString("\nTo " + to.title + ":\n\n")
		var captured []way
		for _, w := range ways {
			if w.title != "proxy port" && (w.title != "gateway" || !to.known) {
				captured = append(captured, w)
			}
		}
		out.WriteString(head("Server name", captured))
		for _, name := range all {
			var cells []string
			for _, w := range captured {
				got := connected(t, w, to.ip, name)
				cells = append(cells, got)
				if strings.HasPrefix(got, "out.") || got == goesOn && (to.known || !others[name]) {
					t.Errorf("%s: %s to %s: %q passes the rule", w.title, name, to.ip, got)
				}
				testExplainedName(t, w, to.ip, name, got)
			}
			out.WriteString(row(name, cells))
		}
	}
	return out.String()
}

// connected returns what becomes of a connection: the name that the backend writes, or one of
// the page's words.
func connected(t *testing.T, w way, ip, name string) string {
	t.Helper()
	conn := w.dial(ip, 443)
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(60 * time.Second)); err != nil {
		t.Fatal(err)
	}
	_, _ = conn.Write(clientHello(t, name))
	text, _ := io.ReadAll(conn)
	switch got := string(text); {
	case got == gateCluster:
		return byRule
	case got == "" || text[0] == tlsAlert:
		return "closed"
	default:
		return got
	}
}

const (
	gateCluster = "out.gate.example.com|external-TLS-443" // where the rule sends

	tlsHandshake, tlsAlert = 0x16, 0x15
	notTLS                 = "\x01plain\n"
)

// clientHello returns the beginning of a TLS connection that asks for a name, to the letter.
// Package crypto/tls sends no address and no final dot. So clientHello makes it ask for
// another name of the same length, and replaces that.
func clientHello(t *testing.T, name string) []byte {
	t.Helper()
	if name == "no TLS" {
		return []byte(notTLS)
	}
	placeholder := strings.Repeat("x", len(name))
	if name == "no server name" {
		placeholder = ""
	}
	ours, theirs := net.Pipe()
	defer ours.Close()
	go func() {
		_ = tls.Client(theirs, &tls.Config{ServerName: placeholder, InsecureSkipVerify: true}).Handshake()
		_ = theirs.Close()
	}()
	head := make([]byte, 5)
	if _, err := io.ReadFull(ours, head); err != nil {
		t.Fatal(err)
	}
	hello := make([]byte, int(head[3])<<8|int(head[4]))
	if _, err := io.ReadFull(ours, hello); err != nil {
		t.Fatal(err)
	}
	if placeholder != "" {
		if bytes.Count(hello, []byte(placeholder)) != 1 {
			t.Fatalf("the hello has %q more than once", placeholder)
		}
		hello = bytes.Replace(hello, []byte(placeholder), []byte(name), 1)
	}
	return append(head, hello...)
}

// testExplainedName checks that package explain says of a connection where it went.
func testExplainedName(t *testing.T, w way, ip, name, got string) {
	t.Helper()
	if strings.Contains(name, " ") {
		return
	}
	r := w.asked(ip, 443)
	r.Method, r.Scheme, r.Host, r.Path = "GET", "https", name, "/"
	e := explain.Proxy{Config: w.cfg, IP: envoytest.ProxyIP}.Explain(r)
	said := "closed"
	if e.Forward != nil {
		switch cluster := e.Forward.Clusters[0].Name; cluster {
		case gateCluster:
			said = byRule
		case "PassthroughCluster":
			said = goesOn
		case "BlackHoleCluster":
		default:
			said = cluster
		}
	}
	if said != got {
		t.Errorf("%s: %s to %s: got %s, explained as %s: %+v", w.title, name, ip, got, said, e)
	}
}
