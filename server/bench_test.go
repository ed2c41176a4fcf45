package server_test

import (
	"github.com/pilot-api/pilot-api/server/servertest"

	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/server"
	"github.com/pilot-api/pilot-api/store"
	"github.com/pilot-api/pilot-api/store/memory"
)

// benchWorld returns the URL of a server with n stored rules.
func benchWorld(b *testing.B, n int) (url string) {
	b.Helper()
	mem := memory.New()
	for i := range n {
		o, problems := schema.Decode([]byte(servertest.Rule(fmt.Sprintf("rule-%04d", i), 100)), schema.Options{})
		if problems.Err() != nil {
			b.Fatal(problems)
		}
		if _, err := mem.Create(b.Context(), o); err != nil {
			b.Fatal(err)
		}
	}
	return benchServe(b, server.New(server.Options{
		Store: store.Strict(mem), Reads: mem, Log: slog.New(slog.DiscardHandler),
	}).Handler())
}

func benchServe(b *testing.B, h http.Handler) (url string) {
	ts := httptest.NewServer(h)
	b.Cleanup(ts.Close)
	return ts.URL
}

// bare is the handler to compare with: it drains the request and writes the bytes
// that the server would.
func bare(code int, body []byte) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", fmt.Sprint(len(body)))
		w.WriteHeader(code)
		_, _ = w.Write(body)
	})
}

// load sends requests from several clients and returns the body of the last answer.
func load(b *testing.B, code int, next func(i int64) *http.Request) {
	b.Helper()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	b.Cleanup(client.CloseIdleConnections)
	var i atomic.Int64
	b.ReportAllocs()
	b.SetParallelism(8)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			resp, err := client.Do(next(i.Add(1)))
			if err != nil {
				b.Error(err)
				return
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			if resp.StatusCode != code {
				b.Errorf("got %s, want %d", resp.Status, code)
				return
			}
		}
	})
}

func fetch(b *testing.B, url string) []byte {
	b.Helper()
	resp, err := http.Get(url)
	if err != nil {
		b.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		b.Fatal(err)
	}
	return body
}

func request(b *testing.B, method, url, body string) *http.Request {
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		b.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	return req
}

func BenchmarkGet(b *testing.B)      { benchmarkRead(b, 1, servertest.RulesPath+"/rule-0000") }
func BenchmarkList1000(b *testing.B) { benchmarkRead(b, 1000, servertest.RulesPath) }

// benchmarkRead compares a read with a bare handler of the same bytes.
func benchmarkRead(b *testing.B, objects int, path string) {
	url := benchWorld(b, objects)
	body := fetch(b, url+path)
	for name, target := range map[string]string{"server": url, "bare": benchServe(b, bare(http.StatusOK, body))} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			load(b, http.StatusOK, func(int64) *http.Request { return request(b, "GET", target+path, "") })
		})
	}
}

const benchObject = `{"apiVersion":"config.istio.io/v1alpha2","kind":"RouteRule","metadata":{"name":"%s"},"spec":{"destination":{"name":"reviews"},"precedence":2,"match":{"request":{"headers":{"cookie":{"regex":"^(.*?;)?(user=jason)(;.*)?$"}}}},"route":[{"labels":{"version":"v1"},"weight":50},{"labels":{"version":"v2"},"weight":50}]}}`

// BenchmarkCreate sends JSON, as client-go does.
func BenchmarkCreate(b *testing.B) {
	url := benchWorld(b, 1)
	body := fetch(b, url+servertest.RulesPath+"/rule-0000")
	var run atomic.Int64
	for name, target := range map[string]string{"server": url, "bare": benchServe(b, bare(http.StatusCreated, body))} {
		b.Run(name, func(b *testing.B) {
			n := run.Add(1)
			load(b, http.StatusCreated, func(i int64) *http.Request {
				return request(b, "POST", target+servertest.RulesPath, fmt.Sprintf(benchObject, fmt.Sprintf("r-%d-%d", n, i)))
			})
		})
	}
}

// BenchmarkHandler measures the server's own share, without net/http and clients.
func BenchmarkHandler(b *testing.B) {
	mem := memory.New()
	h := server.New(server.Options{Store: store.Strict(mem), Reads: mem, Log: slog.New(slog.DiscardHandler)}).Handler()
	var last int // includes objects of earlier runs
	create := func() *http.Request {
		last++
		return httptest.NewRequest("POST", servertest.RulesPath, strings.NewReader(fmt.Sprintf(benchObject, fmt.Sprintf("r-%d", last))))
	}
	benchmarkHandler(b, "create", h, http.StatusCreated, create)
	benchmarkHandler(b, "update", h, http.StatusOK, func() *http.Request {
		last++
		text := strings.Replace(fmt.Sprintf(benchObject, "r-1"), `"precedence":2`, fmt.Sprintf(`"precedence":%d`, last), 1)
		return httptest.NewRequest("PUT", servertest.RulesPath+"/r-1", strings.NewReader(text))
	})
	benchmarkHandler(b, "get", h, http.StatusOK, func() *http.Request {
		return httptest.NewRequest("GET", servertest.RulesPath+"/r-1", nil)
	})
}

func benchmarkHandler(b *testing.B, name string, h http.Handler, code int, next func() *http.Request) {
	b.Run(name, func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			b.StopTimer()
			r := next()
			r.Host = "localhost"
			r.Header.Set("Content-Type", "application/json")
			w := httptest.NewRecorder()
			b.StartTimer()
			h.ServeHTTP(w, r)
			if w.Code != code {
				b.Fatal(w.Code, w.Body)
			}
		}
	})
}
