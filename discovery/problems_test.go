package discovery_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/pilot-api/pilot-api/discovery"
)

// TestProblemsOfOneObjectAreBounded: an object of a megabyte can have more than
// anybody reads, or keeps. How many there were is told.
func TestProblemsOfOneObjectAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var routes []string
		for i := range 1000 {
			routes = append(routes, fmt.Sprintf(`{"match":[{"uri":{"exact":"/%d"}}],"route":[{"destination":{"host":"nobody-%d.example"}}]}`, i, i))
		}
		large := object(t, "VirtualService", "large", `{"hosts":["web.example"],"http":[`+strings.Join(routes, ",")+`]}`)
		s := follow(t, newObjects(service(t, "web.example", "10.1.0.1"), large, timeout(t, "nobody.example", 1)), discovery.Options{})
		everything(t, s, nodeA)
		everything(t, s, nodeWeb)
		counts, left := map[string]int{}, ""
		for _, p := range s.Report().Problems {
			counts[p.Object.Name]++
			if strings.Contains(p.Message, "more problems of the object") {
				left = p.Message
			}
		}
		if counts["large"] != 101 || !strings.HasPrefix(left, "900 more") {
			t.Errorf("%d problems of the large object, and %q", counts["large"], left)
		}
		if counts["timeout"] != 1 {
			t.Errorf("%d problems of the other object", counts["timeout"])
		}
	})
}
