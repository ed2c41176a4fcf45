package history_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/cli"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/clitest"
	"github.com/pilot-api/pilot-api/server"
	"github.com/pilot-api/pilot-api/store"
)

// stepwise is a server that takes 50 operations in one transaction, and does
// something before each request for a rollback; it answers 503 if that is false.
func stepwise(t *testing.T, l *clitest.Server, do func(n int) bool) (url string) {
	handler := server.New(server.Options{Store: store.Strict(l.Store), Reads: l.Store, MaxTransaction: 50}).Handler()
	asked := 0
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			if asked++; !do(asked) {
				http.Error(w, "it restarts", http.StatusServiceUnavailable)
				return
			}
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	return front.URL
}

// changedRules are 120 rules that have changed since a revision.
func changedRules(t *testing.T) (l *clitest.Server, then string) {
	l = clitest.Start(t)
	clitest.Apply(t, l.URL(), clitest.ManyRules(120))
	revision, err := l.Store.Revision(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	clitest.Apply(t, l.URL(), strings.ReplaceAll(clitest.ManyRules(120), "version: v1}", "version: v2}"))
	return l, fmt.Sprint(revision)
}

func always(int) bool { return true }

func TestRollbackInSteps(t *testing.T) {
	l, then := changedRules(t)
	url := stepwise(t, l, always)
	out, errs, code := clitest.Run(t, url, "", "rollback", "-n", "default", "--to", then, "--atomic")
	if code != cli.ExitFailed || out != "" || !strings.Contains(errs, "changes 120 objects") || !strings.Contains(errs, "may change 50 objects") {
		t.Errorf("atomic: exit %d: %s%s", code, out, errs)
	}
	out, errs, code = clitest.Run(t, url, "", "rollback", "-n", "default", "--to", then, "--dry-run")
	if code != cli.ExitDone || strings.Count(out, " replaced (server dry run)\n") != 121 || !strings.Contains(out, "\n120 replaced (server dry run)\n") {
		t.Errorf("dry run: exit %d: %s%s", code, out, errs)
	}
	out, errs, code = clitest.Run(t, url, "", "rollback", "-n", "default", "--to", then)
	if code != cli.ExitDone || errs != "" || strings.Count(out, " replaced\n") != 121 || !strings.HasSuffix(out, "\n120 replaced\n") {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
	if _, errs, code = clitest.Run(t, url, "", "rollback", "-n", "default", "--to", then); code != cli.ExitDone || !strings.Contains(errs, "Nothing to do") {
		t.Errorf("again: exit %d: %s", code, errs)
	}
}

// TestRollbackTellsWhatIsNotDone: an object that somebody changes in between, by name.
func TestRollbackTellsWhatIsNotDone(t *testing.T) {
	l, then := changedRules(t)
	name := ""
	url := stepwise(t, l, func(n int) bool {
		if n == 3 {
			list, err := l.Store.List(t.Context(), store.Scope{}, store.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			name = list.Items[len(list.Items)-1].Meta.Name
			clitest.Apply(t, l.URL(), clitest.Rule(name, "v3"))
		}
		return true
	})
	out, errs, code := clitest.Run(t, url, "", "rollback", "-n", "default", "--to", then)
	if code != cli.ExitFailed || strings.Count(out, " replaced\n") != 119 {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
	for _, want := range []string{
		"error: routerule/" + name + ": ", "somebody changed it at revision", "119 replaced, 1 failed\n",
		"1 object is not as at revision " + then + ".",
	} {
		if !strings.Contains(errs, want) {
			t.Errorf("no %q in: %s", want, errs)
		}
	}
	if text, _, _ := clitest.Run(t, url, "", "get", "rr", name, "-o", "yaml"); !strings.Contains(text, "v3") {
		t.Errorf("overwritten: %s", text)
	}
}

// TestRollbackIsInterrupted: the same command does what is left.
func TestRollbackIsInterrupted(t *testing.T) {
	l, then := changedRules(t)
	broken := stepwise(t, l, func(n int) bool { return n < 3 })
	out, errs, code := clitest.Run(t, broken, "", "rollback", "-n", "default", "--to", then)
	if code != cli.ExitFailed || strings.Count(out, "routerule/") != 50 {
		t.Errorf("exit %d: %s", code, out)
	}
	if want := "the rollback to revision " + then + " is not complete: 50 changed, about 70 still to change; run the same command again to go on"; !strings.Contains(errs, want) {
		t.Errorf("no %q in: %s", want, errs)
	}
	out, errs, code = clitest.Run(t, stepwise(t, l, always), "", "rollback", "-n", "default", "--to", then)
	if code != cli.ExitDone || strings.Count(out, "routerule/") != 70 {
		t.Errorf("again: exit %d: %s%s", code, out, errs)
	}
}
