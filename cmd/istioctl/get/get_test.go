package get

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/client"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/cli"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// listed is a server with some objects, of which only lists are asked.
type listed struct {
	Objects
	items []client.ObjectWithStatus
	asked client.Selection
}

func (l *listed) Pages(_ context.Context, what client.Selection, _ store.ListOptions) iter.Seq2[*client.ListWithStatus, error] {
	l.asked = what
	return func(yield func(*client.ListWithStatus, error) bool) {
		yield(&client.ListWithStatus{Revision: 7, Items: l.items}, nil)
	}
}

func session(out, errs *bytes.Buffer) *cli.Session {
	return &cli.Session{Program: &cli.Program{Stdout: out, Stderr: errs}, Namespace: "books"}
}

// TestRun: what the flags and arguments say is asked of the server, and what it answers
// is shown.
func TestRun(t *testing.T) {
	kind, _ := schema.Lookup("rr")
	o, err := schema.New(kind, metav1.ObjectMeta{Namespace: "books", Name: "one"}, json.RawMessage(`{"destination":{"name":"reviews"}}`))
	if err != nil {
		t.Fatal(err)
	}
	server := &listed{items: []client.ObjectWithStatus{{Object: o}}}
	var out, errs bytes.Buffer
	flags := Options{Connect: func(func(string)) (Objects, error) { return server, nil }, output: "name"}
	if err := flags.Run(t.Context(), session(&out, &errs), []string{"routerules"}); err != nil {
		t.Fatal(err)
	}
	if want := "routerule.config.istio.io/one\n"; out.String() != want {
		t.Errorf("%q is shown, want %q", &out, want)
	}
	if server.asked.Namespace != "books" || len(server.asked.Kinds) != 1 || server.asked.Kinds[0] != kind {
		t.Errorf("%+v is asked for", server.asked)
	}
}

// TestWrongUsageAsksNoServer: flags are checked before anything is asked.
func TestWrongUsageAsksNoServer(t *testing.T) {
	for name, flags := range map[string]Options{
		"format":            {output: "xml"},
		"chunks":            {chunk: -1},
		"past and watch":    {revision: 3, watch: true},
		"past of all":       {revision: 3},
		"watch of no table": {watch: true, output: "xml"},
	} {
		flags.Connect = func(func(string)) (Objects, error) {
			t.Errorf("%s: the server is asked", name)
			return nil, errors.New("no server")
		}
		var out, errs bytes.Buffer
		err := flags.Run(t.Context(), session(&out, &errs), []string{"routerules"})
		if !cli.IsUsage(err) || out.Len() > 0 {
			t.Errorf("%s: %v, shows %q", name, err, &out)
		}
	}
}
