package traffic_test

import (
	"bufio"
	"cmp"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pilot-api/pilot-api/envoy/envoytest"
	"github.com/pilot-api/pilot-api/internal/scenario"
)

// An echo is a backend that answers with what it received, in either version of HTTP. A
// backend whose name begins with tls uses TLS. Headers of a request say what else it does:
// "answer" is the status of the answer, and with "once" only the first request with that value
// gets it; "give" is a header of the answer, as name=value; a request with "hang" gets no
// answer.
type echo struct {
	name   string
	server *httptest.Server
	seen   atomic.Int64
	asked  *sync.Map // the values of "once" that any backend has received
}

// An echoed is the body of an echo's answer.
type echoed struct {
	Name, Proto, Host, Path, Peer string
	Header                        http.Header
}

func startEcho(t *testing.T, name, certs string, asked *sync.Map) *echo {
	e := &echo{name: name, asked: asked}
	e.server = httptest.NewUnstartedServer(e)
	e.server.Config.ErrorLog = log.New(io.Discard, "", 0) // Of handshakes that must fail.
	t.Cleanup(e.server.Close)
	if !strings.HasPrefix(name, "tls") {
		e.server.Config.Protocols = new(http.Protocols)
		e.server.Config.Protocols.SetHTTP1(true)
		e.server.Config.Protocols.SetUnencryptedHTTP2(true)
		e.server.Start()
		return e
	}
	pair, err := tls.LoadX509KeyPair(filepath.Join(certs, "tls.crt"), filepath.Join(certs, "tls.key"))
	if err != nil {
		t.Fatal(err)
	}
	e.server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequestClientCert}
	e.server.StartTLS()
	return e
}

func (e *echo) port() int { return e.server.Listener.Addr().(*net.TCPAddr).Port }

func (e *echo) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e.seen.Add(1)
	if r.Header.Get("hang") != "" {
		<-r.Context().Done()
		return
	}
	status := http.StatusOK
	if said := r.Header.Get("answer"); said != "" && e.isFirst(r.Header.Get("once")) {
		status, _ = strconv.Atoi(said)
	}
	if name, value, ok := strings.Cut(r.Header.Get("give"), "="); ok {
		w.Header().Set(name, value)
	}
	if r.TLS != nil {
		w.Header().Set("sni", r.TLS.ServerName)
		w.Header().Set("client-certificates", strconv.Itoa(len(r.TLS.PeerCertificates)))
	}
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(echoed{e.name, r.Proto, r.Host, r.RequestURI, r.RemoteAddr, r.Header})
}

func (e *echo) isFirst(once string) bool {
	if once == "" {
		return true
	}
	_, asked := e.asked.LoadOrStore(once, true)
	return !asked
}

// await waits until the backend has received a number of requests. An Envoy may send the copy
// of a request after the answer.
func (e *echo) await(t *testing.T, want int) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); int(e.seen.Load()) < want; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s was asked %d times, want %d", e.name, e.seen.Load(), want)
		}
	}
}

// seen returns how many requests each backend has received.
func (st *stage) seen() map[string]int {
	out := map[string]int{}
	for name, e := range st.backends {
		out[name] = int(e.seen.Load())
	}
	return out
}

type scenarioReply struct {
	status          int
	header, trailer http.Header
	body            string
	echo            echoed
	took            time.Duration
}

func (st *stage) reply(t *testing.T, s scenario.Step, i int) scenarioReply {
	t.Helper()
	numbered := strings.NewReplacer("{i}", strconv.Itoa(i))
	u, err := url.Parse(numbered.Replace(s.URL))
	if err != nil {
		t.Fatal(err)
	}
	conn := st.connection(t, s, u, numbered)
	defer conn.Close()
	began := time.Now()
	if err := conn.SetDeadline(began.Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(conn, requestText(s, u, numbered)) // What is closed at once shows in the answer.
	resp, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: s.Method})
	if err != nil {
		if errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: no answer", s.Line)
		}
		return scenarioReply{}
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	reply := scenarioReply{status: resp.StatusCode, header: resp.Header, trailer: resp.Trailer, body: string(body), took: time.Since(began)}
	_ = json.Unmarshal(body, &reply.echo) // Of a backend's answer.
	return reply
}

func requestText(s scenario.Step, u *url.URL, numbered *strings.Replacer) string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s %s HTTP/1.1\r\nHost: %s\r\n", s.Method, u.RequestURI(), u.Host)
	closing := "Connection: close\r\n"
	for _, h := range s.Headers {
		if strings.EqualFold(h.Name, "connection") {
			closing = ""
		}
		fmt.Fprintf(&out, "%s: %s\r\n", h.Name, numbered.Replace(h.Value))
	}
	return out.String() + closing + "\r\n"
}

// connection returns a captured connection, or one to an open port of a router.
func (st *stage) connection(t *testing.T, s scenario.Step, u *url.URL, numbered *strings.Replacer) net.Conn {
	t.Helper()
	port, err := strconv.Atoi(cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme]))
	if err != nil {
		t.Fatalf("%s: %v", s.Line, err)
	}
	var conn net.Conn
	if st.atEdge {
		conn = st.DialPort(port)
	} else {
		conn = st.CapturedFrom(numbered.Replace(cmp.Or(s.From, "127.0.0.1")), cmp.Or(s.To, envoytest.ServiceIP), port)
	}
	if u.Scheme == "https" {
		conn = tls.Client(conn, &tls.Config{ServerName: u.Hostname(), InsecureSkipVerify: true})
	}
	return conn
}
