package server_test

import "testing"

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
