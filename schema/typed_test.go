package schema

import (
	"reflect"
	"runtime"
	"testing"
)

// TestSpecIsLent: those who look at the same time see one spec, and when nobody
// does any more, the object has not kept it.
func TestSpecIsLent(t *testing.T) {
	const rule = `{"apiVersion":"config.istio.io/v1alpha2","kind":"RouteRule","metadata":{"name":"a","namespace":"b"},"spec":{"destination":{"name":"c"},"precedence":7}}`
	o, problems := Decode([]byte(rule), Options{})
	if problems.Err() != nil {
		t.Fatal(problems)
	}
	look := func(o *Object) any {
		spec, err := o.Spec()
		if err != nil {
			t.Fatal(err)
		}
		return spec
	}
	first := look(o)
	if look(o.AtRevision(5)) != first {
		t.Error("it was decoded twice")
	}
	text := *first.(*RouteRule)
	first = nil
	runtime.GC()
	if o.typed.known() != nil {
		t.Error("the object keeps a spec that nobody looks at")
	}
	if again := look(o); !reflect.DeepEqual(again, &text) {
		t.Errorf("then it is %v, was %v", again, text)
	}
}
