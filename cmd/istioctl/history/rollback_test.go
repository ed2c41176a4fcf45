package history

import (
	"bytes"
	"context"
	"iter"
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/client"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/cli"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/writes"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// stepping is a server that rolls back in given steps.
type stepping struct {
	Rewinder
	steps []*client.RollbackStep
	scope store.Scope
	as    client.Options
}

func (r *stepping) RollbackInSteps(_ context.Context, scope store.Scope, _ int64) iter.Seq2[*client.RollbackStep, error] {
	r.scope = scope
	return func(yield func(*client.RollbackStep, error) bool) {
		for _, step := range r.steps {
			if !yield(step, nil) {
				return
			}
		}
	}
}

// TestRollbackRun: what a step changed and what it left is shown, and the sum of all.
func TestRollbackRun(t *testing.T) {
	one := objectNamed(schema.Key{Kind: "RouteRule", Namespace: "books", Name: "one"})
	two := schema.Key{Kind: "RouteRule", Namespace: "books", Name: "two"}
	server := &stepping{steps: []*client.RollbackStep{
		{Results: []client.Result{{Verb: store.OpUpdate, Object: one}}, Remaining: 1},
		{Undone: []client.Undone{{Key: two, Message: "somebody changed it"}}},
	}}
	var out, errs bytes.Buffer
	s := &cli.Session{Program: &cli.Program{Stdout: &out, Stderr: &errs}}
	flags := RollbackOptions{to: 7, dryRun: writes.DryRunServer, Connect: func(as client.Options) (Rewinder, error) {
		server.as = as
		return server, nil
	}}
	err := flags.Run(t.Context(), s, store.Scope{Namespace: "books"})
	if err == nil || server.scope.Namespace != "books" || !server.as.DryRun {
		t.Errorf("error %v, scope %v, as %+v", err, server.scope, server.as)
	}
	if want := "routerule/one replaced in namespace books (server dry run)\n"; out.String() != want {
		t.Errorf("says %q, want %q", &out, want)
	}
	for _, want := range []string{"error: routerule/two in namespace books: somebody changed it\n", "1 replaced, 1 failed (server dry run)\n"} {
		if !strings.Contains(errs.String(), want) {
			t.Errorf("says %q, want %q in it", &errs, want)
		}
	}
}
