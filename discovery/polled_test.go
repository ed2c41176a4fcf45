package discovery

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pilot-api/pilot-api/mesh"
)

// TestHealedAtOnce: a proxy that ends several refusals at once is none that refuses.
func TestHealedAtOnce(t *testing.T) {
	f := newFleet(Options{Settings: mesh.DefaultSettings()}, func() time.Duration { return 0 })
	c := &client{}
	for range 2000 {
		for _, does := range []bool{true, false} {
			var all sync.WaitGroup
			for _, flag := range []*atomic.Bool{&c.polls, &c.denied} {
				all.Go(func() {
					flag.Store(does)
					f.noteRefusing(c)
				})
			}
			all.Wait()
			if refusing := f.refusing.count() == 1; refusing != does {
				t.Fatalf("it counts as refusing: %v, but that is %v", refusing, does)
			}
		}
	}
}

// TestRefusalWithoutWords: one that has healed between two looks is not told to refuse.
func TestRefusalWithoutWords(t *testing.T) {
	s := New(Options{})
	c := &client{node: Node{ID: "healed"}}
	s.fleet.refusing.note(c, func() bool { return true })
	if told := s.refusals(); len(told) > 0 {
		t.Errorf("told: %v", told)
	}
}
