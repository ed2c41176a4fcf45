package fleet

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pilot-api/pilot-api/mesh"
)

// TestHealedAtOnce: a proxy that ends several refusals at once is none that refuses.
func TestHealedAtOnce(t *testing.T) {
	f := New(Options{}, func() time.Duration { return 0 })
	c := &Client{}
	for range 2000 {
		for _, does := range []bool{true, false} {
			var all sync.WaitGroup
			for _, flag := range []*atomic.Bool{&c.polls, &c.denied} {
				all.Go(func() {
					flag.Store(does)
					f.NoteRefusing(c)
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
	f := New(Options{}, func() time.Duration { return 0 })
	c := &Client{Node: mesh.Node{ID: "healed"}}
	f.refusing.note(c, func() bool { return true })
	if told := f.Refusals(); len(told) > 0 {
		t.Errorf("told: %v", told)
	}
}
