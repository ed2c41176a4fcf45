package rest

import (
	"bytes"
	"fmt"
	"io"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/pilot-api/pilot-api/discovery"
)

const pollingNode = "sidecar~10.9.0.1~a.default~default.svc.cluster.local"

// envoyNode returns a node in the form and size of Envoy 1.40: most of it is the
// list of compiled extensions.
func envoyNode(id string, extensions int) string {
	var b strings.Builder
	fmt.Fprintf(&b, `{"id":%q,"cluster":"web","user_agent_name":"envoy","user_agent_build_version":`+
		`{"version":{"major_number":1,"minor_number":40},"metadata":{"build.type":"RELEASE","ssl.version":"BoringSSL"}},"extensions":[`, id)
	for i := range extensions {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"name":"envoy.filters.http.number_%d","category":"envoy.filters.http"}`, i)
	}
	b.WriteString(`],"client_features":["envoy.lb.does_not_support_overprovisioning"]}`)
	return b.String()
}

// envoyPoll returns a body as Envoy writes it.
func envoyPoll(version, node, names, typeURL string) []byte {
	var b bytes.Buffer
	b.WriteString(`{`)
	if version != "" {
		fmt.Fprintf(&b, `"version_info":%q,`, version)
	}
	b.WriteString(`"node":` + node)
	if names != "" {
		b.WriteString(`,"resource_names":[` + names + `]`)
	}
	fmt.Fprintf(&b, `,"type_url":%q}`, typeURL)
	return b.Bytes()
}

// silentBody records how much room it is offered before any data.
type silentBody struct{ offered int }

func (b *silentBody) Read(p []byte) (int, error) {
	b.offered = len(p)
	return 0, io.ErrUnexpectedEOF
}

// TestPollsTakeMemoryAsTheyCome checks that announcing a large poll allocates
// nothing.
func TestPollsTakeMemoryAsTheyCome(t *testing.T) {
	body := &silentBody{}
	r := httptest.NewRequest("POST", "/v3/discovery:clusters", body)
	r.ContentLength = maxPoll
	if _, err := newPollReader().read(httptest.NewRecorder(), r); err == nil {
		t.Fatal("want an error")
	}
	if body.offered == 0 || body.offered > 64<<10 {
		t.Errorf("%d bytes were made ready for a body of which nothing came", body.offered)
	}
}

func TestEnvoysPollIsRecognised(t *testing.T) {
	p := newPollReader()
	node := envoyNode(pollingNode, 1000)
	want := poll{Version: "v1", Envoy: "1.40.0", Node: discovery.Node{ID: pollingNode}, Names: []string{"a|http", "b"}, TypeURL: "t"}
	for _, seen := range []int{0, 1, 1} {
		if len(p.recent) != seen {
			t.Errorf("%d nodes remembered, want %d", len(p.recent), seen)
		}
		got, err := p.parse(envoyPoll("v1", node, `"a|http","b"`, "t"))
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	}
	got, err := p.parse(envoyPoll("", node, "", "u"))
	if diff := cmp.Diff(poll{Envoy: "1.40.0", Node: discovery.Node{ID: pollingNode}, TypeURL: "u"}, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestOddPolls(t *testing.T) {
	cases := []struct {
		about, body string
		want        poll
		bad         bool
	}{
		{about: "white space", body: ` { "node" : {"id": "n"} , "type_url": "t" } `, want: poll{Node: discovery.Node{ID: "n"}, TypeURL: "t"}},
		{about: "another order", body: `{"type_url":"t","node":{"id":"n"}}`, want: poll{Node: discovery.Node{ID: "n"}, TypeURL: "t"}},
		{about: "lower camel case", body: `{"versionInfo":"v","resourceNames":["a"],"typeUrl":"t"}`, want: poll{Version: "v", Names: []string{"a"}, TypeURL: "t"}},
		{about: "escapes", body: `{"version_info":"\u0061","node":{"id":"n"},"type_url":"t"}`, want: poll{Version: "a", Node: discovery.Node{ID: "n"}, TypeURL: "t"}},
		{about: "unknown fields", body: `{"node":{"id":"n","new":[1]},"newer":{},"type_url":"t"}`, want: poll{Node: discovery.Node{ID: "n"}, TypeURL: "t"}},
		{
			about: "a place", body: `{"node":{"id":"n","locality":{"region":"r","zone":"z","sub_zone":"s"}},"type_url":"t"}`,
			want: poll{Node: discovery.Node{ID: "n", Locality: "r/z/s"}, TypeURL: "t"},
		},
		{
			about: "a region in camel case", body: `{"node":{"id":"n","locality":{"region":"r","subZone":""}},"type_url":"t"}`,
			want: poll{Node: discovery.Node{ID: "n", Locality: "r"}, TypeURL: "t"},
		},
		{about: "a place too long", body: `{"node":{"id":"n","locality":{"zone":"` + strings.Repeat("a", 1<<10) + `"}},"type_url":"t"}`, bad: true},
		{
			about: "a node that imitates the rest",
			body:  `{"node":{"id":"n","metadata":{"x":0,"resource_names":["b"]}},"type_url":"t"}`,
			want:  poll{Node: discovery.Node{ID: "n"}, TypeURL: "t"},
		},
		{
			about: "a field in between that comes again",
			body:  `{"version_info":"old","node":{"id":"n"},"version_info":"new","type_url":"t"}`,
			want:  poll{Version: "new", Node: discovery.Node{ID: "n"}, TypeURL: "t"},
		},
		{about: "a type in between", body: `{"node":{"id":"n"},"type_url":"t","type_url":"u"}`, want: poll{Node: discovery.Node{ID: "n"}, TypeURL: "u"}},
		{about: "broken off", body: `{"node":{"id":"n"},"type_url":"t"`, bad: true},
		{about: "more than one", body: `{"node":{"id":"n"},"type_url":"t"}{}`, bad: true},
		{about: "a broken node", body: `{"node":{"id":"n"]},"type_url":"t"}`, bad: true},
		{about: "empty", body: ``, bad: true},
	}
	for _, c := range cases {
		p := newPollReader()
		for range 2 {
			got, err := p.parse([]byte(c.body))
			if diff := cmp.Diff(c.want, got, cmpopts.EquateEmpty()); diff != "" || c.bad != (err != nil) {
				t.Errorf("%s: %v (-want +got):\n%s", c.about, err, diff)
			}
		}
	}
}

func TestNodesInUseAreNotForgotten(t *testing.T) {
	p := newPollReader()
	used := nodeHash{15: 1}
	p.remember(used, identity{Node: discovery.Node{ID: "used"}})
	for i := range 3 * maxNodes {
		p.remember(nodeHash{byte(i), byte(i >> 8), byte(i >> 16)}, identity{Node: discovery.Node{ID: "flood"}})
		if i%1000 == 0 {
			if node, ok := p.lookup(used); !ok || node.Node.ID != "used" {
				t.Fatalf("forgotten after %d others", i)
			}
		}
	}
	if len(p.recent) > maxNodes || len(p.older) > maxNodes {
		t.Errorf("%d and %d nodes kept, at most %d each allowed", len(p.recent), len(p.older), maxNodes)
	}
}

// TestNodesTakeLittle: nodes that are as large as possible do not take more than their bytes.
func TestNodesTakeLittle(t *testing.T) {
	p := newPollReader()
	for i := range 4 * maxNodeBytes / maxNodeSize {
		p.remember(nodeHash{byte(i), byte(i >> 8), byte(i >> 16)}, identity{Node: discovery.Node{ID: strings.Repeat("x", maxNodeSize)}})
		p.remember(nodeHash{byte(i), byte(i >> 8), byte(i >> 16)}, identity{Node: discovery.Node{ID: strings.Repeat("x", maxNodeSize)}})
	}
	if most := maxNodeBytes / maxNodeSize; len(p.recent) > most || len(p.older) != most {
		t.Errorf("%d and %d nodes kept, at most %d each allowed", len(p.recent), len(p.older), most)
	}
}

// TestNodesAreToldApart by each of their bytes and by their length, and by each
// reader with its own key.
func TestNodesAreToldApart(t *testing.T) {
	h := newNodeHasher()
	node := []byte(envoyNode(pollingNode, 10))
	seen := map[nodeHash]string{h.hash(node): "the node"}
	note := func(hash nodeHash, what string) {
		if other, twice := seen[hash]; twice {
			t.Errorf("%s hashes as %s", what, other)
		}
		seen[hash] = what
	}
	for i := range node {
		node[i] ^= 1
		note(h.hash(node), fmt.Sprintf("byte %d changed", i))
		node[i] ^= 1
		note(h.hash(node[:i]), fmt.Sprintf("the first %d bytes", i))
		note(h.hash(append(bytes.Clone(node), make([]byte, i+1)...)), fmt.Sprintf("%d zeros more", i+1))
	}
	note(newNodeHasher().hash(node), "another reader's")
	if _, same := seen[h.hash(node)]; !same {
		t.Error("the same node has two hashes")
	}
}

// TestLongNodesAreNotRemembered checks that only nodes of a proxy's size are kept:
// a client invents its id.
func TestLongNodesAreNotRemembered(t *testing.T) {
	for size, want := range map[int]int{maxNodeSize: 1, maxNodeSize + 1: 0} {
		p := newPollReader()
		id := strings.Repeat("x", size)
		got, err := p.parse(envoyPoll("", envoyNode(id, 1), "", "t"))
		if err != nil || got.Node.ID != id {
			t.Fatalf("an id of %d bytes: %v", size, err)
		}
		if len(p.recent) != want {
			t.Errorf("an id of %d bytes: %d nodes remembered, want %d", size, len(p.recent), want)
		}
	}
}

// TestNodesStateTheirLabels checks that Istio's metadata is read in any order, and
// nothing else.
func TestNodesStateTheirLabels(t *testing.T) {
	at := func(metadata string) string {
		return `{"node":{"id":"n","metadata":` + metadata + `},"type_url":"t"}`
	}
	long := strings.Repeat("x", 63)
	many := make([]string, 65)
	for i := range many {
		many[i] = fmt.Sprintf(`"l%d":""`, i)
	}
	for _, c := range []struct {
		metadata string
		want     discovery.Node
		bad      string
	}{
		{metadata: `{"LABELS":{"version":"v1","app":"web","bare":""},"NAMESPACE":"shop"}`, want: discovery.Node{ID: "n", Namespace: "shop", Labels: "app=web,bare,version=v1"}},
		{metadata: `{"LABELS":{},"labels":5,"namespace":[]}`, want: discovery.Node{ID: "n"}},
		{metadata: `{"LABELS":null,"NAMESPACE":null}`, want: discovery.Node{ID: "n"}},
		{metadata: `null`, want: discovery.Node{ID: "n"}},
		{metadata: `{"LABELS":{"app":5}}`, bad: "bad node: node.metadata.LABELS.app must be a text"},
		{metadata: `{"LABELS":"app=web"}`, bad: "bad node: node.metadata.LABELS must be an object whose values are texts"},
		{metadata: `{"NAMESPACE":1e999}`, bad: "bad node: node.metadata.NAMESPACE must be a text"},
		{metadata: `{"NAMESPACE":{}}`, bad: "bad node: node.metadata.NAMESPACE must be a text"},
		{metadata: `{"NAMESPACE":"a.b"}`, bad: `bad node: namespace "a.b": `},
		{metadata: `{"LABELS":{"app":"a,b=c"}}`, bad: `bad node: value "a,b=c" of label app: `},
		{metadata: `{"LABELS":{"a b":""}}`, bad: `bad node: label name "a b": `},
		{metadata: `{"LABELS":{"app":"` + long + `x"}}`, bad: `bad node: value "` + long + `x" of label app: `},
		{metadata: `{"LABELS":{` + strings.Join(many, ",") + `}}`, bad: "bad node: 65 labels, at most 64 are allowed"},
	} {
		p := newPollReader()
		for range 2 {
			got, err := p.parse([]byte(at(c.metadata)))
			switch {
			case c.bad == "" && (err != nil || got.Node != c.want):
				t.Errorf("%s: %+v, %v", c.metadata, got.Node, err)
			case c.bad != "" && (err == nil || !strings.HasPrefix(err.Error(), c.bad)):
				t.Errorf("%s: %v, want %s", c.metadata, err, c.bad)
			}
		}
		if known := len(p.recent) > 0; known != (c.bad == "") {
			t.Errorf("%s is remembered: %v", c.metadata, known)
		}
	}
}

// FuzzPoll checks that for any body, and any known nodes, the fast path agrees with
// encoding/json.
func FuzzPoll(f *testing.F) {
	f.Add([]byte(`{"node":{"id":"n"},"type_url":"t"}`), []byte(`{"version_info":"v","node":{"id":"n"},"resource_names":["a"],"type_url":"t"}`))
	f.Add([]byte(`{"node":{"id":"n"},"version_info":"x","type_url":"t"}`), []byte(`{"version_info":"v","node":{"id":"n"},"version_info":"x","type_url":"t"}`))
	f.Add([]byte(`{"node":null,"resource_names":[],"type_url":""}`), []byte(`{"node":"n","resource_names":["a",],"type_url":"\n"}`))
	f.Add([]byte(`{"node":{"id":1},"type_url":"t"}`), envoyPoll("v", envoyNode(pollingNode, 3), `"a"`, "t"))
	f.Add([]byte(`{"node":{"id":"n","metadata":{"LABELS":{"a":"b"}}},"type_url":"t"}`), []byte(`{"node":{"id":"n","metadata":{"LABELS":{"a":1}}},"type_url":"t"}`))
	f.Fuzz(func(t *testing.T, before, body []byte) {
		p := newPollReader()
		for _, b := range [][]byte{before, body, body, before} {
			want, wantErr := decodePoll(b)
			got, err := p.parse(b)
			if (err != nil) != (wantErr != nil) {
				t.Fatalf("%q: error %v, encoding/json %v", b, err, wantErr)
			}
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Fatalf("%q: encoding/json - and + ours differ:\n%s", b, diff)
			}
		}
	})
}
