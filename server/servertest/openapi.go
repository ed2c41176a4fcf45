package servertest

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/legacy"

	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/server"
	"github.com/pilot-api/pilot-api/store"
	"github.com/pilot-api/pilot-api/store/memory"
)

// Described returns the documents, by path, of a server with all features.
var Described = sync.OnceValue(func() map[string]*openapi3.T {
	mem := memory.New()
	h := server.New(server.Options{Store: store.Strict(mem), Reads: mem, Discovery: discovery.New(discovery.Options{Source: Nothing{}})}).Handler()
	docs := map[string]*openapi3.T{}
	for _, path := range []string{"/apis/config.istio.io/v1alpha2", "/apis/networking.istio.io/v1", "/apis/registry.istio.io/v1", "/apis/authorization.k8s.io/v1"} {
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "http://localhost/openapi/v3"+path, nil))
		doc, err := openapi3.NewLoader().LoadFromData(rec.Body.Bytes())
		if err != nil {
			panic(err)
		}
		docs[path] = doc
	}
	return docs
})

// operations returns routers to the operations of the documents.
var operations = sync.OnceValue(func() []routers.Router {
	var all []routers.Router
	for _, doc := range Described() {
		router, err := legacy.NewRouter(doc)
		if err != nil {
			panic(err)
		}
		all = append(all, router)
	}
	return all
})

// asDescribed compares each answer of a server with its OpenAPI document. It skips
// watches, which do not end, and paths outside /apis, which no document has.
func asDescribed(t *testing.T, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		input := operationOf(r)
		if input == nil || strings.Contains(r.URL.RawQuery, "watch=") || strings.HasSuffix(r.URL.Path, "/watch") {
			h.ServeHTTP(w, r)
			return
		}
		seen := &copied{ResponseWriter: w}
		h.ServeHTTP(seen, r)
		if seen.code == http.StatusNotModified || r.Method == http.MethodHead {
			return
		}
		err := openapi3filter.ValidateResponse(context.Background(), &openapi3filter.ResponseValidationInput{
			RequestValidationInput: input, Status: seen.code, Header: seen.Header(), Body: seen.plain(t),
			Options: &openapi3filter.Options{IncludeResponseStatus: true},
		})
		if err != nil {
			t.Errorf("%s %s: the answer is not as the OpenAPI document says: %v", r.Method, r.URL, err)
		}
	})
}

func operationOf(r *http.Request) *openapi3filter.RequestValidationInput {
	for _, router := range operations() {
		if route, params, err := router.FindRoute(r); err == nil {
			return &openapi3filter.RequestValidationInput{Request: r, PathParams: params, Route: route}
		}
	}
	return nil
}

// copied keeps a copy of the answer.
type copied struct {
	http.ResponseWriter
	code int
	body bytes.Buffer
}

func (c *copied) WriteHeader(code int) {
	c.code = code
	c.ResponseWriter.WriteHeader(code)
}

func (c *copied) Write(p []byte) (int, error) {
	c.body.Write(p)
	return c.ResponseWriter.Write(p)
}

// plain returns the uncompressed body.
func (c *copied) plain(t *testing.T) io.ReadCloser {
	if c.Header().Get("Content-Encoding") != "gzip" {
		return io.NopCloser(&c.body)
	}
	r, err := gzip.NewReader(&c.body)
	if err != nil {
		t.Error(err)
		return http.NoBody
	}
	return r
}

func (c *copied) Unwrap() http.ResponseWriter { return c.ResponseWriter }
