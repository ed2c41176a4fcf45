package apply_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/clitest"
	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/schema"
)

// TestTogetherReadsInLists: what an apply in one transaction reads does not take a
// request for each object, and it finds what is stored, whoever's it is. What is there
// beside a few objects is not read for them.
func TestTogetherReadsInLists(t *testing.T) {
	outside.Slow(t)
	owned := []string{"--prune", "--owner", "shop"}
	const fromLists = 10 // objects of a kind, for which the others are read too
	toPrune := len(schema.Kinds())
	for name, c := range map[string]struct {
		stored   int
		by       []string // flags with which that was applied
		objects  int
		flags    []string
		want     string
		requests int // at most, the transaction included
	}{
		"none is there":           {0, nil, 100, []string{"--atomic"}, "100 created", 2},
		"half of them are there":  {50, nil, 100, []string{"--atomic"}, "50 created, 50 unchanged", 2},
		"more is there":           {600, nil, 20, []string{"--atomic"}, "20 unchanged", 3},
		"a few of all":            {600, nil, fromLists - 1, []string{"--atomic"}, "9 unchanged", fromLists},
		"none, to be pruned":      {0, nil, 100, owned, "100 created", toPrune + 2},
		"of the owner":            {50, owned, 100, owned, "50 created, 50 unchanged", toPrune + 2},
		"not of the owner before": {50, nil, 100, owned, "50 created, 50 replaced", toPrune + 2},
	} {
		t.Run(name, func(t *testing.T) {
			server := clitest.Start(t)
			if c.stored > 0 {
				clitest.Apply(t, server.URL(), clitest.ManyRules(c.stored), c.by...)
			}
			url, requests := clitest.Between(t, server, func(int) {})
			out := clitest.Apply(t, url, clitest.ManyRules(c.objects), c.flags...)
			if !strings.HasSuffix(out, "\n"+c.want+"\n") {
				t.Errorf("want %s:\n%s", c.want, out)
			}
			if len(*requests) > c.requests {
				t.Errorf("%d requests for %d objects, want at most %d", len(*requests), c.objects, c.requests)
			}
			lists := slices.ContainsFunc(*requests, func(query string) bool { return strings.Contains(query, "limit=") })
			if few := c.objects < fromLists; few == lists {
				t.Errorf("a list was asked for: %v, want %v: %q", lists, !few, *requests)
			}
		})
	}
}
