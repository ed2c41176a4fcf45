package discovery

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/pilot-api/pilot-api/ir"
)

// TestMentions: a name in the words of a refusal is one only as a whole.
func TestMentions(t *testing.T) {
	for _, c := range []struct {
		text, name string
		want       bool
	}{
		{"Error adding/updating cluster(s) out.b.example|http: Invalid path", "out.b.example|http", true},
		{"cluster out.b.example|http.", "out.b.example|http", true},
		{"out.b.example|http|version=a: no", "out.b.example|http", false},
		{"out.b.example|http, out.b.example|https", "out.b.example|https", true},
		{"out.b.example|https", "out.b.example|http", false},
		{"error at 8080", "80", false},
		{"aaa", "aa", false},
		{"", "a", false},
		{"listener 'http_0.0.0.0_80' has", "http_0.0.0.0_80", true},
	} {
		if got := mentions(c.text, c.name); got != c.want {
			t.Errorf("%q in %q: %v", c.name, c.text, got)
		}
	}
}

// TestLately: what a slot's views had is known for a while.
func TestLately(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l lately
		if l.view() != nil {
			t.Fatal("clusters out of nothing")
		}
		names := func() (out []string) {
			if v := l.view(); v != nil {
				for _, c := range v.config.Clusters {
					out = append(out, c.Name)
				}
			}
			return out
		}
		l.note([]*ir.Cluster{{Name: "b"}})
		time.Sleep(PastFor + time.Second)
		l.note([]*ir.Cluster{{Name: "a"}})
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
