package discovery_test

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/mesh"
)

// issuers is a discovery.Keys that a test changes.
type issuers struct {
	mu      sync.Mutex
	wanted  map[mesh.KeySource]time.Duration
	holds   map[mesh.KeySource]mesh.KeySet
	changed chan struct{}
}

func (i *issuers) Want(sources map[mesh.KeySource]time.Duration) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.wanted = sources
}

func (i *issuers) Keys() *mesh.KeySets {
	i.mu.Lock()
	defer i.mu.Unlock()
	return mesh.NewKeySets(i.holds)
}

func (i *issuers) Changed() <-chan struct{} {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.changed
}

// Tried waits for the first keys.
func (i *issuers) Tried(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-i.Changed():
	}
}

func (i *issuers) set(source mesh.KeySource, set mesh.KeySet) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.holds = map[mesh.KeySource]mesh.KeySet{source: set}
	close(i.changed)
	i.changed = make(chan struct{})
}

// TestKeysArePublished: the keys that objects need are wanted, the first publication waits for
// them, but not for ever, and new keys and problems are published at the revision that there is.
func TestKeysArePublished(t *testing.T) {
	const uri = "https://issuer.example/keys"
	source := mesh.KeySource{URI: uri}
	for name, late := range map[string]bool{"in time": false, "late": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				from := &issuers{changed: make(chan struct{})}
				if !late {
					time.AfterFunc(3*time.Second, func() { from.set(source, mesh.KeySet{Keys: "first keys"}) })
				}
				s := follow(t, newObjects(
					object(t, "Gateway", "edge", `{"servers":[{"port":{"number":80,"name":"http","protocol":"HTTP"},"hosts":["*"]}]}`),
					object(t, "RequestAuthentication", "edge", `{"jwtRules":[{"issuer":"https://issuer.example","jwksUri":"`+uri+`","timeout":"7s"}]}`),
				), discovery.Options{Keys: from})
				for _, ready := range []bool{false, !late, true} {
					time.Sleep(2 * time.Second)
					if s.Ready() != ready {
						t.Errorf("it is published: %v, want %v", !ready, ready)
					}
				}
				if want := map[mesh.KeySource]time.Duration{source: 7 * time.Second}; !maps.Equal(from.wanted, want) {
					t.Errorf("wanted are %v, want %v", from.wanted, want)
				}
				const router = "router~10.9.0.7~edge.default~default.svc.cluster.local"
				told := func() string {
					a, err := s.V3(discovery.ListenerType, discovery.Node{ID: router}, "", nil)
					if err != nil {
						t.Fatal(err)
					}
					return string(a.Body)
				}
				if text := told(); strings.Contains(text, "first keys") == late || !strings.Contains(text, "https://issuer.example") {
					t.Errorf("at first: %s", text)
				}
				from.set(source, mesh.KeySet{Keys: "second keys"})
				time.Sleep(pause)
				if text := told(); !strings.Contains(text, "second keys") || s.Revision() != 1 {
					t.Errorf("at revision %d: %s", s.Revision(), text)
				}
				from.set(source, mesh.KeySet{Problem: "it answers 500"})
				time.Sleep(pause)
				if text := told(); strings.Contains(text, "second keys") {
					t.Errorf("keys that were dropped are there: %s", text)
				}
				if problems := s.Report().Problems; len(problems) != 1 || !strings.Contains(problems.Error(), "spec.jwtRules[0].jwksUri: all tokens of the issuer are refused: it answers 500") {
					t.Errorf("problems: %v", problems)
				}
			})
		})
	}
}

// TestKeysBeyondTheMost: an object whose keys are not fetched, because others need as many key
// sets as the server fetches, has a problem until there is room.
func TestKeysBeyondTheMost(t *testing.T) {
	const uri = "https://issuer.example/keys"
	synctest.Test(t, func(t *testing.T) {
		others := map[mesh.KeySource]mesh.KeySet{}
		for i := range mesh.MostKeySources {
			others[mesh.KeySource{URI: fmt.Sprintf("https://issuer.example/%d", i)}] = mesh.KeySet{Keys: "keys"}
		}
		from := &issuers{holds: others, changed: make(chan struct{})}
		s := follow(t, newObjects(object(t, "RequestAuthentication", "late", `{"jwtRules":[{"issuer":"https://issuer.example","jwksUri":"`+uri+`"}]}`)), discovery.Options{Keys: from})
		time.Sleep(10 * time.Second) // The first publication waits for keys.
		if problems := s.Report().Problems; len(problems) != 1 || !strings.Contains(problems.Error(), "all tokens of the issuer are refused: its keys have not been fetched, and the server fetches at most 256 key sets") {
			t.Errorf("problems: %v", problems)
		}
		from.set(mesh.KeySource{URI: uri}, mesh.KeySet{Keys: "keys"})
		time.Sleep(pause)
		if problems := s.Report().Problems; len(problems) > 0 {
			t.Errorf("problems of an object that has its keys: %v", problems)
		}
	})
}
