package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// greedyProgram makes the test binary a client that sends a request on each of its
// connections as soon as the last one is answered: "ADDRESS CONNECTIONS METHOD". It prints
// the number of answers with each status code when its input ends.
const greedyProgram = "PILOT_TEST_RUN_AS_GREEDY"

func runGreedy() {
	var addr, method string
	var connections int
	if n, _ := fmt.Sscan(os.Getenv(greedyProgram), &addr, &connections, &method); n != 3 {
		return
	}
	var answers sync.Map // status code to *atomic.Int64
	for i := range connections {
		go greedily(addr, method, i, &answers)
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	answers.Range(func(code, count any) bool {
		fmt.Println(code, count.(*atomic.Int64).Load())
		return true
	})
	os.Exit(0)
}

// greedily uses one connection.
func greedily(addr, method string, number int, answers *sync.Map) {
	for {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			time.Sleep(100 * time.Millisecond)
			continue
		}
		from := bufio.NewReaderSize(conn, 4096)
		for i := 0; ; i++ {
			request := fmt.Sprintf("GET %s/first HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n\r\n", rulesPath, addr, greedyToken)
			if method == http.MethodPost {
				body := largeRule(fmt.Sprintf("greedy-%d-%d", number, i), 10)
				request = fmt.Sprintf("POST %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", rulesPath, addr, greedyToken, len(body), body)
			}
			if _, err := io.WriteString(conn, request); err != nil {
				break
			}
			resp, err := http.ReadResponse(from, nil)
			if err != nil {
				break
			}
			if _, err := io.Copy(io.Discard, resp.Body); err != nil {
				break
			}
			count, _ := answers.LoadOrStore(resp.StatusCode, &atomic.Int64{})
			count.(*atomic.Int64).Add(1)
		}
		conn.Close()
	}
}

// greedy is a running client of a process of its own.
type greedy struct {
	*exec.Cmd
	input io.WriteCloser
	out   strings.Builder
}

func startGreedy(t testing.TB, addr string, connections int, method string) *greedy {
	t.Helper()
	g := &greedy{Cmd: exec.Command(os.Args[0])}
	g.Env = append(os.Environ(), fmt.Sprintf("%s=%s %d %s", greedyProgram, addr, connections, method))
	g.Stdout, g.Stderr = &g.out, os.Stderr
	var err error
	if g.input, err = g.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := g.Start(); err != nil {
		t.Fatal(err)
	}
	return g
}

// end ends the client and returns its answers by status code.
func (g *greedy) end(t testing.TB) map[int]int {
	t.Helper()
	g.input.Close()
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	counts := map[int]int{}
	for line := range strings.Lines(g.out.String()) {
		var code, count int
		if _, err := fmt.Sscan(line, &code, &count); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		counts[code] = count
	}
	return counts
}

const (
	greedyToken = "token-of-the-greedy-user"
	politeToken = "token-of-the-polite-user"
)

// startForTwo starts a server for a greedy and a polite user, with one object.
func startForTwo(t testing.TB, flags ...string) *program {
	t.Helper()
	tokens := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(tokens, []byte(greedyToken+",eve,1\n"+politeToken+",vic,2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := startProgram(t, t.TempDir(), append([]string{"--token-file", tokens, "--authorization", "none"}, flags...)...)
	if code, _ := p.send(t, politeToken, http.MethodPost, rulesPath, largeRule("first", 10)); code != http.StatusCreated {
		t.Fatalf("the first object: %d", code)
	}
	return p
}

// send sends a request of a user, and returns the status code and Retry-After.
func (p *program) send(t testing.TB, token, method, path, body string) (code int, retryAfter string) {
	t.Helper()
	resp, _ := p.askAs(t, token, method, path, body)
	return resp.StatusCode, resp.Header.Get("Retry-After")
}

// BenchmarkOverload shows how a user with one request at a time, and health checks, fare
// beside a user with many times the requests that the server can answer: their 99th
// percentiles, and those of a quiet server. Each iteration is one request of each kind. The
// server, the greedy client and the polite one are processes of their own, and share the
// processors.
func BenchmarkOverload(b *testing.B) {
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		for _, connections := range []int{64, 640} {
			b.Run(fmt.Sprintf("method=%s/connections=%d", method, connections), func(b *testing.B) {
				p := polite{program: startForTwo(b), method: method}
				p.measure(b, 200)
				quiet, quietHealth := p.measure(b, max(500, b.N))
				g := startGreedy(b, p.addr, connections, method)
				p.measure(b, 50)
				began := time.Now()
				crowded, crowdedHealth := p.measure(b, max(500, b.N))
				took := time.Since(began).Seconds()
				counts := g.end(b)
				b.ReportMetric(0, "ns/op")
				b.ReportMetric(p99(quiet), "quiet-p99-us")
				b.ReportMetric(p99(crowded), "crowded-p99-us")
				b.ReportMetric(p99(quietHealth), "quiet-health-p99-us")
				b.ReportMetric(p99(crowdedHealth), "crowded-health-p99-us")
				b.ReportMetric(float64(counts[http.StatusOK]+counts[http.StatusCreated])/took, "greedy/s")
				b.ReportMetric(float64(counts[http.StatusTooManyRequests]), "refused")
			})
		}
	}
}

// polite is a user with one request at a time.
type polite struct {
	*program
	method  string
	written int
}

// measure returns how long requests, and as many health checks, took.
func (p *polite) measure(b *testing.B, n int) (asked, checked []time.Duration) {
	for range n {
		path, body, want := rulesPath+"/first", "", http.StatusOK
		if p.method == http.MethodPost {
			p.written++
			path, body, want = rulesPath, largeRule(fmt.Sprint("polite-", p.written), 10), http.StatusCreated
		}
		began := time.Now()
		code, _ := p.send(b, politeToken, p.method, path, body)
		asked = append(asked, time.Since(began))
		began = time.Now()
		healthy, _ := p.send(b, "", http.MethodGet, "/healthz", "")
		checked = append(checked, time.Since(began))
		if code != want || healthy != http.StatusOK {
			b.Fatalf("%s: %d, want %d; health: %d", p.method, code, want, healthy)
		}
		time.Sleep(time.Millisecond)
	}
	return asked, checked
}

// p99 returns the 99th percentile in microseconds.
func p99(all []time.Duration) float64 {
	slices.Sort(all)
	return float64(all[len(all)*99/100].Nanoseconds()) / 1000
}

// TestLimitsOfUsers: a user that exceeds what it may do is told so and when to try again.
// Others are not concerned.
func TestLimitsOfUsers(t *testing.T) {
	p := startForTwo(t, "--user-max-writes", "5", "--user-max-bytes", "64Ki", "--user-max-watches", "2")
	refused := 0
	for i := range 40 {
		code, retry := p.send(t, greedyToken, http.MethodPost, rulesPath, largeRule(fmt.Sprint("greedy-", i), 10))
		if seconds, err := strconv.Atoi(retry); code == http.StatusTooManyRequests && err == nil && seconds >= 1 {
			refused++
		} else if code != http.StatusCreated {
			t.Fatalf("write %d: %d, Retry-After %q", i, code, retry)
		}
	}
	if refused == 0 {
		t.Error("no write of 40 at once is refused, at 5 in a second")
	}
	if code, _ := p.send(t, politeToken, http.MethodPost, rulesPath, largeRule("polite", 10)); code != http.StatusCreated {
		t.Errorf("a write of another user: %d", code)
	}
	if code, _ := p.send(t, greedyToken, http.MethodGet, rulesPath+"/first", ""); code != http.StatusOK {
		t.Errorf("a read of the user that writes too often: %d", code)
	}
	p.send(t, politeToken, http.MethodPost, rulesPath, largeRule("large", 500_000))
	if code, retry := p.send(t, politeToken, http.MethodGet, rulesPath+"/first", ""); code != http.StatusTooManyRequests || retry == "" {
		t.Errorf("a read after 500 KB at 64 KiB in a second: %d, Retry-After %q", code, retry)
	}
	watches := 0
	for range 3 {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.URL+rulesPath+"?watch=true", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+greedyToken)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if resp.StatusCode == http.StatusOK {
			watches++
		} else if resp.StatusCode != http.StatusTooManyRequests {
			t.Errorf("a watch too many: %d", resp.StatusCode)
		}
	}
	if watches != 2 {
		t.Errorf("%d watches of a user run, want 2", watches)
	}
}

// metric returns the value of a metric, 0 if it is not there.
func (p *program) metric(t testing.TB, token, name string) (value float64) {
	t.Helper()
	_, text := p.askAs(t, token, http.MethodGet, "/metrics", "")
	for line := range strings.Lines(text) {
		if rest, is := strings.CutPrefix(line, name+" "); is {
			var err error
			if value, err = strconv.ParseFloat(strings.TrimSpace(rest), 64); err != nil {
				t.Fatal(err)
			}
		}
	}
	return value
}

// TestHealthAmidOverload: with more requests than may wait, health checks and another user
// are answered, and the server recovers.
func TestHealthAmidOverload(t *testing.T) {
	p := startForTwo(t)
	g := startGreedy(t, p.addr, 1500, http.MethodGet)
	for refused := 0; refused < 50 && !t.Failed(); {
		if p.metric(t, politeToken, `pilot_admission_refused_total{class="people",reason="queue"}`) > 0 {
			refused++
		}
		if code, _ := p.send(t, "", http.MethodGet, "/healthz", ""); code != http.StatusOK {
			t.Errorf("health: %d", code)
		}
		if code, _ := p.send(t, politeToken, http.MethodGet, rulesPath+"/first", ""); code != http.StatusOK {
			t.Errorf("a read of another user: %d", code)
		}
	}
	counts := g.end(t)
	if counts[http.StatusOK] == 0 || counts[http.StatusTooManyRequests] == 0 {
		t.Errorf("answers to the greedy user: %v, want some, and some refused", counts)
	}
	if code, _ := p.send(t, greedyToken, http.MethodGet, rulesPath+"/first", ""); code != http.StatusOK {
		t.Errorf("after the overload: %d", code)
	}
}
