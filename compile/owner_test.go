package compile_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/explain"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/schema"
)

// declarer is a ServiceEntry of some year with one port, 7000.
type declarer struct {
	namespace, name string
	year            int
	host            string
	protocol        string
	addresses       []string
	outside         bool
}

func (d declarer) object(t *testing.T) *schema.Object {
	t.Helper()
	o := objectIn(t, d.namespace, "ServiceEntry", d.name, spec{
		"hosts": []string{d.host}, "addresses": d.addresses, "resolution": "STATIC",
		"location":  map[bool]string{false: "MESH_INTERNAL", true: "MESH_EXTERNAL"}[d.outside],
		"ports":     []spec{{"number": 7000, "name": "p", "protocol": d.protocol}},
		"endpoints": []spec{{"address": "10.1.0.1"}},
	})
	return created(t, o, d.year)
}

// created is the object as if it were of some year.
func created(t *testing.T, o *schema.Object, year int) *schema.Object {
	t.Helper()
	meta := o.Meta
	meta.CreationTimestamp = metav1.NewTime(time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC))
	out, err := schema.New(o.Kind, meta, o.SpecJSON())
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// reached is the host of the service that a captured request of a caller in the
// namespace default goes to, or "".
func reached(config *ir.Config, r explain.Request) string {
	r.Way, r.Port, r.Path, r.Method = explain.Captured, 7000, "/", "GET"
	e := explain.Proxy{Config: config, IP: "10.99.0.1"}.Explain(r)
	if e.Forward == nil || len(e.Forward.Clusters) == 0 {
		return ""
	}
	host, ok := strings.CutPrefix(e.Forward.Clusters[0].Name, "out.")
	if !ok {
		return ""
	}
	host, _, _ = strings.Cut(host, "|")
	return host
}

// unhonoured are the names of the ServiceEntries of which something is not honoured.
func unhonoured(problems diag.List) []string {
	var out []string
	for _, p := range problems.Unhonoured() {
		if p.Object.Kind == "ServiceEntry" && !slices.Contains(out, p.Object.Name) {
			out = append(out, p.Object.Name)
		}
	}
	slices.Sort(out)
	return out
}

// TestWhoOwnsAnAddress: of two services of two namespaces that declare an address at a
// port, the older one has it, whatever the protocols and names, and the younger one is
// told. In one namespace there is no loser by age.
func TestWhoOwnsAnAddress(t *testing.T) {
	const address = "10.20.0.8"
	blocks := []struct {
		title        string
		older, other []string // of the older one and of the younger one
		youngerIsIn  bool
	}{
		{"equal", []string{address}, []string{address}, true},
		{"equal blocks", []string{"10.20.0.0/16"}, []string{"10.20.0.0/16"}, true},
		{"in a block", []string{"10.20.0.0/16"}, []string{address}, true},
		{"a block in a block", []string{"10.20.0.0/16"}, []string{"10.20.0.0/24"}, true},
		{"around an address", []string{address}, []string{"10.20.0.0/16"}, false},
		{"around a block", []string{"10.20.0.0/24"}, []string{"10.0.0.0/8"}, false},
	}
	for _, older := range []string{"HTTP", "TCP", "TLS"} {
		for _, younger := range []string{"HTTP", "TCP", "TLS"} {
			for _, b := range blocks {
				for _, outside := range []bool{false, true} {
					t.Run(fmt.Sprintf("%s before %s, %s, outside %v", older, younger, b.title, outside), func(t *testing.T) {
						// By its host and name the younger one comes first.
						old := declarer{"default", "old", 2001, "zz.default.svc.cluster.local", older, b.older, outside}
						young := declarer{"a-evil", "aa", 2002, "aa.a-evil.svc.cluster.local", younger, b.other, outside}
						config, problems := compiled(t, "sidecar~10.99.0.1~caller~default.svc.cluster.local", []*schema.Object{old.object(t), young.object(t)})
						if err := ir.Validate(config); err != nil {
							t.Error(err)
						}
						for _, asked := range []string{address, old.host, young.host} {
							r := explain.Request{Address: address, Scheme: "http", Host: asked}
							if older == "TLS" {
								r.Scheme = "https"
							}
							want := old.host
							if older == "HTTP" { // Requests go by host, and blocks are no hosts.
								if asked == young.host && younger == "HTTP" {
									want = young.host
								} else if asked != old.host && !slices.Contains(b.older, asked) || asked == young.host {
									want = ""
								}
							}
							if got := reached(config, r); got != want {
								t.Errorf("%s: reaches %q, want %q", asked, got, want)
							}
						}
						lost := unhonoured(problems)
						if slices.Contains(lost, "old") {
							t.Errorf("the older one is blamed: %v", problems)
						}
						// A block is no host, so an HTTP service loses nothing by one; the port of
						// a block that HTTP takes is lost as well.
						loses := b.youngerIsIn && (younger != "HTTP" || b.other[0] == address) ||
							older == "HTTP" && younger != "HTTP" && strings.Contains(b.other[0], "/")
						if slices.Contains(lost, "aa") != loses {
							t.Errorf("the younger one is told: %v, want %v: %v", !loses, loses, problems)
						}
					})
				}
			}
		}
	}
}

// TestAddressesOfOneNamespace: the narrower block has its connections, however young.
func TestAddressesOfOneNamespace(t *testing.T) {
	for _, narrow := range []string{"10.20.0.8", "10.20.0.0/24"} {
		old := declarer{"default", "old", 2001, "old.example", "TCP", []string{"10.20.0.0/16"}, true}
		young := declarer{"default", "young", 2002, "young.example", "TCP", []string{narrow}, true}
		config, problems := compiled(t, "sidecar~10.99.0.1~caller~default.svc.cluster.local", []*schema.Object{old.object(t), young.object(t)})
		if got := reached(config, explain.Request{Address: "10.20.0.8"}); got != young.host || len(problems) > 0 {
			t.Errorf("%s: reaches %q, %v", narrow, got, problems)
		}
	}
}

// TestNarrowBlocksOfTheOwner: a block of another namespace does not come between two
// of an older one, and has what is left.
func TestNarrowBlocksOfTheOwner(t *testing.T) {
	objs := []*schema.Object{
		declarer{"default", "inner", 2001, "inner.example", "TCP", []string{"10.20.0.0/24"}, true}.object(t),
		declarer{"a-evil", "wide", 2002, "a.example", "TCP", []string{"10.0.0.0/8"}, true}.object(t),
		declarer{"default", "innermost", 2003, "innermost.example", "TCP", []string{"10.20.0.8"}, true}.object(t),
		declarer{"default", "late", 2004, "late.example", "TCP", []string{"10.30.0.0/16"}, true}.object(t),
	}
	config, problems := compiled(t, "sidecar~10.99.0.1~caller~default.svc.cluster.local", objs)
	for address, want := range map[string]string{
		"10.20.0.8": "innermost.example", "10.20.0.9": "inner.example", "10.30.0.1": "a.example", "10.40.0.1": "a.example",
	} {
		if got := reached(config, explain.Request{Address: address}); got != want {
			t.Errorf("%s reaches %q, want %q", address, got, want)
		}
	}
	if lost := unhonoured(problems); !slices.Equal(lost, []string{"late"}) {
		t.Errorf("lost: %v, %v", lost, problems)
	}
}

// TestWhoOwnsAServerName: an older host that is told by server name has its connections
// also at the addresses of a younger object of another namespace, at no address of an
// older one, and none by the rule of another namespace.
func TestWhoOwnsAServerName(t *testing.T) {
	for _, test := range []struct {
		title     string
		namespace string
		year      int
		protocol  string
		outside   bool
		want      string
		lost      []string
	}{
		{"a younger block of another namespace", "a-evil", 2003, "TCP", true, "named.example", []string{"aa"}},
		{"a younger one of the mesh", "a-evil", 2003, "TCP", false, "named.example", []string{"aa"}},
		{"a younger one with TLS", "a-evil", 2003, "TLS", true, "named.example", nil},
		{"a younger one with Mongo", "a-evil", 2003, "MONGO", false, "named.example", []string{"aa"}},
		{"an older block of another namespace", "a-evil", 2001, "TCP", true, "aa.example", nil},
		{"a younger block of the namespace", "default", 2003, "TCP", true, "aa.example", nil},
	} {
		for _, addresses := range [][]string{{"10.50.0.0/16"}, {"10.50.0.1"}, {"0.0.0.0/0"}} {
			t.Run(test.title+" "+addresses[0], func(t *testing.T) {
				objs := []*schema.Object{
					declarer{"default", "named", 2002, "named.example", "TLS", nil, true}.object(t),
					declarer{test.namespace, "aa", test.year, "aa.example", test.protocol, addresses, test.outside}.object(t),
				}
				config, problems := compiled(t, "sidecar~10.99.0.1~caller~default.svc.cluster.local", objs)
				for name, want := range map[string]string{"named.example": test.want, "other.example": "aa.example"} {
					r := explain.Request{Address: "10.50.0.1", Scheme: "https", Host: name}
					if got := reached(config, r); got != want {
						t.Errorf("%s reaches %q, want %q", name, got, want)
					}
				}
				if lost := unhonoured(problems); !slices.Equal(lost, test.lost) {
					t.Errorf("lost: %v, want %v: %v", lost, test.lost, problems)
				}
			})
		}
	}
	t.Run("by a rule of another namespace", func(t *testing.T) {
		objs := []*schema.Object{
			declarer{"default", "named", 2002, "named.example", "TLS", nil, true}.object(t),
			declarer{"a-evil", "aa", 2001, "aa.example", "TLS", nil, true}.object(t),
			objectIn(t, "a-evil", "VirtualService", "rule", spec{
				"hosts": []string{"aa.example", "named.example"},
				"tls":   []spec{{"match": []spec{{"sniHosts": []string{"aa.example", "named.example"}}}, "route": []spec{{"destination": spec{"host": "aa.example"}}}}},
			}),
		}
		config, problems := compiled(t, "sidecar~10.99.0.1~caller~default.svc.cluster.local", objs)
		for _, name := range []string{"named.example", "aa.example"} {
			if got := reached(config, explain.Request{Address: "10.50.0.1", Scheme: "https", Host: name}); got != name {
				t.Errorf("%s reaches %q", name, got)
			}
		}
		if want := "connections to port 7000 that ask for the server name named.example do not follow the rule"; !strings.Contains(problems.Error(), want) {
			t.Errorf("want %q in:\n%v", want, problems)
		}
	})
}

// TestWhoOwnsAName: a domain goes to one host, and the other one is told.
func TestWhoOwnsAName(t *testing.T) {
	const shop = "shop.default.svc.cluster.local"
	for _, test := range []struct {
		name            string // that is asked for
		namespace, host string
		years           [2]int // of shop and of the other one
		callers         string
		want            string
		lost            string
	}{
		{"shop", "a-evil", "shop", [2]int{2001, 2002}, "default", shop, "other"},
		{"shop", "a-evil", "shop", [2]int{2002, 2001}, "default", shop, "other"},   // It is of the callers' namespace.
		{"shop", "default", "shop", [2]int{2001, 2002}, "default", "shop", "shop"}, // One namespace: the whole name.
		{"shop", "a-evil", "shop", [2]int{2001, 2002}, "a-evil", "shop", ""},
		{"shop.default", "a-evil", "shop.default", [2]int{2001, 2002}, "default", shop, "other"},
		{"shop.default", "a-evil", "shop.default", [2]int{2002, 2001}, "default", shop, "other"},
		{"shop.default", "a-evil", "shop.default", [2]int{2001, 2002}, "third", shop, "other"},
		{"shop.default", "a-evil", "shop.default", [2]int{2002, 2001}, "third", "shop.default", "shop"},
		{"shop.default", "third", "shop.default", [2]int{2001, 2002}, "third", shop, "other"},
		{"shop.default.svc", "a-evil", "shop.default.svc", [2]int{2001, 2002}, "default", shop, "other"},
		{"shop.default.svc.cluster", "a-evil", "shop.default.svc.cluster", [2]int{2001, 2002}, "third", shop, "other"},
		{shop, "a-evil", shop + ".cluster.local", [2]int{2002, 2001}, "default", shop, "other"},
	} {
		t.Run(fmt.Sprintf("%s in %s for %s, %v", test.host, test.namespace, test.callers, test.years), func(t *testing.T) {
			objs := []*schema.Object{
				declarer{"default", "shop", test.years[0], shop, "HTTP", nil, false}.object(t),
				declarer{test.namespace, "other", test.years[1], test.host, "HTTP", nil, false}.object(t),
			}
			config, problems := compiled(t, "sidecar~10.99.0.1~caller~"+test.callers+".svc.cluster.local", objs)
			if got := reached(config, explain.Request{Address: "10.20.0.8", Scheme: "http", Host: test.name}); got != test.want {
				t.Errorf("reaches %q, want %q", got, test.want)
			}
			if got := strings.Join(unhonoured(problems), ","); got != test.lost {
				t.Errorf("lost: %q, want %q: %v", got, test.lost, problems)
			}
		})
	}
}
