package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/pilot-api/pilot-api/server/rest"
)

// TestSockets: a server tells where its sockets are, answers over them, and nobody else
// on the machine can open them. One that was killed leaves them to the next, and one
// that is stopped takes them away.
func TestSockets(t *testing.T) {
	data := t.TempDir()
	p := startProgram(t, data)
	told := p.sockets(t)
	if told.GRPC != filepath.Join(data, grpcSocket) || told.HTTP != filepath.Join(data, httpSocket) || told.Streams == "" {
		t.Errorf("the sockets are %+v", told)
	}
	for _, file := range []string{told.GRPC, told.HTTP} {
		if info, err := os.Lstat(file); err != nil || info.Mode() != fs.ModeSocket|0o600 {
			t.Errorf("%s: %v %v", file, info, err)
		}
		if err := reach(file); err != nil {
			t.Errorf("its user cannot open %s: %v", file, err)
		}
		// Of a folder that everybody may look into as well.
		if err := os.Chmod(data, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := asNobody(t, func() error { return reach(file) }); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("another user opens %s: %v", file, err)
		}
	}
	over := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", told.HTTP)
	}}}
	for _, ask := range []struct {
		method, path, header string
		code                 int
	}{
		{"POST", "/v3/discovery:listeners", "", http.StatusOK},
		{"POST", "/v3/discovery:listeners", "X-Envoy-Internal", http.StatusOK},
		{"POST", "/v3/discovery:listeners", "X-Request-Id", http.StatusForbidden},
		{"POST", "/v3/discovery:secrets", "X-Forwarded-Proto", http.StatusForbidden},
		{"POST", "/v3/discovery:secrets", "Via", http.StatusForbidden},
		{"GET", "/v3/discovery:sockets", "", http.StatusForbidden},
		{"GET", "/readyz", "", http.StatusForbidden},
		{"GET", "/apis/networking.istio.io/v1/virtualservices", "", http.StatusForbidden},
	} {
		body := strings.NewReader(`{"node": {"id": "sidecar~10.0.0.1~a.default~default.svc.cluster.local"}}`)
		req, err := http.NewRequestWithContext(t.Context(), ask.method, "http://pilot-api"+ask.path, body)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		if ask.header != "" {
			req.Header.Set(ask.header, "true")
		}
		resp, err := over.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != ask.code {
			t.Errorf("%s %s with the header %q over the socket: %s, want %d", ask.method, ask.path, ask.header, resp.Status, ask.code)
		}
	}
	over.CloseIdleConnections()

	p.Kill()
	p = startProgram(t, data)
	if again := p.sockets(t); again.GRPC != told.GRPC || reach(again.GRPC) != nil {
		t.Errorf("after a kill the sockets are %+v", again)
	}
	if err := p.Stop(); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{told.GRPC, told.HTTP} {
		if _, err := os.Lstat(file); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is left: %v", file, err)
		}
	}
}

// sockets are those that the server tells.
func (p *program) sockets(t *testing.T) rest.Sockets {
	t.Helper()
	resp, err := http.Get(p.URL + "/v3/discovery:sockets")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	var told rest.Sockets
	if err := errors.Join(err, json.Unmarshal(text, &told)); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return told
}

func reach(socket string) error {
	conn, err := net.Dial("unix", socket)
	if err == nil {
		err = conn.Close()
	}
	return err
}

// asNobody does something with the rights of another user on files.
func asNobody(t *testing.T, do func() error) error {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Log("only root can try as another user")
		return fs.ErrPermission
	}
	result := make(chan error)
	go func() {
		runtime.LockOSThread() // It is not unlocked: the thread ends with its rights.
		if err := syscall.Setfsuid(65534); err != nil {
			result <- err
			return
		}
		result <- do()
	}()
	return <-result
}

// TestSocketsOfTwoServers: a server leaves alone what another one answers on, and says
// so; it takes away only its own.
func TestSocketsOfTwoServers(t *testing.T) {
	var log bytes.Buffer
	o := options{dataDir: t.TempDir(), grpcListen: "127.0.0.1:0"}
	first := o.openSockets(slog.New(slog.NewTextHandler(&log, nil)))
	defer first.remove()
	if log.Len() > 0 {
		t.Errorf("the first says %s", &log)
	}
	second := o.openSockets(slog.New(slog.NewTextHandler(&log, nil)))
	if told := second.addresses(nil); told != (rest.Sockets{}) || !strings.Contains(log.String(), "another server answers on") {
		t.Errorf("the second has %+v and says %s", told, &log)
	}
	second.remove()
	if err := reach(first.grpc.path()); err != nil {
		t.Errorf("the first has lost its socket: %v", err)
	}
	// What has taken its place stays.
	if err := os.Remove(first.http.path()); err != nil {
		t.Fatal(err)
	}
	other, err := openSocket(o.dataDir, httpSocket)
	if err != nil {
		t.Fatal(err)
	}
	defer other.remove()
	first.remove()
	if err := reach(other.path()); err != nil {
		t.Errorf("the other has lost its socket: %v", err)
	}
}

// TestNoSocket: a server whose data folder can have no socket says so.
func TestNoSocket(t *testing.T) {
	var log bytes.Buffer
	o := options{dataDir: filepath.Join(t.TempDir(), strings.Repeat("a", 120)), grpcListen: "127.0.0.1:0"}
	local := o.openSockets(slog.New(slog.NewTextHandler(&log, nil)))
	defer local.remove()
	if local.grpc != nil || strings.Count(log.String(), "no private keys for proxies of this machine") != 2 {
		t.Errorf("%+v: %s", local, &log)
	}
}
