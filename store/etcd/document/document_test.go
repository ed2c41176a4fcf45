package document_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"

	"github.com/pilot-api/pilot-api/store/etcd/document"
	"github.com/pilot-api/pilot-api/store/etcd/etcdtest"
)

// TestUpdatesOfSeveralServers: of changes at the same time none is lost, and followers see
// the last text.
func TestUpdatesOfSeveralServers(t *testing.T) {
	client := etcdtest.Start(t).Client()
	log := slog.New(slog.DiscardHandler)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	texts := make(chan string, 1000)
	var following sync.WaitGroup
	following.Go(func() {
		_ = document.New(client, "/test", "text", log).Follow(ctx, func(text string) { texts <- text })
	})
	if first := <-texts; first != "" {
		t.Fatalf("first text %q, want none", first)
	}
	const servers, each = 4, 25
	var writing sync.WaitGroup
	for range servers {
		d := document.New(client, "/test/", "text", log)
		writing.Go(func() {
			for range each {
				_, err := d.Update(t.Context(), func(text string) (string, error) { return text + ".", nil })
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	writing.Wait()
	for last := ""; len(last) < servers*each; last = <-texts {
		if len(last) > servers*each {
			t.Fatalf("%d changes, want %d", len(last), servers*each)
		}
	}
	stop()
	following.Wait()
}

// TestUpdateThatFails: an error of a change writes nothing.
func TestUpdateThatFails(t *testing.T) {
	client := etcdtest.Start(t).Client()
	d := document.New(client, "/test", "text", slog.New(slog.DiscardHandler))
	for _, text := range []string{"one", "one"} {
		if got, err := d.Update(t.Context(), func(string) (string, error) { return text, nil }); got != text || err != nil {
			t.Fatal(got, err)
		}
	}
	broken := errors.New("broken")
	got, err := d.Update(t.Context(), func(string) (string, error) { return "two", broken })
	if !errors.Is(err, broken) || got != "one" {
		t.Fatal(got, err)
	}
	resp, err := client.Get(t.Context(), "/test/text")
	if err != nil || len(resp.Kvs) != 1 || resp.Kvs[0].Version != 1 {
		t.Fatal(fmt.Sprint(resp), err)
	}
}
