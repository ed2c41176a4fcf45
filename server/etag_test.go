package server_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pilot-api/pilot-api/server"
)

// TestETag checks that an answer has an ETag, and that a client which has the
// answer receives it again only after a change.
func TestETag(t *testing.T) {
	w := start(t)
	w.create("a")
	for _, path := range []string{rulesPath + "/a", rulesPath, allRules + "?limit=1", rulesPath + "?labelSelector=!none"} {
		seen := map[string]bool{}
		for _, accept := range []string{"application/json", "application/yaml"} {
			tag := w.want(http.StatusOK, "GET", path, "", "Accept: "+accept).Header.Get("ETag")
			if tag == "" || strings.HasPrefix(tag, "W/") || seen[tag] {
				t.Fatalf("%s as %s: ETag %q", path, accept, tag)
			}
			seen[tag] = true
			for _, given := range []string{tag, `"other", ` + tag, "W/" + tag, "*", strings.TrimSuffix(tag, `"`) + `-gzip"`} {
				for _, method := range []string{"GET", "HEAD"} {
					got := w.want(http.StatusNotModified, method, path, "", "Accept: "+accept, "If-None-Match: "+given)
					if got.text != "" || got.Header.Get("ETag") != tag || got.Header.Get("Content-Length") != "" {
						t.Errorf("304 for %s: %v %s", given, got.Header, got.text)
					}
				}
			}
			for _, given := range []string{`"other"`, "x", strings.Trim(tag, `"`), `""`, ","} {
				w.want(http.StatusOK, "GET", path, "", "Accept: "+accept, "If-None-Match: "+given)
			}
			for range 2 { // A write that changes nothing changes no tag.
				w.want(http.StatusNotModified, "GET", path, "", "Accept: "+accept, "If-None-Match: "+tag)
				w.want(http.StatusOK, "PUT", rulesPath+"/a?dryRun=All", rule("a", 1), asYAML)
			}
			w.create("other-" + accept[len("application/"):])
			code := http.StatusOK
			if strings.HasSuffix(path, "/a") {
				code = http.StatusNotModified
			}
			w.want(code, "GET", path, "", "Accept: "+accept, "If-None-Match: "+tag)
			w.delete("other-" + accept[len("application/"):])
			w.put("a", 50, "annotations: {by: "+accept[len("application/"):]+"}")
			w.want(http.StatusOK, "GET", path, "", "Accept: "+accept, "If-None-Match: "+tag)
		}
	}
	w.want(http.StatusNotFound, "GET", rulesPath+"/none", "", "If-None-Match: *")
	for method, body := range map[string]string{"PUT": rule("a", 1), "POST": rule("b", 1)} {
		path := map[string]string{"PUT": rulesPath + "/a", "POST": rulesPath}[method]
		if got := w.do(method, path, body, asYAML); got.Header.Get("ETag") != "" || got.StatusCode >= 300 {
			t.Errorf("%s: %s %v", method, got.Status, got.Header)
		}
	}
}

// TestNoETag checks that tables have none, because they show ages, nor metadata,
// which is another answer than the object with the tag.
func TestNoETag(t *testing.T) {
	w := start(t)
	w.create("a")
	const asMetadata = "Accept: application/json;v=v1;g=meta.k8s.io;as=PartialObjectMetadata"
	for path, forms := range map[string][]string{rulesPath: {asTable, asMetadata + "List"}, rulesPath + "/a": {asTable, asMetadata}} {
		tag := w.want(http.StatusOK, "GET", path, "").Header.Get("ETag")
		for _, form := range forms {
			for _, known := range []string{tag, "*"} {
				if got := w.want(http.StatusOK, "GET", path, "", form, "If-None-Match: "+known); tag == "" || got.Header.Get("ETag") != "" {
					t.Errorf("%s, %s: %v", path, form, got.Header)
				}
			}
		}
	}
}

// TestETagOfAnotherStore checks that the same resourceVersion in another store has
// another tag.
func TestETagOfAnotherStore(t *testing.T) {
	var tags []string
	for range 2 {
		w := start(t)
		w.create("a")
		for _, path := range []string{rulesPath + "/a", rulesPath} {
			tags = append(tags, w.do("GET", path, "").Header.Get("ETag"))
		}
	}
	if tags[0] == tags[2] || tags[1] == tags[3] {
		t.Errorf("tags %v", tags)
	}
}

// TestETagOfAStatus checks that the status of an object is a part of the answer,
// and that a client with an older status receives the new one.
func TestETagOfAStatus(t *testing.T) {
	url := startWhole(t)
	w := &world{T: t, url: url}
	w.create("a")
	for _, path := range []string{rulesPath + "/a", rulesPath} {
		got := w.want(http.StatusOK, "GET", path, "")
		for strings.Contains(got.text, "the configuration in force is of revision") {
			before := got
			got = w.do("GET", path, "", "If-None-Match: "+before.Header.Get("ETag"))
			switch {
			case t.Context().Err() != nil:
				t.Fatal("the object is never in force")
			case got.StatusCode == http.StatusNotModified:
				got = before
			}
		}
		again := w.do("GET", path, "")
		if same := again.text == got.text; same != (again.Header.Get("ETag") == got.Header.Get("ETag")) {
			t.Errorf("%s: tags %s and %s of\n%s\n%s", path, got.Header.Get("ETag"), again.Header.Get("ETag"), got.text, again.text)
		}
	}
}

// TestTagsAreThoseOfTexts checks, while proxies come and go, that two answers have
// the same tag only if they have the same text.
func TestTagsAreThoseOfTexts(t *testing.T) {
	w := start(t, func(o *server.Options) { o.RevisionTimeout = time.Second })
	texts := map[string]string{}
	for i := range 30 {
		switch i % 5 {
		case 0:
			w.do("POST", rulesPath, rule("a", 100), asYAML)
		case 1:
			w.do("PUT", rulesPath+"/a", rule("a", i), asYAML)
		case 2:
			w.do("POST", rulesPath, rule("b", 100), asYAML)
		case 3:
			w.do("DELETE", rulesPath+"/a", "")
		}
		for _, accept := range []string{"application/json", "application/yaml"} {
			for _, path := range []string{rulesPath + "/a", rulesPath, rulesPath + "?limit=1"} {
				got := w.do("GET", path, "", "Accept: "+accept)
				if tag := got.Header.Get("ETag"); tag != "" {
					if known, ok := texts[path+tag]; ok && known != got.text {
						t.Errorf("%s of %s is\n%s\nand\n%s", tag, path, known, got.text)
					}
					texts[path+tag] = got.text
				}
			}
		}
	}
}
