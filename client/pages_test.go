package client_test

import (
	"errors"
	"fmt"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/pilot-api/pilot-api/client"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/server"
	"github.com/pilot-api/pilot-api/store"
	"github.com/pilot-api/pilot-api/store/memory"
)

// paged returns a client of a store with five rules and a policy after them.
func paged(t *testing.T) (*client.Client, *memory.Store) {
	mem := memory.New()
	srv := httptest.NewServer(server.New(server.Options{Store: store.Strict(mem), Reads: mem}).Handler())
	t.Cleanup(srv.Close)
	c := connect(t, srv.URL, client.Options{})
	for i := range 5 {
		put(t, c, fmt.Sprintf("r%d", i))
	}
	o, problems := schema.Decode([]byte(`{"apiVersion":"config.istio.io/v1alpha2","kind":"DestinationPolicy","metadata":{"name":"p"},`+
		`"spec":{"destination":{"name":"reviews"},"loadBalancing":{"name":"RANDOM"}}}`), schema.Options{})
	if o == nil {
		t.Fatal(problems.Err())
	}
	if _, err := c.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	return c, mem
}

func put(t *testing.T, c *client.Client, name string) {
	t.Helper()
	meta := reviews("v1").Meta
	meta.Name, meta.Labels = name, map[string]string{"even": fmt.Sprint(name[1]%2 == 0)}
	o, err := reviews("v1").WithMeta(meta)
	if err == nil {
		_, err = c.Create(t.Context(), o)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestPages checks that the pages together are the list at the revision of the first
// page, for any page size and any writes between pages.
func TestPages(t *testing.T) {
	kinds := func(names ...string) (out []*schema.Kind) {
		for _, name := range names {
			kind, ok := schema.KindByName(name)
			if !ok {
				t.Fatal(name)
			}
			out = append(out, kind)
		}
		return out
	}
	all := []string{"p", "r0", "r1", "r2", "r3", "r4"}
	for name, c := range map[string]struct {
		what client.Selection
		want []string
	}{
		"all":           {client.Selection{}, all},
		"some kinds":    {client.Selection{Kinds: kinds("DestinationPolicy", "RouteRule")}, all},
		"in that order": {client.Selection{Kinds: kinds("RouteRule", "DestinationPolicy")}, []string{"r0", "r1", "r2", "r3", "r4", "p"}},
		"a kind twice":  {client.Selection{Kinds: kinds("RouteRule", "DestinationPolicy", "RouteRule")}, []string{"r0", "r1", "r2", "r3", "r4", "p"}},
		"a namespace":   {client.Selection{Namespace: "books"}, nil},
		"labels":        {client.Selection{Labels: "even=true"}, []string{"r0", "r2", "r4"}},
		"fields":        {client.Selection{Fields: "metadata.name!=r1"}, []string{"p", "r0", "r2", "r3", "r4"}},
		"a scope":       {client.InScope(store.Scope{Kind: kinds("RouteRule")[0], Namespace: "default", Name: "r3"}), []string{"r3"}},
	} {
		for size := range 8 {
			t.Run(fmt.Sprint(name, " by ", size), func(t *testing.T) {
				api, _ := paged(t)
				var got []string
				pages := 0
				for page, err := range api.Pages(t.Context(), c.what, store.ListOptions{Limit: size}) {
					if err != nil {
						t.Fatal(err)
					}
					if size > 0 && len(page.Items) > size {
						t.Errorf("a page of %d", len(page.Items))
					}
					for _, o := range page.Items {
						got = append(got, o.Meta.Name)
					}
					if len(got) > len(all) {
						t.Fatalf("there is no end: %q", got)
					}
					pages++
					put(t, api, fmt.Sprintf("s%d", pages))
				}
				if !slices.Equal(got, c.want) {
					t.Errorf("%q, want %q", got, c.want)
				}
			})
		}
	}
}

// TestPagesExpire checks that the pages end with an error if their state is dropped,
// and that no page is of another state.
func TestPagesExpire(t *testing.T) {
	c, mem := paged(t)
	pages := 0
	var last error
	for page, err := range c.Pages(t.Context(), client.Selection{}, store.ListOptions{Limit: 2}) {
		if last = err; err != nil {
			continue
		}
		pages++
		put(t, c, "s1")
		mem.Compact(page.Revision + 1)
	}
	if pages != 1 || !errors.Is(last, store.ErrExpired) {
		t.Errorf("%d pages, then %v", pages, last)
	}
}
