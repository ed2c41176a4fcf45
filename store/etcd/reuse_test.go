package etcd_test

import (
	"testing"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
	"github.com/pilot-api/pilot-api/store/etcd"
	"github.com/pilot-api/pilot-api/store/etcd/etcdtest"
)

// TestWhatIsWrittenIsNotDecoded checks that the typed spec is the same value from the
// request to the watch.
func TestWhatIsWrittenIsNotDecoded(t *testing.T) {
	s := etcd.New(etcdtest.Start(t).Client(), etcd.DefaultPrefix, quiet)
	w, err := s.Watch(t.Context(), store.Scope{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, write := range []struct {
		text string
		do   func(*schema.Object) (*schema.Object, error)
	}{
		{`{"destination":{"name":"reviews"}}`, func(o *schema.Object) (*schema.Object, error) { return s.Create(t.Context(), o) }},
		{`{"destination":{"name":"ratings"}}`, func(o *schema.Object) (*schema.Object, error) { return s.Update(t.Context(), o) }},
	} {
		o, list := schema.Decode([]byte(`{"apiVersion":"config.istio.io/v1alpha2","kind":"RouteRule","metadata":{"name":"a"},"spec":`+write.text+`}`), schema.Options{})
		if o == nil {
			t.Fatal(list)
		}
		want, _ := o.Spec()
		answer, err := write.do(o)
		if err != nil {
			t.Fatal(err)
		}
		batch := <-w.Batches()
		if len(batch.Events) != 1 {
			t.Fatalf("told %v, %v", batch, w.Err())
		}
		told := batch.Events[0].Object
		if string(told.JSON()) != string(answer.JSON()) {
			t.Errorf("told     %s\nanswered %s", told.JSON(), answer.JSON())
		}
		for _, got := range []*schema.Object{answer, told} {
			if spec, err := got.Spec(); spec != want {
				t.Errorf("%s was decoded again, %v", got.JSON(), err)
			}
		}
	}
}
