package diff

import (
	"bytes"
	"context"
	"encoding/json"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/client"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/cli"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// remembering is a server with the versions of one object.
type remembering struct {
	States
	versions []store.Version
}

func (r remembering) Revision(context.Context) (int64, error) { return r.versions[0].Revision, nil }

func (r remembering) History(context.Context, schema.Key) ([]store.Version, error) {
	return r.versions, nil
}

func version(t *testing.T, revision, destination string) store.Version {
	t.Helper()
	kind, _ := schema.Lookup("rr")
	o, err := schema.New(kind, metav1.ObjectMeta{Namespace: "books", Name: "one", ResourceVersion: revision},
		json.RawMessage(`{"destination":{"name":"`+destination+`"}}`))
	if err != nil {
		t.Fatal(err)
	}
	return store.Version{Revision: o.Revision(), Object: o}
}

// TestRunOverThePast: the exit code says whether two states differ, and whether they
// could be compared.
func TestRunOverThePast(t *testing.T) {
	server := remembering{versions: []store.Version{version(t, "9", "ratings"), version(t, "5", "reviews")}}
	for name, c := range map[string]struct {
		past pastFlags
		code int
		said string
	}{
		"since then": {pastFlags{from: 5}, exitDiffers, "--- RouteRule books/one (revision 5)\n+++ RouteRule books/one (now)\n" +
			"@@ -5,4 +5,4 @@\n   namespace: books\n spec:\n   destination:\n-    name: reviews\n+    name: ratings\n"},
		"the same":    {pastFlags{from: 5, to: 8}, cli.ExitDone, ""},
		"not reached": {pastFlags{from: 10}, exitNotCompared, ""},
		"to only":     {pastFlags{to: 9}, cli.ExitUsage, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var out, errs bytes.Buffer
			s := &cli.Session{Program: &cli.Program{Stdout: &out, Stderr: &errs}, Namespace: "books"}
			flags := Options{Connect: func(client.Options) (States, error) { return server, nil }, past: c.past}
			code := cli.ExitDone
			if err := flags.Run(t.Context(), s, []string{"rr/one"}); err != nil {
				code = cli.ExitCode(err)
			}
			if code != c.code || out.String() != c.said {
				t.Errorf("exit %d, want %d; says\n%s, want\n%s", code, c.code, &out, c.said)
			}
		})
	}
}
