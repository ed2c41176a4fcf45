package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/server/status"
)

// TestFrames checks that an object is encoded once for each state of the statuses,
// and that the cache is bounded.
func TestFrames(t *testing.T) {
	var f frames
	tableOf := func(revision int64) *status.Table {
		board, _ := status.New(status.Options{Log: slog.New(slog.DiscardHandler), Statuses: func(*discovery.ObjectStatuses) *discovery.ObjectStatuses {
			return &discovery.ObjectStatuses{Revision: revision}
		}})
		return board.Recent()
	}
	before, after := tableOf(1), tableOf(2)
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
	first := f.of(before, o, o.Kind.Version)
	if again := f.of(before, o, o.Kind.Version); &again[0] != &first[0] {
		t.Error("put together twice")
	}
	for board, text := range map[*status.Table][]byte{before: f.of(before, o, o.Kind.Version), after: f.of(after, o, o.Kind.Version)} {
		if _, of := board.Of(o); !bytes.Equal(text, WithStatus(o, o.Kind.Version, of)) {
			t.Errorf("by the board of %d: %s", board.Revision(), text)
		}
	}
	for i := range 100 {
		f.of(after, object(fmt.Sprint("large-", i), framesSize/10), o.Kind.Version)
		if f.size > framesSize || len(f.texts) > 10 {
			t.Fatalf("%d bytes are kept, in %d texts", f.size, len(f.texts))
		}
	}
}
