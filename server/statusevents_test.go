package server_test

import (
	"fmt"
	"net/http"
	"testing"
)

// TestStatusBetweenListAndWatch: a status that changes after a client has listed, and
// before it watches from there, is told all the same, be it by name, as kubectl wait
// has it, or to a browser that comes back.
func TestStatusBetweenListAndWatch(t *testing.T) {
	w := withReviews(t)
	p := w.connect(1)
	p.Hold()
	made := w.create("split").Metadata.ResourceVersion
	w.watch("&statusEvents=true").until(made, "Pending")
	p.Accept()
	for statusIn(t, []byte(w.want(http.StatusOK, "GET", rulesPath+"/split?freshStatus=true", "").text)).reason() != "Programmed" {
	}
	const byName = "&fieldSelector=metadata.name%3Dsplit"
	at := "&resourceVersion=" + made
	w.watch(byName+at).until(made, "Programmed")
	w.watch("&statusEvents=true"+at).until(made, "Programmed")

	marked := w.watch(byName + at + "&allowWatchBookmarks=true")
	marked.want("BOOKMARK", "MODIFIED split")
	if revision, _ := marked.bookmark(); fmt.Sprint(revision) != made {
		t.Errorf("a bookmark at %d, want %s", revision, made)
	}
}

// TestStatusesAreNotMetadata: a watch of metadata is told of changes alone, be it of one
// object by its name or one that says that it knows.
func TestStatusesAreNotMetadata(t *testing.T) {
	const accept = "Accept: application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
	w := withReviews(t)
	p := w.connect(1)
	p.Hold()
	byName := "&fieldSelector=metadata.name%3Dsplit"
	seen := w.watch(byName)
	plain := []*watching{w.watch(byName, accept), w.watch("&statusEvents=true", accept)}
	w.create("split")
	seen.until("", "Pending")
	p.Accept()
	seen.until("", "Programmed")
	w.delete("split")
	for _, metadata := range plain {
		metadata.want("ADDED split", "DELETED split")
	}
}
