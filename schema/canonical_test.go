package schema

import (
	"fmt"
	"strings"
	"testing"

	networking "istio.io/api/networking/v1alpha3"
)

// However a host is written, whoever looks it up sees one spelling; what is
// stored is what was written.
func TestHostsInLowerCase(t *testing.T) {
	for kind, spec := range map[string]string{
		"ServiceEntry":    `{"hosts":["A.b"],"ports":[{"number":80,"name":"http"}],"resolution":"DNS","endpoints":[{"address":"A.b"}]}`,
		"WorkloadEntry":   `{"address":"A.b"}`,
		"DestinationRule": `{"host":"A.b"}`,
		"Gateway":         `{"servers":[{"port":{"number":80,"name":"a","protocol":"HTTP"},"hosts":["A.b"]}]}`,
		"VirtualService": `{"hosts":["A.b"],"http":[{"route":[{"destination":{"host":"A.b"}}],"mirror":{"host":"A.b"}},{"route":[{"destination":{"host":"A.b"}}],"mirrors":[{"destination":{"host":"A.b"}}]}],
			"tls":[{"match":[{"sniHosts":["A.b"]}],"route":[{"destination":{"host":"A.b"}}]}],"tcp":[{"route":[{"destination":{"host":"A.b"}}]}]}`,
	} {
		o, problems := Decode(fmt.Appendf(nil, `{"apiVersion":"networking.istio.io/v1","kind":%q,"metadata":{"name":"x"},"spec":%s}`, kind, spec), Options{})
		if err := problems.Err(); err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		typed, err := o.Spec()
		if err != nil {
			t.Fatal(err)
		}
		if text := fmt.Sprint(typed); strings.Contains(text, "A.b") || !strings.Contains(text, "a.b") {
			t.Errorf("%s: %s", kind, text)
		}
		if !strings.Contains(string(o.JSON()), "A.b") {
			t.Errorf("%s is stored as %s", kind, o.JSON())
		}
	}
}

func TestAnyValueOfAbsentHeader(t *testing.T) {
	o, problems := Decode([]byte(`{"apiVersion":"networking.istio.io/v1","kind":"VirtualService","metadata":{"name":"x"},"spec":{"hosts":["a"],
		"http":[{"match":[{"withoutHeaders":{"x":{"regex":"*"}}}],"route":[{"destination":{"host":"a"}}]}]}}`), Options{})
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	spec, err := o.Spec()
	if err != nil {
		t.Fatal(err)
	}
	if m := spec.(*networking.VirtualService).Http[0].Match[0].WithoutHeaders["x"]; m == nil || m.MatchType != nil {
		t.Errorf("the condition is %v, want one for presence", m)
	}
}
