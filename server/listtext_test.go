package server_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/pilot-api/pilot-api/internal/outside"
)

// TestKeptListIsTheList checks that a repeated request for a list gets the same
// answer as a first one, whatever has changed since, in objects or only in their
// statuses.
func TestKeptListIsTheList(t *testing.T) {
	outside.Slow(t)
	w := &world{T: t, url: startWhole(t)}
	for i := range 150 {
		w.create(fmt.Sprintf("r%d", i), "annotations: {note: "+strings.Repeat("x", 1<<10)+"}")
	}
	steps := []func(){
		func() {},
		func() { w.put("r7", 40) },
		func() { w.delete("r8") },
		func() { w.create("r8") },
		func() {
			w.want(http.StatusOK, "PATCH", rulesPath+"/r9", `{"metadata":{"labels":{"a":"b"}}}`, "Content-Type: application/merge-patch+json")
		},
	}
	for i, step := range steps {
		step()
		for _, path := range []string{rulesPath, allRules, rulesPath + "?labelSelector=a%21%3Dc"} {
			w.sameAgain(path, i)
		}
	}
	for text := "the configuration in force is of revision"; strings.Contains(text, "the configuration in force is of revision"); {
		if t.Context().Err() != nil {
			t.Fatal("the statuses stay as they were")
		}
		_, text = w.raw(rulesPath)
	}
}

// TestKeptListHasWhatWasWritten checks that a client whose write was acknowledged
// finds it in the list, while other clients request the list all the time, so that
// it is kept whenever there is no write for a moment.
func TestKeptListHasWhatWasWritten(t *testing.T) {
	outside.Slow(t)
	w := &world{T: t, url: startWhole(t)}
	for i := range 100 {
		w.create(fmt.Sprintf("r%d", i), "annotations: {note: "+strings.Repeat("x", 2<<10)+"}")
	}
	var others sync.WaitGroup
	ended := make(chan struct{})
	for range 3 {
		others.Go(func() {
			for {
				select {
				case <-ended:
					return
				default:
				}
				resp, err := http.Get(w.url + rulesPath)
				if err != nil {
					t.Error(err)
					return
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
		})
	}
	defer others.Wait()
	defer close(ended)
	for i := range 100 {
		written := fmt.Sprintf(`"resourceVersion":%q`, w.put("r7", 1+i%100).Metadata.ResourceVersion)
		for range 2 {
			if _, text := w.raw(rulesPath); strings.Count(text, written) != 2 { // of the object and of the list
				t.Fatalf("write %d: the list does not have %s", i, written)
			}
		}
	}
}

// sameAgain requests a list repeatedly, and also by URLs that nobody has requested
// before. The answers count if the list stayed the same meanwhile.
func (w *world) sameAgain(path string, step int) {
	w.Helper()
	unasked := 0
	anew := func() (tag, text string) {
		sep := "?"
		if strings.Contains(path, "?") {
			sep = "&"
		}
		unasked++
		resp, text := w.raw(fmt.Sprintf("%s%stimeout=%dms", path, sep, 20000+1000*step+unasked))
		return resp.Header.Get("ETag"), text
	}
	kept := false
	tag, text := anew()
	for same := 0; same < 4; {
		if w.Context().Err() != nil {
			w.Fatal("the list never rests")
		}
		got := w.askAgain(path, tag)
		kept = kept || got.zipped.Header.Get("Content-Length") != ""
		after, next := anew()
		if after != tag {
			tag, text, same = after, next, 0
			continue
		}
		got.want(tag, text)
		same++
	}
	if !kept {
		w.Fatal("no list was kept")
	}
}

// again is a list in all the ways to request it.
type again struct {
	*world
	plain, zipped, known *http.Response
	text, body           string
	head                 answer
}

func (w *world) askAgain(path, tag string) *again {
	a := &again{world: w, head: w.do("HEAD", path, "")}
	a.plain, a.text = w.raw(path)
	a.zipped, a.body = w.raw(path, "Accept-Encoding: gzip")
	a.known, _ = w.raw(path, "Accept-Encoding: gzip", "If-None-Match: "+tag)
	return a
}

func (a *again) want(tag, text string) {
	a.Helper()
	if a.plain.Header.Get("ETag") != tag || a.text != text {
		a.Errorf("plain: %v, want the tag %s; texts are equal: %t", a.plain.Header, tag, a.text == text)
	}
	if want := strings.TrimSuffix(tag, `"`) + `-gzip"`; a.zipped.Header.Get("ETag") != want || gunzip(a.T, a.body) != text {
		a.Errorf("in gzip: %v, want the tag %s", a.zipped.Header, want)
	}
	if a.head.Header.Get("ETag") != tag || a.head.ContentLength != int64(len(text)) {
		a.Errorf("HEAD: %v, want the tag %s and the length %d", a.head.Header, tag, len(text))
	}
	if a.known.StatusCode != http.StatusNotModified {
		a.Errorf("If-None-Match: %s", a.known.Status)
	}
}
