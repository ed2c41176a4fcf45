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
		p, err := s.Preview(t.Context(), discovery.PreviewOptions{Objects: []*schema.Object{hashed(t, "one", "one.example", true)}, InV1: true})
		if got := blamed(p.Solved); err != nil || !slices.Equal(got, []string{"one"}) || len(p.Problems) > 0 {
			t.Errorf("would solve %q and bring %v, %v", got, p.Problems, err)
		}
		src.replace(1, hashed(t, "one", "one.example", true))
		time.Sleep(pause)
		if p, err = s.Preview(t.Context(), discovery.PreviewOptions{Objects: src.all[:1], InV1: true}); err != nil || len(p.Problems)+len(p.Solved) > 0 {
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
		f.proxy = func(traits mesh.Traits) { asked = append(asked, traits.Domain) }
		if _, _, err := s.LostInV1(t.Context()); err != nil || !slices.Equal(asked, []string{"default.svc.cluster.local", "svc.cluster.local"}) {
			t.Errorf("looked at %q, %v", asked, err)
		}
	})
}

// inNamespaces is a service in each of n of them.
func inNamespaces(t *testing.T, n int) (all []*schema.Object) {
	for i := range n {
		all = append(all, inNamespace(t, service(t, fmt.Sprintf("h%d.example", i), "10.1.0.1"), fmt.Sprintf("n%03d", i)))
	}
	return all
}

// TestPreviewInV1LooksTwiceAtTheSame: a namespace more, of which there are too many then,
// neither solves nor brings what is lost in another one; that it is not looked at is told.
func TestPreviewInV1LooksTwiceAtTheSame(t *testing.T) {
	for name, at := range map[string]struct{ bad, added string }{
		"falls out": {"zzz", "aaa"},
		"stays":     {"aaa", "zzz"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				bad := object(t, "DestinationRule", "bad", `{"host":"h1.example","exportTo":["."],"trafficPolicy":{"loadBalancer":{"consistentHash":{"useSourceIp":true}}}}`)
				s := follow(t, newObjects(append(inNamespaces(t, 199), inNamespace(t, bad, at.bad))...), discovery.Options{})
				if lost, left, err := s.LostInV1(t.Context()); err != nil || left != 0 || !slices.Equal(blamed(lost), []string{"bad"}) {
					t.Fatalf("lost %q, %d left out, %v", blamed(lost), left, err)
				}
				p, err := s.Preview(t.Context(), discovery.PreviewOptions{Objects: []*schema.Object{inNamespace(t, service(t, "new.example", "10.1.0.9"), at.added)}, InV1: true})
				if err != nil {
					t.Fatal(err)
				}
				if len(p.Problems)+len(p.Solved) > 0 {
					t.Errorf("would bring %v and solve %v", p.Problems, p.Solved)
				}
				if p.NotLookedAtInV1 != 1 {
					t.Errorf("%d views not looked at, want 1", p.NotLookedAtInV1)
				}
			})
		})
	}
}

// TestLostInV1IsBounded: in views, of which the others are counted, those last that
// are only connected, and one at a time.
func TestLostInV1IsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &faults{}
		s := followWith(t, newObjects(inNamespaces(t, 230)...), discovery.Options{}, f)
		polls(t, s, "sidecar~10.9.0.1~far.books~books.svc.cluster.local")
		views := 0
		f.proxy = func(traits mesh.Traits) {
			if traits.Domain == "svc.cluster.local" {
				t.Error("a proxy is looked at that no object is for")
			}
			if views++; views > 1 {
				return
			}
			if _, _, err := s.LostInV1(t.Context()); !errors.Is(err, discovery.ErrBusy) {
				t.Errorf("a second one beside: %v", err)
			}
			if _, err := s.Preview(t.Context(), discovery.PreviewOptions{}); !errors.Is(err, discovery.ErrBusy) {
				t.Errorf("a preview beside: %v", err)
			}
		}
		if _, left, err := s.LostInV1(t.Context()); err != nil || views != 200 || left != 31 {
			t.Errorf("%d views, %d left out, %v", views, left, err)
		}
	})
}
