package apply_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/cli"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/clitest"
	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/server"
	"github.com/pilot-api/pilot-api/store"
	"github.com/pilot-api/pilot-api/store/etcd"
	"github.com/pilot-api/pilot-api/store/etcd/etcdtest"
)

// onCluster starts a server over an external etcd with etcd's own limits. Before each
// transaction it calls before with its number, from 1 on.
func onCluster(t *testing.T, before func(int)) (url string, objects *etcd.Store) {
	t.Helper()
	objects = etcd.New(etcdtest.Start(t).Client(), "/pilot", slog.New(slog.DiscardHandler))
	handler := server.New(server.Options{
		Store: store.Strict(objects), Reads: objects, MaxTransaction: etcd.DefaultLimits.Ops,
	}).Handler()
	transactions := 0
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/transactions") {
			transactions++
			before(transactions)
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(api.Close)
	return api.URL, objects
}

// shop returns a service, so many rules, and a rule that refers to the service.
func shop(rules int) string {
	return `apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: shop}
spec: {hosts: [shop.example], resolution: STATIC, ports: [{number: 80, name: http, protocol: HTTP}], endpoints: [{address: 10.1.0.1}]}
` + clitest.ManyRules(rules) + `---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: shop}
spec: {hosts: [shop.example], http: [{route: [{destination: {host: shop.example}}]}]}
`
}

func count(t *testing.T, objects store.Reader) int {
	t.Helper()
	list, err := objects.List(t.Context(), store.Scope{}, store.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return len(list.Items)
}

func revisionOf(t *testing.T, objects store.Reader, kind string) int64 {
	t.Helper()
	o, err := objects.Get(t.Context(), schema.Key{Kind: kind, Namespace: "default", Name: "shop"}, store.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return o.Revision()
}

// TestOwnersHaveAnyNumberOfObjects: an owner's objects are applied and pruned on an
// external etcd, however many they are. Only changes count, and nothing is written by an
// apply that must be atomic and cannot be.
func TestOwnersHaveAnyNumberOfObjects(t *testing.T) {
	outside.Slow(t)
	url, objects := onCluster(t, func(int) {})
	owned := []string{"apply", "-f", "-", "--prune", "--owner", "shop"}
	for _, c := range []struct {
		name   string
		text   string
		flags  []string
		code   int
		stdout string // its end
		stderr string
		stored int
	}{
		{"atomic", shop(200), []string{"--atomic"}, cli.ExitFailed, "",
			"error: a transaction of 202 operations, this server takes 63 (--max-transaction); nothing was done: without --atomic, 202 changes are made in several transactions\n", 0},
		{"dry run", shop(200), []string{"--dry-run=server"}, cli.ExitDone, "202 created (server dry run)\n",
			"202 changes were made in 4 transactions, because the server does not take them in one.\n", 0},
		{"new", shop(200), nil, cli.ExitDone, "202 created\n",
			"202 changes were made in 4 transactions, because the server does not take them in one.\n", 202},
		{"the same", shop(200), []string{"--atomic"}, cli.ExitDone, "202 unchanged\n", "", 202},
		{"a few changes", strings.ReplaceAll(shop(200), "10.1.0.1", "10.1.0.2"), []string{"--atomic"}, cli.ExitDone, "1 replaced, 201 unchanged\n", "", 202},
		{"a few deletes", strings.ReplaceAll(shop(198), "10.1.0.1", "10.1.0.2"), []string{"--atomic"}, cli.ExitDone, "200 unchanged, 2 deleted\n", "", 200},
		{"many deletes", clitest.ManyRules(1), nil, cli.ExitDone, "serviceentry/shop deleted\n1 unchanged, 199 deleted\n",
			"199 changes were made in 4 transactions, because the server does not take them in one.\n", 1},
	} {
		stdout, stderr, code := clitest.Run(t, url, c.text, append(owned, c.flags...)...)
		if code != c.code || !strings.HasSuffix(stdout, c.stdout) || stderr != c.stderr {
			t.Fatalf("%s: exit %d, stderr %q, stdout\n%s", c.name, code, stderr, stdout)
		}
		if n := count(t, objects); n != c.stored {
			t.Fatalf("%s: %d objects are stored, want %d", c.name, n, c.stored)
		}
		if c.name == "new" && revisionOf(t, objects, "ServiceEntry") >= revisionOf(t, objects, "VirtualService") {
			t.Error("a rule was written before the service that it refers to")
		}
	}
}

// TestInterruptedApplyGoesOn: an apply in several transactions that fails says what was
// written, and the same command does the rest.
func TestInterruptedApplyGoesOn(t *testing.T) {
	outside.Slow(t)
	// The first two are too large, the fourth does not arrive.
	url, objects := onCluster(t, func(transaction int) {
		if transaction == 5 {
			panic(http.ErrAbortHandler)
		}
	})
	owned := []string{"apply", "-f", "-", "--prune", "--owner", "shop"}
	stdout, stderr, code := clitest.Run(t, url, shop(200), owned...)
	if want := "; 102 changes before it were made, and the next 51 were made together or not at all: run the same command again for the rest\n"; code != cli.ExitFailed || !strings.HasSuffix(stderr, want) {
		t.Errorf("exit %d, want %q at the end of %q", code, want, stderr)
	}
	if said := strings.Count(stdout, " created\n"); said != 102 || count(t, objects) != 102 {
		t.Errorf("%d objects were stored, said %d", count(t, objects), said)
	}
	stdout, stderr, code = clitest.Run(t, url, shop(200), owned...)
	if code != cli.ExitDone || !strings.HasSuffix(stdout, "100 created, 102 unchanged\n") {
		t.Errorf("again: exit %d, %s, %s", code, stderr, stdout)
	}
}

// TestSplitApplyMeetsOtherWriters: what others change between two transactions is looked
// at again, and no object is told twice.
func TestSplitApplyMeetsOtherWriters(t *testing.T) {
	outside.Slow(t)
	var url string
	url, objects := onCluster(t, func(transaction int) {
		if transaction == 4 {
			clitest.Apply(t, url, clitest.Rule("r199", "v2"))
		}
	})
	stdout, stderr, code := clitest.Run(t, url, shop(200), "apply", "-f", "-", "--owner", "shop")
	if code != cli.ExitDone || !strings.HasSuffix(stdout, "201 created, 1 replaced\n") {
		t.Errorf("exit %d, %s, %s", code, stderr, stdout)
	}
	for i := range 200 {
		if n := strings.Count(stdout, fmt.Sprintf("routerule/r%d ", i)); n != 1 {
			t.Errorf("r%d is told %d times", i, n)
		}
	}
	if n := count(t, objects); n != 202 {
		t.Errorf("%d objects are stored", n)
	}
}
