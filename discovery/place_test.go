package discovery_test

import (
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/schema"
)

func placed(t *testing.T, address, locality string) *schema.Object {
	return object(t, "ServiceEntry", "web", `{"hosts":["web.example"],"location":"MESH_INTERNAL","resolution":"STATIC",`+
		`"ports":[{"number":80,"name":"http","protocol":"HTTP"}],"endpoints":[{"address":"10.1.0.1","locality":"r/z"},{"address":"`+address+`","locality":"`+locality+`"}]}`)
}

// TestViewsOfPlaces: proxies in several places share a view until a rule asks
// where they are, and each is told the endpoints in an order of its own then.
func TestViewsOfPlaces(t *testing.T) {
	web := placed(t, "10.1.0.2", "q/z")
	src := newObjects(web)
	s := discovery.New(discovery.Options{Source: src, Settings: settings()})
	once(t, s)
	at := func(region string) discovery.Node {
		node, err := discovery.Node{ID: strings.Replace(nodeA, "~a.default~", "~"+region+".default~", 1)}.At(region, "z", "")
		if err != nil {
			t.Fatal(err)
		}
		return node
	}
	told := func(region string) any {
		view, _, err := s.ToldTo(at(region))
		if err != nil {
			t.Fatal(err)
		}
		return view
	}
	if told("r") != told("q") {
		t.Error("nobody asks where proxies are, and they have views of their own")
	}
	rule := object(t, "DestinationRule", "web", `{"host":"web.example","trafficPolicy":{"outlierDetection":{}}}`)
	src.set(web, rule)
	once(t, s)
	if told("r") == told("q") || told("p") != told("o") {
		t.Error("proxies have the same view where places matter, or others where both are unknown")
	}
	endpoints := func(region string) string {
		answer, err := s.V3(discovery.EndpointType, at(region), "", nil)
		if err != nil {
			t.Fatal(err)
		}
		return string(answer.Body)
	}
	if first := endpoints("r"); !strings.Contains(first, "near") || first == endpoints("q") {
		t.Errorf("proxies in two regions are told the same order:\n%s", first)
	}
	before := told("p")
	src.set(placed(t, "10.1.0.2", "p/z"), rule)
	once(t, s)
	if told("p") == before || told("q") != told("o") {
		t.Error("a region that has instances now, or none any more, is treated as before")
	}
	src.set(web)
	once(t, s)
	if told("r") != told("q") {
		t.Error("nobody asks any more where proxies are, and they have views of their own")
	}
}
