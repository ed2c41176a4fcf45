package status

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/schema"
)

// TestEqualStatusesAreShared checks that objects with equal statuses share one, and that
// unused ones are dropped.
func TestEqualStatusesAreShared(t *testing.T) {
	kind, _ := schema.KindByName("RouteRule")
	ruleOf := func(name string, generation int64) *schema.Object {
		o, err := schema.New(kind, metav1.ObjectMeta{Name: name, Namespace: "default", Generation: generation}, []byte("{}"))
		if err != nil {
			t.Fatal(err)
		}
		return o.AtRevision(generation)
	}
	const objects = 500
	board := newTable()
	look := func(generation func(i int) int64) int {
		own := &discovery.ObjectStatuses{}
		for i := range objects {
			own.Objects = append(own.Objects, ruleOf(fmt.Sprint("rule-", i), generation(i)))
		}
		board = board.next(own, peerSnapshot{})
		distinct := map[*internedStatus]bool{}
		for _, o := range own.Objects {
			is := board.entries[o.Key()]
			distinct[is.internedStatus] = true
			if got, want := string(is.text), string(textOf(is.status)); got != want || is.status.Conditions[0].ObservedGeneration != o.Meta.Generation {
				t.Fatalf("%s of generation %d has the status %s, its text is %s", o.Key(), o.Meta.Generation, want, got)
			}
		}
		return len(distinct)
	}
	if n := look(func(int) int64 { return 1 }); n != 1 {
		t.Errorf("%d statuses of objects that have all the same", n)
	}
	for round := range int64(20) {
		look(func(i int) int64 { return round*objects + int64(i) + 2 })
	}
	if n := len(board.interned.known); n > 64+2*objects {
		t.Errorf("%d statuses are kept, for %d objects", n, objects)
	}
	if n := look(func(int) int64 { return 20_000 }); n != 1 {
		t.Errorf("%d statuses of objects that have all the same again", n)
	}
}
