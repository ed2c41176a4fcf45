package get_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/cli"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/clitest"
)

// TestGetInPages: pages are one table, of one revision.
func TestGetInPages(t *testing.T) {
	server := clitest.Start(t)
	clitest.Apply(t, server.URL(), clitest.ManyRules(7)+"---\n"+clitest.Rule("a-name-that-is-longer-than-all-others", "v1"))
	want, _, _ := clitest.Run(t, server.URL(), "", "get", "rr", "--chunk-size", "0", "-o", "custom-columns=NAME:.metadata.name")
	url, requests := clitest.Between(t, server, func(page int) { clitest.Apply(t, server.URL(), clitest.Rule(fmt.Sprintf("z%d", page), "v1")) })
	got, errs, code := clitest.Run(t, url, "", "get", "rr", "--chunk-size", "3", "-o", "custom-columns=NAME:.metadata.name")
	if code != cli.ExitDone || got != want {
		t.Errorf("exit %d: %s\n%s\nwant\n%s", code, errs, got, want)
	}
	if len(*requests) != 3 {
		t.Errorf("requests: %q", *requests)
	}
	table, _, _ := clitest.Run(t, url, "", "get", "rr", "--chunk-size", "3")
	lines := strings.Split(strings.TrimSpace(table), "\n")
	at := strings.Index(lines[0], "DESTINATION")
	for _, line := range lines[1:] {
		if strings.Index(line, "reviews") != at {
			t.Errorf("a row of another width:\n%s\n%s", lines[0], line)
		}
	}
}

// TestGetIsOneStateOfAllKinds: a kind that is asked for later is as it was when the
// first was.
func TestGetIsOneStateOfAllKinds(t *testing.T) {
	server := clitest.Start(t)
	clitest.Apply(t, server.URL(), clitest.ManyRules(3)+"---\n"+policy("p"))
	url, _ := clitest.Between(t, server, func(int) { clitest.Apply(t, server.URL(), policy("q")) })
	got, errs, code := clitest.Run(t, url, "", "get", "rr,dp", "--chunk-size", "2", "-o", "name")
	if code != cli.ExitDone || !strings.Contains(got, "/p\n") || strings.Contains(got, "/q\n") {
		t.Errorf("exit %d: %s%s", code, errs, got)
	}
}

func policy(name string) string {
	return "apiVersion: config.istio.io/v1alpha2\nkind: DestinationPolicy\nmetadata: {name: " + name + "}\n" +
		"spec: {destination: {name: reviews}, loadBalancing: {name: RANDOM}}\n"
}

// TestListBeginsAnew: a server that forgets the revision of the first page is asked
// again, and if it does so time and again, for all at once. No object is there twice.
func TestListBeginsAnew(t *testing.T) {
	const beginnings = 5 // in pages
	for name, c := range map[string]struct{ forgets, lists int }{
		"once":        {1, 2},
		"always":      {1000, beginnings + 1},
		"never":       {0, 1},
		"second page": {2, 3},
	} {
		t.Run(name, func(t *testing.T) {
			server := clitest.Start(t)
			clitest.Apply(t, server.URL(), clitest.ManyRules(5))
			url, requests := clitest.Between(t, server, func(page int) {
				if page <= c.forgets {
					clitest.Apply(t, server.URL(), clitest.Rule(fmt.Sprintf("z%d", page), "v1"))
					server.Compact()
				}
			})
			got, errs, code := clitest.Run(t, url, "", "get", "rr", "--chunk-size", "2", "-o", "name")
			want := 5 + min(c.forgets, beginnings)
			if n := strings.Count(got, "\n"); code != cli.ExitDone || n != want {
				t.Errorf("exit %d, %d objects, want %d: %s%s", code, n, want, errs, got)
			}
			lists := 0
			for _, query := range *requests {
				if !strings.Contains(query, "continue") {
					lists++
				}
			}
			if lists != c.lists {
				t.Errorf("%d lists were begun, want %d: %q", lists, c.lists, *requests)
			}
		})
	}
}

// TestSelectedByTheServer: what is not meant is not sent.
func TestSelectedByTheServer(t *testing.T) {
	server := clitest.Start(t)
	clitest.Apply(t, server.URL(), clitest.ManyRules(2))
	for _, args := range [][]string{
		{"get", "rr", "-l", "team=x", "--field-selector", "metadata.name!=a"},
		{"delete", "rr", "-l", "team=x", "--field-selector", "metadata.name!=a"},
	} {
		url, requests := clitest.Between(t, server, func(int) {})
		clitest.Run(t, url, "", args...)
		const want = "fieldSelector=metadata.name%21%3Da&labelSelector=team%3Dx&limit=500"
		if len(*requests) != 1 || (*requests)[0] != want {
			t.Errorf("%q: %q, want %s", args, *requests, want)
		}
	}
}
