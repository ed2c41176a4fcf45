package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net/http/httptest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/client"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/server"
	"github.com/pilot-api/pilot-api/store"
	"github.com/pilot-api/pilot-api/store/cache"
	"github.com/pilot-api/pilot-api/store/memory"
)

// serve starts a server for an example, in this process.
func serve() (url string, stop func()) {
	mem := memory.New()
	srv := httptest.NewServer(server.New(server.Options{Store: store.Strict(mem), Reads: mem}).Handler())
	return srv.URL, srv.Close
}

// reviews returns a rule that sends all requests to one version.
func reviews(version string) *schema.Object {
	kind, _ := schema.KindByName("RouteRule")
	spec := fmt.Sprintf(`{"destination":{"name":"reviews"},"route":[{"labels":{"version":%q}}]}`, version)
	o, err := schema.New(kind, metav1.ObjectMeta{Namespace: "default", Name: "reviews"}, json.RawMessage(spec))
	if err != nil {
		log.Fatal(err)
	}
	return o
}

// Objects have a typed spec; errors are those of package store.
func Example() {
	url, stop := serve()
	defer stop()
	ctx := context.Background()

	c, err := client.New(url, client.Options{UserAgent: "example", Retries: 5})
	if err != nil {
		log.Fatal(err)
	}
	made, err := c.Create(ctx, reviews("v1"))
	if err != nil {
		log.Fatal(err)
	}
	spec, err := made.Spec()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(made.Key(), "goes to", spec.(*schema.RouteRule).Route[0].Labels["version"])

	_, err = c.Create(ctx, reviews("v2"))
	fmt.Println("again:", errors.Is(err, store.ErrExists))

	list, err := c.List(ctx, store.Scope{Kind: made.Kind, Namespace: "default"}, store.ListOptions{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(list.Items), "in the list")
	// Output:
	// RouteRule default/reviews goes to v1
	// again: true
	// 1 in the list
}

// UpdateFunc writes the result of a function on the newest state, so it overwrites no
// concurrent write.
func ExampleClient_UpdateFunc() {
	url, stop := serve()
	defer stop()
	ctx := context.Background()
	c, err := client.New(url, client.Options{})
	if err != nil {
		log.Fatal(err)
	}
	made, err := c.Create(ctx, reviews("v1"))
	if err != nil {
		log.Fatal(err)
	}

	labelled, err := c.UpdateFunc(ctx, made.Key(), func(o *schema.Object) (*schema.Object, error) {
		meta := *o.Meta.DeepCopy()
		meta.Labels = map[string]string{"team": "books"}
		return o.WithMeta(meta)
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(labelled.Meta.Labels)
	// Output: map[team:books]
}

// A watch delivers whole revisions: the changes of one transaction arrive together.
func ExampleClient_Watch() {
	url, stop := serve()
	defer stop()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	c, err := client.New(url, client.Options{})
	if err != nil {
		log.Fatal(err)
	}
	made, err := c.Create(ctx, reviews("v1"))
	if err != nil {
		log.Fatal(err)
	}

	w, err := c.Watch(ctx, store.Scope{Kind: made.Kind}, made.Revision())
	if err != nil {
		log.Fatal(err)
	}
	if _, err := c.Update(ctx, reviews("v2")); err != nil {
		log.Fatal(err)
	}
	if _, err := c.Delete(ctx, made.Key(), store.Preconditions{}); err != nil {
		log.Fatal(err)
	}
	for batch := range w.Batches() {
		for _, event := range batch.Events {
			fmt.Println(event.Type, event.Object.Key())
			if event.Type == store.Deleted {
				cancel()
			}
		}
	}
	// Output:
	// MODIFIED RouteRule default/reviews
	// DELETED RouteRule default/reviews
}

// Pages reads a long list in parts, all at one revision. If the server drops that
// revision meanwhile, start a new list.
func ExampleClient_Pages() {
	url, stop := serve()
	defer stop()
	ctx := context.Background()
	c, err := client.New(url, client.Options{})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := c.Create(ctx, reviews("v1")); err != nil {
		log.Fatal(err)
	}

	names := func() (names []string, err error) {
		for page, err := range c.Pages(ctx, client.Selection{Fields: "metadata.name!=ratings"}, store.ListOptions{Limit: 500}) {
			if err != nil {
				return nil, err
			}
			for _, o := range page.Items {
				names = append(names, o.Key().String())
			}
		}
		return names, nil
	}
	for {
		all, err := names()
		if errors.Is(err, store.ErrExpired) {
			continue
		}
		fmt.Println(all, err)
		break
	}
	// Output: [RouteRule default/reviews] <nil>
}

// A cache over a client keeps a copy that follows the server through broken connections
// and restarts. It calls handlers with the changes.
func Example_cache() {
	url, stop := serve()
	defer stop()
	ctx, cancel := context.WithCancel(context.Background())
	c, err := client.New(url, client.Options{})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := c.Create(ctx, reviews("v1")); err != nil {
		log.Fatal(err)
	}

	known := cache.New(c, cache.Options{})
	told := make(chan string)
	version := func(o *schema.Object) string {
		spec, err := o.Spec()
		if err != nil {
			return err.Error()
		}
		return spec.(*schema.RouteRule).Route[0].Labels["version"]
	}
	kind, _ := schema.KindByName("RouteRule")
	known.Handle(kind, cache.Handler{
		Add:    func(o *schema.Object) { told <- "added " + version(o) },
		Update: func(before, after *schema.Object) { told <- version(before) + " became " + version(after) },
	})
	ended := make(chan error)
	go func() { ended <- known.Run(ctx) }()

	fmt.Println(<-told)
	if _, err := c.Update(ctx, reviews("v2")); err != nil {
		log.Fatal(err)
	}
	fmt.Println(<-told)
	cancel()
	fmt.Println(<-ended)
	// Output:
	// added v1
	// v1 became v2
	// context canceled
}
