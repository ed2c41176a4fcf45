package apply

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/client"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/cli"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/manifest"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/writes"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

const rule = `apiVersion: config.istio.io/v1alpha2
kind: RouteRule
metadata: {name: one}
spec: {destination: {name: reviews}}
`

// racing is a server on which another writer is faster, some times.
type racing struct {
	Writer
	races int
	sent  []string
}

func (r *racing) Get(context.Context, schema.Key, store.ReadOptions) (*schema.Object, error) {
	r.sent = append(r.sent, "get")
	return nil, &store.Error{Kind: store.ErrNotFound}
}

func (r *racing) CreateText(_ context.Context, t client.Text) (*schema.Object, error) {
	r.sent = append(r.sent, "create")
	if r.races--; r.races >= 0 {
		return nil, &store.Error{Kind: store.ErrExists, Detail: "somebody was faster"}
	}
	o, problems := schema.Decode(t.Body, schema.Options{Namespace: t.Namespace})
	return o, problems.Err()
}

// applied runs an apply of the rule against a server.
func applied(t *testing.T, server *racing, dryRun string) (out, errs string, err error) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	s := &cli.Session{
		Program:   &cli.Program{Stdin: strings.NewReader(rule), Stdout: &stdout, Stderr: &stderr},
		Namespace: "books",
	}
	flags := Options{
		Connect: func(client.Options) (Writer, error) { return server, nil },
		Options: writes.Options{DryRun: dryRun},
		files:   manifest.Files{Names: []string{"-"}},
	}
	err = apply.run(t.Context(), s, flags)
	return stdout.String(), stderr.String(), err
}

// TestApplyLooksAgain: an apply that loses a race looks again, and gives up in the end.
func TestApplyLooksAgain(t *testing.T) {
	server := &racing{races: 2}
	out, errs, err := applied(t, server, writes.DryRunNone)
	if err != nil || out != "routerule/one created in namespace books\n" || errs != "" {
		t.Errorf("%v: says %q and %q", err, out, errs)
	}
	if want := strings.Repeat("get create ", 3); strings.Join(server.sent, " ")+" " != want {
		t.Errorf("sent %q, want %s", server.sent, want)
	}
	server = &racing{races: 1000}
	out, errs, err = applied(t, server, writes.DryRunNone)
	if !errors.Is(err, cli.ErrReported) || out != "" || !strings.Contains(errs, "somebody was faster") {
		t.Errorf("%v: says %q and %q", err, out, errs)
	}
	if len(server.sent) != 2*applyTries {
		t.Errorf("%d requests, want %d", len(server.sent), 2*applyTries)
	}
}

// TestDryRunOfTheClientSendsNothing: it shows what was checked.
func TestDryRunOfTheClientSendsNothing(t *testing.T) {
	server := &racing{}
	out, errs, err := applied(t, server, writes.DryRunClient)
	if err != nil || out != "routerule/one checked in namespace books (dry run)\n" || errs != "" || len(server.sent) > 0 {
		t.Errorf("%v: says %q and %q, sent %q", err, out, errs, server.sent)
	}
}
