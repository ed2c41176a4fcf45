package discovery_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// changesOf are the changes of a preview in short.
func changesOf(t *testing.T, s *discovery.Publisher, objects ...*schema.Object) []string {
	t.Helper()
	p, err := s.Preview(t.Context(), discovery.PreviewOptions{Objects: objects})
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, c := range p.Changes {
		what := "changed"
		switch {
		case c.Before == nil:
			what = "added"
		case c.After == nil:
			what = "removed"
		}
		out = append(out, fmt.Sprintf("%s %s %s for %d", c.Type, c.Name, what, c.Proxies))
	}
	return out
}

// TestPreview: what would change is what changes, and looking changes nothing.
func TestPreview(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := service(t, "a.default.svc.cluster.local", "10.1.0.1"), service(t, "b.default.svc.cluster.local", "10.1.0.2")
		src := newObjects(a, b)
		s := follow(t, src, discovery.Options{})
		polls(t, s, "sidecar~10.1.0.1~a-1.default~default.svc.cluster.local")
		polls(t, s, "sidecar~10.1.0.8~x-1.default~default.svc.cluster.local")
		polls(t, s, "sidecar~10.1.0.9~x-2.default~default.svc.cluster.local")
		everything := func() []string {
			var all []string
			for _, p := range s.Proxies() {
				all = append(all, texts(t, inspect(t, s, p.Node)))
			}
			return all
		}
		before := everything()

		rule := timeout(t, "a.default.svc.cluster.local", 3)
		want := []string{"listeners http_10.1.0.1_8080 changed for 1", "routes 80 changed for 3", "routes http_proxy changed for 3"}
		if got := changesOf(t, s, rule); !slices.Equal(got, want) {
			t.Errorf("a rule: got %q, want %q", got, want)
		}
		if got := changesOf(t, s, a, b); len(got) > 0 {
			t.Errorf("what is stored already: got %q", got)
		}
		moved := service(t, "b.default.svc.cluster.local", "10.1.0.3")
		if got, want := changesOf(t, s, moved), []string{"endpoints b.default.svc.cluster.local|http changed for 3"}; !slices.Equal(got, want) {
			t.Errorf("an endpoint: got %q, want %q", got, want)
		}
		added := changesOf(t, s, service(t, "c.default.svc.cluster.local", "10.1.0.8"))
		for _, want := range []string{
			"clusters out.c.default.svc.cluster.local|http added for 3", "clusters in.8080 added for 1",
			"endpoints c.default.svc.cluster.local|http added for 3", "listeners http_10.1.0.8_8080 added for 1",
		} {
			if !slices.Contains(added, want) {
				t.Errorf("a service: %q is not among %q", want, added)
			}
		}
		if !slices.Equal(everything(), before) || s.Revision() != 1 {
			t.Error("a preview changed what proxies are told")
		}
		src.set(a, b, rule)
		time.Sleep(pause)
		if got := changesOf(t, s, rule); len(got) > 0 {
			t.Errorf("what was stored since: got %q", got)
		}
	})
}

func TestProblemsOfAPreview(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := follow(t, newObjects(service(t, "a.default.svc.cluster.local", "10.1.0.1"), timeout(t, "old.example", 1)), discovery.Options{})
		p, err := s.Preview(t.Context(), discovery.PreviewOptions{Objects: []*schema.Object{object(t, "RouteRule", "lost", `{"destination":{"service":"nowhere.example"}}`)}})
		if err != nil {
			t.Fatal(err)
		}
		if len(p.Problems) != 1 || p.Problems[0].Object.Name != "lost" || !strings.Contains(p.Problems[0].Value, "nowhere.example") {
			t.Errorf("got %v", p.Problems)
		}
	})
}

func TestOnePreviewAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		block, blocked := make(chan struct{}), make(chan struct{})
		f := &faults{}
		s := followWith(t, newObjects(service(t, "a.default.svc.cluster.local", "10.1.0.1")), discovery.Options{}, f)
		polls(t, s, looked)
		var once bool
		f.proxy = func(mesh.Traits) {
			if !once {
				once = true
				close(blocked)
				<-block
			}
		}
		first := make(chan error)
		go func() {
			_, err := s.Preview(t.Context(), discovery.PreviewOptions{})
			first <- err
		}()
		<-blocked
		if _, err := s.Preview(t.Context(), discovery.PreviewOptions{}); !errors.Is(err, discovery.ErrBusy) {
			t.Errorf("a second one beside: %v", err)
		}
		close(block)
		if err := <-first; err != nil {
			t.Error(err)
		}
	})
}
