package discovery_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// hashed spreads by source address, which v1 cannot say, where v1 is not spared.
func hashed(t testing.TB, name, host string, spared bool) *schema.Object {
	by := `{"consistentHash":{"useSourceIp":true}}`
	if spared {
		by = `{"simple":"RANDOM"}`
	}
	return object(t, "DestinationRule", name, fmt.Sprintf(`{"host":%q,"trafficPolicy":{"loadBalancer":%s}}`, host, by))
}

// blamed are the DestinationRules that problems are of.
func blamed(problems diag.List) (names []string) {
	for _, p := range problems {
		if p.Code == diag.LostInV1 && p.Object.Kind == "DestinationRule" {
			names = append(names, p.Object.Name)
		}
	}
	return names
}

// TestLostInV1 is of proxies that nobody has seen, and tells nobody but who asks.
func TestLostInV1(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := newObjects(service(t, "one.example", "10.1.0.1"), hashed(t, "one", "one.example", false), hashed(t, "two", "one.example", true))
		s := follow(t, src, discovery.Options{})
		lost, left, err := s.LostInV1(t.Context())
		if got := blamed(lost); err != nil || left != 0 || !slices.Equal(got, []string{"one"}) {
			t.Errorf("%q, %d left out, %v", got, left, err)
		}
		if got := blamed(s.Report().Problems); got != nil {
			t.Errorf("reported of nobody: %q", got)
		}
		p, err := s.PreviewInV1(t.Context(), []*schema.Object{hashed(t, "one", "one.example", true)})
		if got := blamed(p.Solved); err != nil || !slices.Equal(got, []string{"one"}) || len(p.Problems) > 0 {
			t.Errorf("would solve %q and bring %v, %v", got, p.Problems, err)
		}
		src.replace(1, hashed(t, "one", "one.example", true))
		time.Sleep(pause)
		if p, err = s.PreviewInV1(t.Context(), src.all[:1]); err != nil || len(p.Problems)+len(p.Solved) > 0 {
			t.Errorf("a change of nothing: %+v, %v", p, err)
		}
		if lost, _, err = s.LostInV1(t.Context()); err != nil || len(lost) > 0 {
			t.Errorf("after it was mended: %v, %v", lost, err)
		}
	})
}

// TestLostInV1OfThoseThatAreThere: a proxy is looked at that is in no namespace of objects.
func TestLostInV1OfThoseThatAreThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const far = "sidecar~10.9.0.1~far.books~books.svc.cluster.local"
		var asked []string
		f := &faults{}
		s := followWith(t, newObjects(service(t, "one.example", "10.1.0.1")), discovery.Options{}, f)
		polls(t, s, far)
		f.proxy = func(v mesh.View) { asked = append(asked, v.Domain) }
		if _, _, err := s.LostInV1(t.Context()); err != nil || !slices.Equal(asked, []string{"default.svc.cluster.local", "svc.cluster.local"}) {
			t.Errorf("looked at %q, %v", asked, err)
		}
	})
}

// TestLostInV1IsBounded: in views, of which the others are counted, and one at a time.
func TestLostInV1IsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all []*schema.Object
		for i := range 230 {
			host := fmt.Sprintf("h%d.example", i)
			all = append(all, inNamespace(t, service(t, host, "10.1.0.1"), fmt.Sprintf("n%d", i)))
		}
		f := &faults{}
		s := followWith(t, newObjects(all...), discovery.Options{}, f)
		views := 0
		f.proxy = func(mesh.View) {
			if views++; views > 1 {
				return
			}
			if _, _, err := s.LostInV1(t.Context()); !errors.Is(err, discovery.ErrBusy) {
				t.Errorf("a second one beside: %v", err)
			}
			if _, err := s.Preview(t.Context(), nil); !errors.Is(err, discovery.ErrBusy) {
				t.Errorf("a preview beside: %v", err)
			}
		}
		if _, left, err := s.LostInV1(t.Context()); err != nil || views != 200 || left != 30 {
			t.Errorf("%d views, %d left out, %v", views, left, err)
		}
	})
}
