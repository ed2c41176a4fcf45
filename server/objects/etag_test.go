package objects_test

import (
	"github.com/pilot-api/pilot-api/server/servertest"

	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pilot-api/pilot-api/server"
)

// TestETag checks that an answer has an ETag, and that a client which has the
// answer receives it again only after a change.
func TestETag(t *testing.T) {
	w := servertest.Start(t)
	w.Create("a")
	for _, path := range []string{servertest.RulesPath + "/a", servertest.RulesPath, servertest.AllRules + "?limit=1", servertest.RulesPath + "?labelSelector=!none"} {
		seen := map[string]bool{}
		for _, accept := range []string{"application/json", "application/yaml"} {
			tag := w.Want(http.StatusOK, "GET", path, "", "Accept: "+accept).Header.Get("ETag")
			if tag == "" || strings.HasPrefix(tag, "W/") || seen[tag] {
				t.Fatalf("%s as %s: ETag %q", path, accept, tag)
			}
			seen[tag] = true
			for _, given := range []string{tag, `"other", ` + tag, "W/" + tag, "*", strings.TrimSuffix(tag, `"`) + `-gzip"`} {
				for _, method := range []string{"GET", "HEAD"} {
					got := w.Want(http.StatusNotModified, method, path, "", "Accept: "+accept, "If-None-Match: "+given)
					if got.Text != "" || got.Header.Get("ETag") != tag || got.Header.Get("Content-Length") != "" {
						t.Errorf("304 for %s: %v %s", given, got.Header, got.Text)
					}
				}
			}
			for _, given := range []string{`"other"`, "x", strings.Trim(tag, `"`), `""`, ","} {
				w.Want(http.StatusOK, "GET", path, "", "Accept: "+accept, "If-None-Match: "+given)
			}
			for range 2 { // A write that changes nothing changes no tag.
				w.Want(http.StatusNotModified, "GET", path, "", "Accept: "+accept, "If-None-Match: "+tag)
				w.Want(http.StatusOK, "PUT", servertest.RulesPath+"/a?dryRun=All", servertest.Rule("a", 1), servertest.AsYAML)
			}
			w.Create("other-" + accept[len("application/"):])
			code := http.StatusOK
			if strings.HasSuffix(path, "/a") {
				code = http.StatusNotModified
			}
			w.Want(code, "GET", path, "", "Accept: "+accept, "If-None-Match: "+tag)
			w.Delete("other-" + accept[len("application/"):])
			w.Put("a", 50, "annotations: {by: "+accept[len("application/"):]+"}")
			w.Want(http.StatusOK, "GET", path, "", "Accept: "+accept, "If-None-Match: "+tag)
		}
	}
	w.Want(http.StatusNotFound, "GET", servertest.RulesPath+"/none", "", "If-None-Match: *")
	for method, body := range map[string]string{"PUT": servertest.Rule("a", 1), "POST": servertest.Rule("b", 1)} {
		path := map[string]string{"PUT": servertest.RulesPath + "/a", "POST": servertest.RulesPath}[method]
		if got := w.Do(method, path, body, servertest.AsYAML); got.Header.Get("ETag") != "" || got.StatusCode >= 300 {
			t.Errorf("%s: %s %v", method, got.Status, got.Header)
		}
	}
}

// TestNoETag checks that tables have none, because they show ages, nor metadata,
// which is another answer than the object with the tag.
func TestNoETag(t *testing.T) {
	w := servertest.Start(t)
	w.Create("a")
	const asMetadata = "Accept: application/json;v=v1;g=meta.k8s.io;as=PartialObjectMetadata"
	for path, forms := range map[string][]string{servertest.RulesPath: {servertest.AsTable, asMetadata + "List"}, servertest.RulesPath + "/a": {servertest.AsTable, asMetadata}} {
		tag := w.Want(http.StatusOK, "GET", path, "").Header.Get("ETag")
		for _, form := range forms {
			for _, known := range []string{tag, "*"} {
				if got := w.Want(http.StatusOK, "GET", path, "", form, "If-None-Match: "+known); tag == "" || got.Header.Get("ETag") != "" {
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
		w := servertest.Start(t)
		w.Create("a")
		for _, path := range []string{servertest.RulesPath + "/a", servertest.RulesPath} {
			tags = append(tags, w.Do("GET", path, "").Header.Get("ETag"))
		}
	}
	if tags[0] == tags[2] || tags[1] == tags[3] {
		t.Errorf("tags %v", tags)
	}
}

// TestETagOfAStatus checks that the status of an object is a part of the answer,
// and that a client with an older status receives the new one.
func TestETagOfAStatus(t *testing.T) {
	url := servertest.StartWhole(t)
	w := &servertest.World{T: t, URL: url}
	w.Create("a")
	for _, path := range []string{servertest.RulesPath + "/a", servertest.RulesPath} {
		got := w.Want(http.StatusOK, "GET", path, "")
		for strings.Contains(got.Text, "the configuration in force is of revision") {
			before := got
			got = w.Do("GET", path, "", "If-None-Match: "+before.Header.Get("ETag"))
			switch {
			case t.Context().Err() != nil:
				t.Fatal("the object is never in force")
			case got.StatusCode == http.StatusNotModified:
				got = before
			}
		}
		again := w.Do("GET", path, "")
		if same := again.Text == got.Text; same != (again.Header.Get("ETag") == got.Header.Get("ETag")) {
			t.Errorf("%s: tags %s and %s of\n%s\n%s", path, got.Header.Get("ETag"), again.Header.Get("ETag"), got.Text, again.Text)
		}
	}
}

// TestTagsAreThoseOfTexts checks, while proxies come and go, that two answers have
// the same tag only if they have the same text.
func TestTagsAreThoseOfTexts(t *testing.T) {
	w := servertest.Start(t, func(o *server.Options) { o.RevisionTimeout = time.Second })
	texts := map[string]string{}
	for i := range 30 {
		switch i % 5 {
		case 0:
			w.Do("POST", servertest.RulesPath, servertest.Rule("a", 100), servertest.AsYAML)
		case 1:
			w.Do("PUT", servertest.RulesPath+"/a", servertest.Rule("a", i), servertest.AsYAML)
		case 2:
			w.Do("POST", servertest.RulesPath, servertest.Rule("b", 100), servertest.AsYAML)
		case 3:
			w.Do("DELETE", servertest.RulesPath+"/a", "")
		}
		for _, accept := range []string{"application/json", "application/yaml"} {
			for _, path := range []string{servertest.RulesPath + "/a", servertest.RulesPath, servertest.RulesPath + "?limit=1"} {
				got := w.Do("GET", path, "", "Accept: "+accept)
				if tag := got.Header.Get("ETag"); tag != "" {
					if known, ok := texts[path+tag]; ok && known != got.Text {
						t.Errorf("%s of %s is\n%s\nand\n%s", tag, path, known, got.Text)
					}
					texts[path+tag] = got.Text
				}
			}
		}
	}
}
