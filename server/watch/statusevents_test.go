package watch_test

import (
	"github.com/pilot-api/pilot-api/server/servertest"

	"fmt"
	"net/http"
	"testing"
)

// TestStatusBetweenListAndWatch checks that a status which changes after a client's
// list and before its watch is sent anyway: to a watch by name, as in kubectl wait,
// and to a browser that resumes.
func TestStatusBetweenListAndWatch(t *testing.T) {
	w := servertest.WithReviews(t)
	p := w.Connect(1)
	p.Hold()
	made := w.Create("split").Metadata.ResourceVersion
	w.Watch("&statusEvents=true").Until(made, "Pending")
	p.Accept()
	for servertest.StatusIn(t, []byte(w.Want(http.StatusOK, "GET", servertest.RulesPath+"/split?freshStatus=true", "").Text)).Reason() != "Programmed" {
	}
	const byName = "&fieldSelector=metadata.name%3Dsplit"
	at := "&resourceVersion=" + made
	w.Watch(byName+at).Until(made, "Programmed")
	w.Watch("&statusEvents=true"+at).Until(made, "Programmed")

	marked := w.Watch(byName + at + "&allowWatchBookmarks=true")
	marked.Want("BOOKMARK", "MODIFIED split")
	if revision, _ := bookmark(marked); fmt.Sprint(revision) != made {
		t.Errorf("a bookmark at %d, want %s", revision, made)
	}
}

// TestStatusesAreNotMetadata checks that a watch of metadata receives changes only,
// even if it follows one object by name or asks for statuses.
func TestStatusesAreNotMetadata(t *testing.T) {
	const accept = "Accept: application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
	w := servertest.WithReviews(t)
	p := w.Connect(1)
	p.Hold()
	byName := "&fieldSelector=metadata.name%3Dsplit"
	seen := w.Watch(byName)
	plain := []*servertest.Watching{w.Watch(byName, accept), w.Watch("&statusEvents=true", accept)}
	w.Create("split")
	seen.Until("", "Pending")
	p.Accept()
	seen.Until("", "Programmed")
	w.Delete("split")
	for _, metadata := range plain {
		metadata.Want("ADDED split", "DELETED split")
	}
}
