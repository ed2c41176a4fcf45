package server_test

import (
	"fmt"
	"net/http"
	"testing"
)

// TestStatusBetweenListAndWatch checks that a status which changes after a client's
// list and before its watch is sent anyway: to a watch by name, as in kubectl wait,
// and to a browser that resumes.
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

// TestStatusesAreNotMetadata checks that a watch of metadata receives changes only,
// even if it follows one object by name or asks for statuses.
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
