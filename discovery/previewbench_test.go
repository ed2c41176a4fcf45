package discovery_test

import (
	"fmt"
	"testing"

	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/schema"
)

// BenchmarkPreview is of one route among 1,000 services, with as many proxies as
// views.
func BenchmarkPreview(b *testing.B) {
	for _, views := range []int{1, 10, meshViews} {
		b.Run(fmt.Sprintf("views=%d", views), func(b *testing.B) {
			l := newLarge(b, meshServices, views, 0, plain)
			l.join(b, views, views)
			for b.Loop() {
				p, err := l.s.Preview(b.Context(), discovery.PreviewOptions{Objects: []*schema.Object{route(b, 1, 9)}})
				if err != nil || len(p.Changes) == 0 || p.Changes[0].Proxies != views {
					b.Fatalf("%+v, %v", p, err)
				}
			}
		})
	}
}

// BenchmarkInspect is of a proxy that is not known, in a namespace that no other
// one is in.
func BenchmarkInspect(b *testing.B) {
	l := newLarge(b, meshServices, 2, 0, plain)
	l.join(b, 1, 1)
	for b.Loop() {
		i, err := l.s.Inspect(discovery.Node{ID: "sidecar~10.99.0.1~p.x~space-1.svc.cluster.local"})
		if err != nil {
			b.Fatal(err)
		}
		if rows := i.Explain().Summary().Routes; len(rows) < meshServices {
			b.Fatalf("%d routes", len(rows))
		}
	}
}

// BenchmarkReferences is of a service, which is named by few of many.
func BenchmarkReferences(b *testing.B) {
	l := newLarge(b, meshServices, 2, 0, plain)
	l.join(b, 1, 1)
	key := route(b, 1, 9).Key()
	for b.Loop() {
		found, _, err := l.s.References(key)
		if err != nil || len(found.RefersTo) == 0 {
			b.Fatalf("%+v, %v", found, err)
		}
	}
}
