package schema_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/schema"
)

// repeatedText is a list of n items, in which # is the number of each.
func repeatedText(n int, item string) string {
	items := make([]string, n)
	for i := range items {
		items[i] = strings.ReplaceAll(item, "#", fmt.Sprint(i+1))
	}
	return "[" + strings.Join(items, ",") + "]"
}

// TestMultipliesToTooMuch: lists of one object that multiply to more than anybody
// needs are refused where they are written, with the numbers. What is stored already
// is read.
func TestMultipliesToTooMuch(t *testing.T) {
	const manyPorts = `{"number":#,"name":"p-#","protocol":"HTTP"}`
	entry := func(hosts, ports, addresses, endpoints int) string {
		return `{"resolution":"STATIC","hosts":` + repeatedText(hosts, `"h#.example"`) + `,"ports":` + repeatedText(ports, manyPorts) +
			`,"addresses":` + repeatedText(addresses, `"10.0.0.#"`) + `,"endpoints":` + repeatedText(endpoints, `{"address":"10.0.0.1"}`) + `}`
	}
	virtual := func(hosts, routes, matches, mirrors, action int) string {
		return `{"hosts":` + repeatedText(hosts, `"h#.example"`) + `,"http":` + repeatedText(routes, `{"name":"`+strings.Repeat("x", action)+`-#","match":`+
			strings.ReplaceAll(repeatedText(matches, `{"uri":{"exact":"/@-$"}}`), "@-$", "#/"+strings.Repeat("y", 3))+
			`,"mirrors":`+repeatedText(mirrors, `{"destination":{"host":"m"}}`)+`,"route":[{"destination":{"host":"a"}}]}`) + `}`
	}
	for _, tc := range []struct {
		name, kind, spec string
		want             string // "" for what is taken
	}{
		{"endpoints fit", "ServiceEntry", entry(10, 10, 0, 992), ""},
		{"endpoints", "ServiceEntry", entry(10, 10, 0, 993), "10 hosts × 10 ports × 1,001 parts (8, one for each of 993 endpoints) = 100,100 parts, and must be at most 100,000"},
		{"the largest", "ServiceEntry", entry(256, 256, 0, 4000), "256 hosts × 256 ports × 4,008 parts (8, one for each of 4,000 endpoints) = 262,668,288 parts"},
		{"small text", "ServiceEntry", entry(100, 100, 0, 400), "= 4,080,000 parts"},
		{"hosts and ports", "ServiceEntry", entry(120, 120, 0, 0), "120 hosts × 120 ports × 8 parts (8) = 115,200 parts"},
		{"addresses", "ServiceEntry", entry(20, 40, 200, 0), "20 hosts × 40 ports × 808 parts (8, 4 for each of 200 addresses) = 646,400 parts"},
		{"matches fit", "VirtualService", virtual(2, 50, 10, 1, 1), ""},
		{"matches", "VirtualService", virtual(101, 50, 10, 1, 1), "101 hosts × 1 gateways × 1,000 parts of routes"},
		{"copies of a large action", "VirtualService", virtual(200, 1, 100, 0, 6000), "200 hosts × 1 gateways × 700 parts of routes"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			text := fmt.Sprintf(`{"apiVersion":"networking.istio.io/v1","kind":%q,"metadata":{"name":"x"},"spec":%s}`, tc.kind, tc.spec)
			_, problems := schema.Decode([]byte(text), schema.Options{})
			if tc.want == "" {
				if err := problems.Err(); err != nil {
					t.Error(err)
				}
				return
			}
			errors := problems.Errors()
			if len(errors) != 1 || errors[0].Code != diag.OverBudget || !strings.Contains(errors[0].Message, tc.want) {
				t.Fatalf("want %q, got\n%v", tc.want, errors)
			}
			kind, _ := schema.KindByName(tc.kind)
			o, err := schema.New(kind, metav1.ObjectMeta{Name: "x", Namespace: "default"}, json.RawMessage(tc.spec))
			if err != nil {
				t.Fatal(err)
			}
			stored, err := schema.Stored(o.Encoded(), 7)
			if err != nil {
				t.Fatalf("what is stored is not read: %v", err)
			}
			if _, err := stored.Spec(); err != nil {
				t.Fatalf("what is stored is not read: %v", err)
			}
		})
	}
}
