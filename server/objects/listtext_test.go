package objects_test

import (
	"github.com/pilot-api/pilot-api/server/servertest"

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
	w := &servertest.World{T: t, URL: servertest.StartWhole(t)}
	for i := range 150 {
		w.Create(fmt.Sprintf("r%d", i), "annotations: {note: "+strings.Repeat("x", 1<<10)+"}")
	}
	steps := []func(){
		func() {},
		func() { w.Put("r7", 40) },
		func() { w.Delete("r8") },
		func() { w.Create("r8") },
		func() {
			w.Want(http.StatusOK, "PATCH", servertest.RulesPath+"/r9", `{"metadata":{"labels":{"a":"b"}}}`, "Content-Type: application/merge-patch+json")
		},
	}
	for i, step := range steps {
		step()
		for _, path := range []string{servertest.RulesPath, servertest.AllRules, servertest.RulesPath + "?labelSelector=a%21%3Dc"} {
			sameAgain(w, path, i)
		}
	}
	for text := "the configuration in force is of revision"; strings.Contains(text, "the configuration in force is of revision"); {
		if t.Context().Err() != nil {
			t.Fatal("the statuses stay as they were")
		}
		_, text = w.Raw(servertest.RulesPath)
	}
}

// TestKeptListHasWhatWasWritten checks that a client whose write was acknowledged
// finds it in the list, while other clients request the list all the time, so that
// it is kept whenever there is no write for a moment.
func TestKeptListHasWhatWasWritten(t *testing.T) {
	outside.Slow(t)
	w := &servertest.World{T: t, URL: servertest.StartWhole(t)}
	for i := range 100 {
		w.Create(fmt.Sprintf("r%d", i), "annotations: {note: "+strings.Repeat("x", 2<<10)+"}")
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
				resp, err := http.Get(w.URL + servertest.RulesPath)
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
		written := fmt.Sprintf(`"resourceVersion":%q`, w.Put("r7", 1+i%100).Metadata.ResourceVersion)
		for range 2 {
			if _, text := w.Raw(servertest.RulesPath); strings.Count(text, written) != 2 { // of the object and of the list
				t.Fatalf("write %d: the list does not have %s", i, written)
			}
		}
	}
}

// sameAgain requests a list repeatedly, and also by URLs that nobody has requested
// before. The answers count if the list stayed the same meanwhile.
func sameAgain(w *servertest.World, path string, step int) {
	w.Helper()
	unasked := 0
	anew := func() (tag, text string) {
		sep := "?"
		if strings.Contains(path, "?") {
			sep = "&"
		}
		unasked++
		resp, text := w.Raw(fmt.Sprintf("%s%stimeout=%dms", path, sep, 20000+1000*step+unasked))
		return resp.Header.Get("ETag"), text
	}
	kept := false
	tag, text := anew()
	for same := 0; same < 4; {
		if w.Context().Err() != nil {
			w.Fatal("the list never rests")
		}
		got := askAgain(w, path, tag)
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
	*servertest.World
	plain, zipped, known *http.Response
	text, body           string
	head                 servertest.Answer
}

func askAgain(w *servertest.World, path, tag string) *again {
	a := &again{World: w, head: w.Do("HEAD", path, "")}
	a.plain, a.text = w.Raw(path)
	a.zipped, a.body = w.Raw(path, "Accept-Encoding: gzip")
	a.known, _ = w.Raw(path, "Accept-Encoding: gzip", "If-None-Match: "+tag)
	return a
}

func (a *again) want(tag, text string) {
	a.Helper()
	if a.plain.Header.Get("ETag") != tag || a.text != text {
		a.Errorf("plain: %v, want the tag %s; texts are equal: %t", a.plain.Header, tag, a.text == text)
	}
	if want := strings.TrimSuffix(tag, `"`) + `-gzip"`; a.zipped.Header.Get("ETag") != want || servertest.Gunzip(a.T, a.body) != text {
		a.Errorf("in gzip: %v, want the tag %s", a.zipped.Header, want)
	}
	if a.head.Header.Get("ETag") != tag || a.head.ContentLength != int64(len(text)) {
		a.Errorf("HEAD: %v, want the tag %s and the length %d", a.head.Header, tag, len(text))
	}
	if a.known.StatusCode != http.StatusNotModified {
		a.Errorf("If-None-Match: %s", a.known.Status)
	}
}
