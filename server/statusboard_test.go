package server

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/schema"
)

// TestBoardLooksSeldom: however often it is asked, and this replica by others, one
// look is taken once in a while, and while somebody watches no more often; when nobody
// does any more it ends.
func TestBoardLooksSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		looks := 0
		log := slog.New(slog.DiscardHandler)
		standings := newStandings(func(*discovery.Standings) *discovery.Standings { looks++; return &discovery.Standings{} }, log)
		b := newStatusBoard(standings, proxyReturn{}, nil, log)
		own := &ownStandings{lookout: standings}
		kind, _ := schema.KindByName("RouteRule")
		o, err := schema.New(kind, metav1.ObjectMeta{Name: "a", Namespace: "default"}, []byte("{}"))
		if err != nil {
			t.Fatal(err)
		}
		for range 1000 {
			b.of(o)
			if _, _, err := own.told(t.Context(), statusAge); err != nil {
				t.Fatal(err)
			}
		}
		if looks != 1 {
			t.Errorf("asked often it looked %d times, want once", looks)
		}
		first, second := b.watch(), b.watch()
		for range 100 {
			time.Sleep(statusAge / 10)
			b.of(o)
			if _, _, err := own.told(t.Context(), statusAge); err != nil {
				t.Fatal(err)
			}
		}
		if looks > 11 {
			t.Errorf("it looked %d times in the time of 10 looks", looks)
		}
		first()
		second()
		before := looks
		time.Sleep(10 * statusAge)
		if looks != before {
			t.Errorf("it looked %d times for nobody", looks-before)
		}
		again := b.watch()
		time.Sleep(3 * statusAge)
		if looks == before {
			t.Error("it does not look for a new watcher")
		}
		again()
		synctest.Wait() // And the bubble ends only if its goroutines have.
	})
}
