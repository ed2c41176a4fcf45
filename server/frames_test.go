package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/schema"
)

// TestFrames checks that an object is encoded once for each state of the statuses,
// and that the cache is bounded.
func TestFrames(t *testing.T) {
	var f frames
	before, after := &postings{revision: 1}, &postings{revision: 2}
	kind, _ := schema.KindByName("RouteRule")
	object := func(name string, size int) *schema.Object {
		spec, err := json.Marshal(map[string]any{"note": string(bytes.Repeat([]byte("x"), size))})
		if err != nil {
			t.Fatal(err)
		}
		o, err := schema.New(kind, metav1.ObjectMeta{Namespace: "default", Name: name}, spec)
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	o := object("a", 1)
	first := f.of(before, o)
	if again := f.of(before, o); &again[0] != &first[0] {
		t.Error("put together twice")
	}
	for board, text := range map[*postings][]byte{before: f.of(before, o), after: f.of(after, o)} {
		if _, status := board.status(o); !bytes.Equal(text, withStatus(o, status)) {
			t.Errorf("by the board of %d: %s", board.revision, text)
		}
	}
	for i := range 100 {
		f.of(after, object(fmt.Sprint("large-", i), framesSize/10))
		if f.size > framesSize || len(f.texts) > 10 {
			t.Fatalf("%d bytes are kept, in %d texts", f.size, len(f.texts))
		}
	}
}
