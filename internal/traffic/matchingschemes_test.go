package traffic_test

import (
	"strings"
	"testing"
	"time"
)

// schemeRows returns the table for a rule about the scheme http, over connections without
// TLS. At a gateway, no request passes the rule, whatever scheme it names.
func schemeRows(t *testing.T, ways []way) string {
	all, _ := lines(t, "schemes.txt")
	out := head("Sent for `/plain`", ways)
	for _, line := range all {
		var cells []string
		for _, w := range ways {
			got := sendScheme(t, w, line)
			word := got.String()
			if w.title == "gateway" && word != byRule {
				t.Errorf("%s: %s: %d %s: it passes the rule", w.title, line, got.status, got.body)
			}
			if word == passesRule {
				word = "service"
			}
			cells = append(cells, word)
		}
		out += row(line, cells)
	}
	return out
}

func sendScheme(t *testing.T, w way, line string) seenAnswer {
	t.Helper()
	const path = "/plain"
	if strings.HasPrefix(line, "HTTP/2, ") {
		return sendHost(t, w, line, path)
	}
	conn := w.dial(ruledIP, 80)
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	head := strings.ReplaceAll(line, ", ", "\r\n")
	return overHTTP1(t, conn, "GET "+path+" "+head+"\r\nHost: ext.example.com\r\nConnection: close\r\n\r\n")
}
