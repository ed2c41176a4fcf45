package schema

import (
	"fmt"
	"strings"
	"testing"

	networking "istio.io/api/networking/v1alpha3"
)

// However a host is written, all code that looks it up sees one spelling; what is
// stored is what was written.
func TestHostsHaveOneSpelling(t *testing.T) {
	for kind, spec := range map[string]string{
		"ServiceEntry":    `{"hosts":["A.b"],"ports":[{"number":80,"name":"http"}],"resolution":"DNS","endpoints":[{"address":"10.0.0.1"}]}`,
		"DestinationRule": `{"host":"A.b"}`,
		"Gateway":         `{"servers":[{"port":{"number":80,"name":"a","protocol":"HTTP"},"hosts":["A.b"]}]}`,
		"VirtualService": `{"hosts":["A.b"],"http":[{"route":[{"destination":{"host":"A.b"}}],"mirror":{"host":"A.b"}},{"route":[{"destination":{"host":"A.b"}}],"mirrors":[{"destination":{"host":"A.b"}}]}],
			"tls":[{"match":[{"sniHosts":["A.b"]}],"route":[{"destination":{"host":"A.b"}}]}],"tcp":[{"route":[{"destination":{"host":"A.b"}}]}]}`,
		"Sidecar": `{"egress":[{"hosts":["./A.b"]}]}`,
	} {
		testOneSpelling(t, kind, spec, "A.b")
		testOneSpelling(t, kind, strings.ReplaceAll(spec, "A.b", "a.b."), "a.b.")
	}
	testOneSpelling(t, "WorkloadEntry", `{"address":"A.b"}`, "A.b")
	testOneSpelling(t, "ServiceEntry", `{"hosts":["c.d"],"ports":[{"number":80,"name":"http"}],"resolution":"DNS","endpoints":[{"address":"A.b"}]}`, "A.b")
}

// testOneSpelling decodes an object whose hosts are all written in one way, and
// looks for a.b in its typed form.
func testOneSpelling(t *testing.T, kind, spec, written string) {
	t.Helper()
	o, problems := Decode(fmt.Appendf(nil, `{"apiVersion":"networking.istio.io/v1","kind":%q,"metadata":{"name":"x"},"spec":%s}`, kind, spec), Options{})
	if err := problems.Err(); err != nil {
		t.Fatalf("%s: %v", kind, err)
	}
	typed, err := o.Spec()
	if err != nil {
		t.Fatal(err)
	}
	if text := fmt.Sprint(typed); strings.Contains(text, written) || !strings.Contains(text, "a.b") {
		t.Errorf("%s: %s", kind, text)
	}
	if !strings.Contains(string(o.JSON()), written) {
		t.Errorf("%s is stored as %s", kind, o.JSON())
	}
}

// TestFinalDotsRefused: where a final dot cannot be read, the error says so.
func TestFinalDotsRefused(t *testing.T) {
	for _, text := range []string{
		`{"apiVersion":"config.istio.io/v1alpha2","kind":"EgressRule","metadata":{"name":"x"},"spec":{"destination":{"service":"a.example.com."},"ports":[{"port":80,"protocol":"http"}]}}`,
		`{"apiVersion":"networking.istio.io/v1","kind":"ServiceEntry","metadata":{"name":"x"},"spec":{"hosts":["a.b"],"ports":[{"number":80,"name":"http"}],"resolution":"DNS","endpoints":[{"address":"a.b."}]}}`,
	} {
		if _, problems := Decode([]byte(text), Options{}); problems.Err() == nil || !strings.Contains(problems.Err().Error(), "leave out the final dot") {
			t.Errorf("%s: %v", text, problems)
		}
	}
	for _, host := range []string{"a.b..", ".", "*.", "*..", "a..b", ".a.b"} {
		text := fmt.Sprintf(`{"apiVersion":"networking.istio.io/v1","kind":"VirtualService","metadata":{"name":"x"},"spec":{"hosts":[%q],"http":[{"route":[{"destination":{"host":"a"}}]}]}}`, host)
		if _, problems := Decode([]byte(text), Options{}); problems.Err() == nil {
			t.Errorf("host %q is accepted", host)
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
