package answer_test

import (
	"github.com/pilot-api/pilot-api/server/servertest"

	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/internal/outside"
)

// ages matches the ages in rows, which differ between two answers.
var ages = regexp.MustCompile(`"\d+m?\d*s?"`)

// TestGzip checks that a large answer comes in gzip, with the same text, to clients
// that accept it, and that small answers and watches are not compressed.
func TestGzip(t *testing.T) {
	outside.Slow(t)
	w := servertest.Start(t)
	const big = 128 << 10
	for _, length := range []int{0, big - 2000, big - 600, big - 300, big, big + 1000, 200 << 10} {
		name := fmt.Sprintf("r%d", length)
		w.Create(name, "annotations: {note: z"+strings.Repeat("x", length)+"}")
		for _, accept := range []string{"application/json", "application/yaml", "application/json;as=Table;v=v1;g=meta.k8s.io"} {
			for _, path := range []string{servertest.RulesPath + "/" + name, servertest.RulesPath, servertest.RulesPath + "?includeObject=None&fieldSelector=metadata.name%3D" + name} {
				plain, text := w.Raw(path, "Accept: "+accept)
				zipped, body := w.Raw(path, "Accept: "+accept, "Accept-Encoding: br, gzip;q=0.5")
				if plain.Header.Get("Content-Encoding") != "" {
					t.Fatalf("%s: %v is compressed for who did not ask", path, plain.Header)
				}
				if is := zipped.Header.Get("Content-Encoding") == "gzip"; is != (len(text) >= big) {
					t.Errorf("%s as %s: %d bytes, in gzip: %v", path, accept, len(text), is)
				} else if is {
					body = servertest.Gunzip(t, body)
				}
				body, text = ages.ReplaceAllString(body, "age"), ages.ReplaceAllString(text, "age")
				if body != text || zipped.Header.Get("Content-Type") != plain.Header.Get("Content-Type") || !strings.Contains(strings.Join(zipped.Header.Values("Vary"), ","), "Accept-Encoding") {
					t.Errorf("%s as %s: %v, the texts are equal: %v", path, accept, zipped.Header, body == text)
				}
			}
		}
	}
	for _, refused := range []string{"identity", "gzip;q=0", "gzip; q=0.0", "gzipped", "gzip;q=much", ""} {
		if resp, _ := w.Raw(servertest.RulesPath, "Accept-Encoding: "+refused); resp.Header.Get("Content-Encoding") != "" {
			t.Errorf("Accept-Encoding %q: %v", refused, resp.Header)
		}
	}
	if resp, body := w.Raw(servertest.RulesPath+"?watch=true&timeoutSeconds=1", "Accept-Encoding: gzip"); resp.Header.Get("Content-Encoding") != "" || !strings.HasPrefix(body, `{"type"`) {
		t.Errorf("a watch: %v", resp.Header)
	}
}

// TestGzipAndETag checks that the answer in gzip has another tag, and that both
// tags are recognized.
func TestGzipAndETag(t *testing.T) {
	w := servertest.Start(t)
	w.Create("a", "annotations: {note: "+strings.Repeat("x", 200<<10)+"}")
	for _, path := range []string{servertest.RulesPath, servertest.RulesPath + "/a"} {
		plain, _ := w.Raw(path)
		zipped, _ := w.Raw(path, "Accept-Encoding: gzip")
		if tag := zipped.Header.Get("ETag"); tag == plain.Header.Get("ETag") || tag == "" {
			t.Errorf("%s: both have the ETag %s", path, tag)
		}
		for _, resp := range []*http.Response{plain, zipped} {
			got, body := w.Raw(path, "Accept-Encoding: gzip", "If-None-Match: "+resp.Header.Get("ETag"))
			if got.StatusCode != http.StatusNotModified || body != "" {
				t.Errorf("%s: %s", path, got.Status)
			}
		}
	}
}
