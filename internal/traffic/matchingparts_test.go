package traffic_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pilot-api/pilot-api/envoy/envoytest"
	"github.com/pilot-api/pilot-api/explain"
)

// partRows has the requests whose query parameters, headers or methods a rule looks at.
func partRows(t *testing.T, ways []way) string {
	all, others := lines(t, "parts.txt")
	out := head("Sent to `ext.example.com`", ways)
	for _, line := range all {
		var cells []string
		for _, w := range ways {
			got := sendPart(t, w, line)
			word := got.String()
			if word == passesRule && others[line] {
				word = "service"
			}
			if word == passesRule || word == goesOn || others[line] && word == byRule {
				t.Errorf("%s: %s: %d %s: not as the list says", w.title, line, got.status, got.body)
			}
			testPartExplained(t, w, line, got)
			cells = append(cells, word)
		}
		out += row(line, cells)
	}
	return out
}

// readPart returns the method, the path and the headers of a line, "GET /role, x-role: guest".
func readPart(line string) (method, path string, headers []string) {
	parts := strings.Split(line, ", ")
	method, path, _ = strings.Cut(parts[0], " ")
	return method, path, parts[1:]
}

func sendPart(t *testing.T, w way, line string) seenAnswer {
	t.Helper()
	conn := w.dial(ruledIP, 80)
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	method, path, headers := readPart(line)
	target := path
	if w.title == "proxy port" {
		target = "http://ext.example.com" + path
	}
	lines := append([]string{method + " " + target + " HTTP/1.1", "Host: ext.example.com", "Content-Length: 0", "Connection: close"}, headers...)
	return overHTTP1(t, conn, strings.Join(lines, "\r\n")+"\r\n\r\n")
}

// testPartExplained checks that package explain says of a request what the Envoy did.
func testPartExplained(t *testing.T, w way, line string, got seenAnswer) {
	t.Helper()
	method, path, headers := readPart(line)
	r := w.asked(ruledIP, 80)
	r.Method, r.Scheme, r.Host, r.Path = method, "http", "ext.example.com", path
	var err error
	if r.Headers, err = explain.ParseHeaders(headers); err != nil {
		t.Fatal(err)
	}
	e := explain.Proxy{Config: w.cfg, IP: envoytest.ProxyIP}.Explain(r)
	if refused := e.Answer != nil && e.Answer.Status == http.StatusForbidden; refused != (got.status == http.StatusForbidden) {
		t.Errorf("%s: %s: got %s, explained as %+v", w.title, line, got, e)
	}
}
