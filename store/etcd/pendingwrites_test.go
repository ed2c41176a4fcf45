package etcd

import (
	"fmt"
	"testing"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store/storetest"
)

// TestPendingWrites checks that a written object is returned only if the bytes are the same.
func TestPendingWrites(t *testing.T) {
	var e pendingWrites
	value := func(key string, o *schema.Object) *mvccpb.KeyValue {
		return &mvccpb.KeyValue{Key: []byte(key), Value: o.Encoded(), ModRevision: 7}
	}
	written, other := storetest.Rule(t, "default", "a", 1), storetest.Rule(t, "default", "a", 2)
	e.expect("a", other)
	e.expect("a", written)
	if got := e.take(value("a", other)); got != nil {
		t.Errorf("of what was not written last: %s", got.JSON())
	}
	if got := e.take(value("b", written)); got != nil {
		t.Errorf("of another key: %s", got.JSON())
	}
	got := e.take(value("a", written))
	if got == nil || got.Revision() != 7 || !got.IsEncodedAs(written.Encoded()) {
		t.Errorf("of what was written: %v", got)
	}
	if answer := e.wrote("a", written, 7); answer != got {
		t.Errorf("the answer is another object than what the watch tells: %v, %v", answer, got)
	}
	if got := e.take(value("a", written)); got != nil || e.size != 0 {
		t.Errorf("what was taken is still kept: %v, %d bytes", got, e.size)
	}
}

// TestPendingWritesOfTheWriter checks that the watch delivers the object that the writer
// received, if it has that revision.
func TestPendingWritesOfTheWriter(t *testing.T) {
	var e pendingWrites
	written := storetest.Rule(t, "default", "a", 1)
	value := &mvccpb.KeyValue{Key: []byte("a"), Value: written.Encoded(), ModRevision: 7}
	e.expect("a", written)
	if answer := e.wrote("a", written, 7); answer.Revision() != 7 || e.take(value) != answer || e.size != 0 {
		t.Errorf("the answer %v is told as another, or kept with %d bytes", answer, e.size)
	}
	e.expect("a", written)
	if answer := e.wrote("a", written, 6); answer.Revision() != 6 || e.take(value).Revision() != 7 {
		t.Errorf("the answer %v of revision 6 is told of revision 7", answer)
	}
	if answer := e.wrote("b", written, 8); answer.Revision() != 8 {
		t.Errorf("what nobody expects is answered as %v", answer)
	}
}

// TestPendingWritesAreBounded checks that objects that are never taken are dropped.
func TestPendingWritesAreBounded(t *testing.T) {
	var e pendingWrites
	large := storetest.Large(t, "default", "a", 1<<20)
	for i := range 100 {
		e.expect(fmt.Sprint(i), large)
		if e.size > pendingSize {
			t.Fatalf("%d bytes are kept", e.size)
		}
	}
	small := storetest.Rule(t, "default", "a", 1)
	for i := range 3 * maxPending {
		e.expect(fmt.Sprint(i), small)
		if len(e.objects) > maxPending {
			t.Fatalf("%d objects are kept", len(e.objects))
		}
	}
}
