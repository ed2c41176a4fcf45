package pastviews

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/pilot-api/pilot-api/ir"
)

// TestRecentClusters: what the views of a key had is known for a while.
func TestRecentClusters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l RecentClusters
		if l.View() != nil {
			t.Fatal("clusters out of nothing")
		}
		names := func() (out []string) {
			if v := l.View(); v != nil {
				for _, c := range v.Config.Clusters {
					out = append(out, c.Name)
				}
			}
			return out
		}
		l.Note([]*ir.Cluster{{Name: "b"}})
		time.Sleep(PastFor + time.Second)
		l.Note([]*ir.Cluster{{Name: "a"}})
		if got := names(); len(got) != 2 || got[0] != "a" {
			t.Fatalf("%v", got)
		}
		time.Sleep(PastFor + time.Second)
		if got := names(); len(got) != 1 || got[0] != "a" {
			t.Fatalf("%v: what went long ago is there", got)
		}
		time.Sleep(3 * PastFor)
		if got := names(); got != nil {
			t.Fatalf("%v", got)
		}
	})
}
