package stream

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/pilot-api/pilot-api/discovery/xds"
)

// testSet has resources of these names, whose content is told by a number.
func testSet(typeURL string, contents map[string]byte) *xds.Set {
	s := &xds.Set{TypeURL: typeURL}
	for _, name := range slices.Sorted(maps.Keys(contents)) {
		s.Sorted = append(s.Sorted, &xds.Resource{TypeURL: typeURL, Name: name, Hash: xds.Digest{contents[name]}, Shell: &xds.Fragment{Binary: []byte{contents[name]}}})
	}
	s.Version = xds.VersionOf(nil, s.Sorted)
	return s
}

var someNames = rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f"})

func drawSet(t *rapid.T) *xds.Set {
	return testSet(xds.EndpointType, rapid.MapOfN(someNames, rapid.Byte(), 0, 6).Draw(t, "set"))
}

// TestNamesAreASet: whether they are shared or the stream's own, names are what was
// added and not removed.
func TestNamesAreASet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, want := names{}, map[string]bool{}
		for range rapid.IntRange(0, 20).Draw(t, "steps") {
			name := someNames.Draw(t, "name")
			switch rapid.SampledFrom([]string{"add", "remove", "share"}).Draw(t, "step") {
			case "add":
				n.add(name)
				want[name] = true
			case "remove":
				n.remove(name)
				delete(want, name)
			case "share":
				n.share(drawSet(t))
			}
			bytes := 0
			for each := range n.extra {
				bytes += len(each)
			}
			if n.bytes != bytes {
				t.Fatalf("%d bytes are counted of %d", n.bytes, bytes)
			}
			if n.len() != len(want) {
				t.Fatalf("%d names, want %v", n.len(), want)
			}
			for _, each := range []string{"a", "b", "c", "d", "e", "f", "g"} {
				if n.has(each) != want[each] {
					t.Fatalf("%s: %v, want %v", each, n.has(each), want)
				}
			}
			list := rapid.SliceOfN(someNames, 0, 8).Draw(t, "list")
			distinct := map[string]bool{}
			for _, each := range list {
				distinct[each] = true
			}
			if n.are(list) != maps.Equal(distinct, want) {
				t.Fatalf("are %v: %v, want %v", list, n.are(list), want)
			}
		}
	})
}

// TestNamesOfASetTakeNoMemory: those of all of a set are the set's.
func TestNamesOfASetTakeNoMemory(t *testing.T) {
	n := names{}
	for _, name := range []string{"a", "b", "x"} {
		n.add(name)
	}
	first := testSet(xds.EndpointType, map[string]byte{"a": 1, "b": 1})
	if n.share(first); n.shared != first || len(n.extra) != 1 {
		t.Fatalf("%v beside the set", n.extra)
	}
	n.remove("x")
	next := testSet(xds.EndpointType, map[string]byte{"a": 2, "b": 1})
	if n.share(next); n.shared != next {
		t.Fatal("the names keep an old set in memory")
	}
	if n.share(testSet(xds.EndpointType, map[string]byte{"a": 2, "c": 1})); n.shared != next || n.has("c") {
		t.Fatal("the names are of a set that has others")
	}
}
