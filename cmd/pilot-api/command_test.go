package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/internal/terminal"
	"github.com/pilot-api/pilot-api/internal/testbed"
)

func TestUsage(t *testing.T) {
	badMesh := filepath.Join(t.TempDir(), "mesh.yaml")
	if err := os.WriteFile(badMesh, []byte("proxyListenPort: 99999\nconectTimeout: 1s\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name string
		args []string
		env  map[string]string
		code int
		says []string
	}{
		{"unknown flag", []string{"--lisen", "x"}, nil, exitUsage, []string{"--lisen", "--help"}},
		{"flag that steers terminals", []string{"--\u009b31m\x1b[2J"}, nil, exitUsage, []string{`--\u009b31m\x1b[2J`}},
		{"argument", []string{"serve"}, nil, exitUsage, []string{"serve"}},
		{"address", []string{"--listen", "8080"}, nil, exitUsage, []string{"HOST:PORT"}},
		{"beyond loopback", []string{"--listen", "0.0.0.0:0"}, nil, exitUsage, []string{"--insecure"}},
		{"streams beyond loopback", []string{"--grpc-listen", ":0", "--grpc-tls-cert", "c", "--grpc-tls-key", "k"}, nil, exitUsage, []string{"--grpc-client-ca", "--insecure"}},
		{"half a key pair for streams", []string{"--grpc-tls-cert", "c"}, nil, exitUsage, []string{"--grpc-tls-cert and --grpc-tls-key go together"}},
		{"authorities of proxies alone", []string{"--grpc-client-ca", "c"}, nil, exitUsage, []string{"needs --grpc-tls-cert"}},
		{"certificate for no streams", []string{"--grpc-listen", "", "--grpc-tls-cert", "c", "--grpc-tls-key", "k"}, nil, exitUsage, []string{"need --grpc-listen"}},
		{"no certificate for streams", []string{"--grpc-listen", "127.0.0.1:0", "--listen", "127.0.0.1:0", "--grpc-tls-cert", "no/such", "--grpc-tls-key", "k"}, nil, exitFailed, []string{"--grpc-tls-cert", "no/such"}},
		{"half a key pair", []string{"--etcd-endpoints", "https://127.0.0.1:1", "--etcd-cert", "c"}, nil, exitUsage, []string{"--etcd-key"}},
		{"half a user", []string{"--etcd-endpoints", "https://127.0.0.1:1", "--etcd-user", "u"}, nil, exitUsage, []string{"--etcd-password-file"}},
		{"options of an external etcd", []string{"--etcd-ca", "ca"}, nil, exitUsage, []string{"--etcd-endpoints"}},
		{"quota of an external etcd", []string{"--etcd-endpoints", "https://127.0.0.1:1", "--quota-bytes", "16777216"}, nil, exitUsage, []string{"--quota-bytes", "embedded etcd", "--etcd-endpoints"}},
		{"quota of an external etcd, environment", []string{"--etcd-endpoints", "https://127.0.0.1:1"}, map[string]string{"PILOT_QUOTA_BYTES": "16777216"}, exitUsage, []string{"--quota-bytes", "--etcd-endpoints"}},
		{"endpoint without a port", []string{"--etcd-endpoints", "foo"}, nil, exitUsage, []string{"foo", "https://10.0.0.1:2379"}},
		{"advertised without a port", []string{"--advertise", "web-1"}, nil, exitUsage, []string{"--advertise", "HOST:PORT"}},
		{"advertised to nobody", []string{"--advertise", "0.0.0.0:8080"}, nil, exitUsage, []string{"--advertise 0.0.0.0:8080", "reach this one"}},
		{"domain", []string{"--domain", "foo bar"}, nil, exitUsage, []string{"foo bar", "cluster.local"}},
		{"no data folder", []string{"--data-dir", ""}, nil, exitUsage, []string{"--data-dir"}},
		{"quota", []string{"--quota-bytes", "1000"}, nil, exitUsage, []string{"--quota-bytes 1000", "16777216"}},
		{"log level", []string{"--log-level", "loud"}, nil, exitUsage, []string{"debug, info, warn or error"}},
		{"log format", []string{"--log-format", "xml"}, nil, exitUsage, []string{"text or json"}},
		{"environment", nil, map[string]string{"PILOT_LISTEN": "0.0.0.0:0"}, exitUsage, []string{"--insecure"}},
		{"environment, bad value", nil, map[string]string{"PILOT_INSECURE": "maybe"}, exitUsage, []string{"PILOT_INSECURE", "maybe"}},
		{"environment, misspelt", nil, map[string]string{"PILOT_LISTN": "127.0.0.1:0"}, exitUsage, []string{"PILOT_LISTN", "did you mean PILOT_LISTEN?"}},
		{"environment, no flag of ours", []string{"--listen", "x"}, map[string]string{"PILOT_VERSION": "0.7.1"}, exitUsage, []string{"HOST:PORT"}},
		{"mesh config", []string{"--mesh-config", badMesh}, nil, exitFailed, []string{"mesh.yaml:1:", "mesh.yaml:2:", "connectTimeout"}},
		{"no mesh config", []string{"--mesh-config", "no/such"}, nil, exitFailed, []string{"--mesh-config", "no/such"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for k, v := range tc.env {
				t.Setenv(k, v)
			}
			var stderr bytes.Buffer
			if code := Main(t.Context(), tc.args, io.Discard, &stderr); code != tc.code {
				t.Errorf("exit code %d, want %d; stderr:\n%s", code, tc.code, &stderr)
			}
			for _, want := range tc.says {
				if !strings.Contains(stderr.String(), want) {
					t.Errorf("stderr does not say %q:\n%s", want, &stderr)
				}
			}
		})
	}
}

func TestTakenPort(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	dir := filepath.Join(t.TempDir(), "data")
	var stderr bytes.Buffer
	code := Main(t.Context(), []string{"--listen", taken.Addr().String(), "--grpc-listen", "127.0.0.1:0", "--data-dir", dir}, io.Discard, &stderr)
	if code != exitFailed || !strings.Contains(stderr.String(), "address already in use: end what listens there") {
		t.Errorf("exit code %d, stderr:\n%s", code, &stderr)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Error("a data folder was made although the port was taken")
	}
}

// TestLife starts the whole program, waits until it is ready, and stops it: a
// second one on the same folder is refused while it runs, and may start
// afterwards.
func TestLife(t *testing.T) {
	dir := t.TempDir()
	for range 2 {
		addr := freeAddress(t)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan int, 1)
		go func() {
			done <- Main(ctx, []string{"--listen", addr, "--grpc-listen", "127.0.0.1:0", "--data-dir", dir, "--log-level", "error"}, io.Discard, os.Stderr)
		}()
		waitReady(t, addr)

		var stderr bytes.Buffer
		if code := Main(t.Context(), []string{"--listen", freeAddress(t), "--grpc-listen", "127.0.0.1:0", "--data-dir", dir}, io.Discard, &stderr); code != exitFailed || !strings.Contains(stderr.String(), dir) {
			t.Errorf("second process on the folder: exit code %d, stderr:\n%s", code, &stderr)
		}
		stop()
		if code := <-done; code != exitDone {
			t.Fatalf("exit code %d after a clean stop", code)
		}
	}
}

func freeAddress(t testing.TB) string {
	t.Helper()
	addr, err := testbed.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	return addr
}

func waitReady(t *testing.T, addr string) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for time.Now().Before(deadline) {
		resp, err := http.Get("http://" + addr + "/readyz")
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return
			}
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatalf("%s did not get ready", addr)
}

// TestEtcdAway: the log says soon that an external etcd does not answer.
func TestEtcdAway(t *testing.T) {
	outside.Slow(t)
	nobody := freeAddress(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	log := &watched{until: "etcd does not answer", found: stop}
	code := Main(ctx, []string{"--listen", freeAddress(t), "--grpc-listen", "127.0.0.1:0", "--etcd-endpoints", "http://" + nobody}, io.Discard, log)
	if text := log.String(); code != exitDone || !strings.Contains(text, nobody) {
		t.Errorf("exit code %d, stderr:\n%s", code, text)
	}
}

// watched is a log that calls found when it reads what it waits for.
type watched struct {
	until string
	found func()

	mu   sync.Mutex
	text bytes.Buffer
}

func (w *watched) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n, err := w.text.Write(p)
	if strings.Contains(w.text.String(), w.until) {
		w.found()
	}
	return n, err
}

func (w *watched) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}

// steering is a text that sets the title of a terminal, clears it and turns a line
// around.
const steering = "\x1b]0;t\a\x1b[2J\r\x7f\u009b31m\u202e\u2028\xff"

// steersNothing fails a test where a text could steer a terminal, or does not show
// the escaped one.
func steersNothing(t *testing.T, text string) {
	t.Helper()
	at := strings.IndexFunc(text, func(r rune) bool { return r != '\n' && r != '\t' && terminal.Unsafe(r) })
	if at >= 0 || !utf8.ValidString(text) || !strings.Contains(text, `u202e`) {
		t.Errorf("%q", text)
	}
}

// TestOutputSteersNoTerminal: words that others wrote reach errors and logs.
func TestOutputSteersNoTerminal(t *testing.T) {
	folder := filepath.Join(t.TempDir(), steering)
	for _, args := range [][]string{
		{steering}, {"--" + steering}, {"--log-level", steering}, {"--listen", steering}, {"--mesh-config", folder},
		{"snapshot", steering}, {"snapshot", "status", folder}, {"snapshot", "restore", folder, "--data-dir", folder},
	} {
		t.Run(strconv.QuoteToASCII(args[0]), func(t *testing.T) {
			var out, errs bytes.Buffer
			if code := Main(t.Context(), args, &out, &errs); code == exitDone {
				t.Error("it is no error")
			}
			steersNothing(t, out.String()+errs.String())
		})
	}
	for _, format := range []string{"text", "json"} {
		var errs bytes.Buffer
		stream := newErrorStream(&errs)
		log, err := (&options{logLevel: "info", logFormat: format}).logger(stream)
		if err != nil {
			t.Fatal(err)
		}
		log.Info(steering, steering, errors.New(steering), "node", steering)
		steersNothing(t, errs.String())
	}
}

// full takes nothing.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left") }

// TestOutputThatCannotBeWritten is no success.
func TestOutputThatCannotBeWritten(t *testing.T) {
	for _, args := range [][]string{{"--help"}, {"--version"}} {
		var errs bytes.Buffer
		if code := Main(t.Context(), args, full{}, &errs); code != exitFailed || !strings.Contains(errs.String(), "no space left") {
			t.Errorf("%q: exit %d: %s", args, code, &errs)
		}
	}
}

// TestSnapshotIntoAFolder is refused before anything is asked for.
func TestSnapshotIntoAFolder(t *testing.T) {
	dir := t.TempDir()
	if said := command(t, exitUsage, "snapshot", "save", dir, "--data-dir", dir); !strings.Contains(said, "is a folder, say the file to write") {
		t.Error(said)
	}
}
