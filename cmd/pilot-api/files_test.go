package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"testing"
)

// TestFewFiles: with little that may be open, and more idle connections than
// that, the program writes on past many snapshots of its log, for each of which
// etcd opens files or ends.
func TestFewFiles(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip(err)
	}
	const files, idle, writes = 256, 400, 350
	p := startProgramAs(t, []string{sh, "-c", fmt.Sprintf(`ulimit -n %d && exec "$0" "$@"`, files), os.Args[0]}, t.TempDir())
	for range idle {
		conn, err := net.Dial("tcp", p.addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		fmt.Fprintf(conn, "GET /healthz HTTP/1.1\r\nHost: %s\r\n\r\n", p.addr)
		// A connection is idle once it has its answer. If all were being answered, the
		// server would close the next one.
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	for i := range writes {
		if !p.post(fmt.Sprintf("rule-%d", i), 1000) {
			t.Fatalf("write %d failed; log:\n%s", i, p.Tail())
		}
	}
	for _, path := range []string{"/readyz", rulesPath, rulesPath + fmt.Sprintf("/rule-%d", writes-1), "/v1/clusters/x/sidecar~10.0.0.1~x~default.svc.cluster.local"} {
		resp, err := http.Get(p.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Errorf("%s: %s: %.200s", path, resp.Status, text)
		}
	}
}
