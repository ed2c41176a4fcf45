package diff_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/diff"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/clitest"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/past"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/printer"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
	"github.com/pilot-api/pilot-api/store/memory"
)

// narrow is a store that takes few operations in a transaction.
type narrow struct{ store.Interface }

func (n narrow) Txn(ctx context.Context, ops []store.Op) ([]*schema.Object, error) {
	if err := store.CheckLimit(ops, 3); err != nil {
		return nil, err
	}
	return n.Interface.Txn(ctx, ops)
}

// drawn returns an object with a name, and with an owner, a label and a destination of
// a few.
func drawn(t *rapid.T, name string) *schema.Object {
	kind, _ := schema.Lookup(rapid.SampledFrom([]string{"rr", "dp"}).Draw(t, "kind"))
	meta := metav1.ObjectMeta{Name: name, Namespace: rapid.SampledFrom([]string{"default", "books"}).Draw(t, "namespace"), Labels: map[string]string{}}
	if owner := rapid.SampledFrom([]string{"", "", "shop", "books"}).Draw(t, "owner"); owner != "" {
		meta.Labels["registry.istio.io/owner"] = owner
	}
	if rapid.Bool().Draw(t, "labelled") {
		meta.Labels["team"] = "shop"
	}
	spec := fmt.Sprintf(`{"destination":{"name":%q}}`, rapid.SampledFrom([]string{"reviews", "ratings"}).Draw(t, "destination"))
	o, err := schema.New(kind, meta, json.RawMessage(spec))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

var names = rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f"}), 1, 6, rapid.ID)

// states returns all objects as YAML, without what every write sets.
func states(t *rapid.T, s store.Reader) map[string][]byte {
	list, err := s.List(context.Background(), store.Scope{}, store.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]byte{}
	for _, o := range list.Items {
		fields, err := past.Authored(o)
		if err != nil {
			t.Fatal(err)
		}
		if out[o.Key().Ref().String()], err = printer.MarshalYAML(fields); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

var (
	heads   = regexp.MustCompile(`(?m)^(---|\+\+\+) (.*) \(.*\)$`)
	moments = regexp.MustCompile(`deletionTimestamp: .*`)
)

// parts returns the diffs in a text, one for each object, without names of files and
// moments.
func parts(text string) []string {
	text = moments.ReplaceAllString(heads.ReplaceAllString(text, "$1 $2"), "deletionTimestamp: NOW")
	return slices.Sorted(slices.Values(regexp.MustCompile(`(?m)^--- `).Split(text, -1)[1:]))
}

// changes returns the same for two states.
func changes(before, after map[string][]byte) []string {
	all := maps.Clone(before)
	maps.Copy(all, after)
	var text strings.Builder
	for name := range all {
		_, one, _ := bytes.Cut(diff.Diff(name+" (before)", before[name], name+" (after)", after[name]), []byte("\n"))
		text.Write(one)
	}
	return parts(text.String())
}

// TestDiffIsTheEffectOfApply: whatever is stored, and whatever the files and flags, diff
// shows the changes that an apply then makes, and no others. Its exit code says whether
// there are any, and that the apply would fail. It changes nothing.
func TestDiffIsTheEffectOfApply(test *testing.T) {
	rapid.Check(test, func(t *rapid.T) {
		mem := memory.New()
		for _, name := range names.Draw(t, "stored") {
			o := drawn(t, name)
			if rapid.IntRange(0, 5).Draw(t, "held") == 0 {
				meta := o.Meta
				meta.Finalizers = []string{"example.com/hold"}
				o, _ = o.WithMeta(meta)
			}
			if _, err := mem.Create(context.Background(), o); err != nil {
				t.Fatal(err)
			}
		}
		var files bytes.Buffer
		for _, name := range names.Draw(t, "files") {
			files.WriteString("---\n")
			files.Write(drawn(t, name).Written())
			files.WriteString("\n")
		}
		flags := strings.Fields(rapid.SampledFrom([]string{
			"", "", "--owner shop", "--prune --owner shop", "--prune --owner shop --take-ownership", "--prune -l team=shop",
			"--owner shop --prune -l team=shop",
		}).Draw(t, "flags"))
		var s store.Interface = mem
		if rapid.Bool().Draw(t, "narrow") {
			s = narrow{mem}
		}
		api := httptest.NewServer(clitest.NewServer(s).Handler())
		defer api.Close()
		run := func(verb string) (stdout, stderr string, code int) {
			return clitest.Run(test, api.URL, files.String(), append([]string{verb, "-f", "-"}, flags...)...)
		}

		before := states(t, mem)
		shown, said, answer := run("diff")
		if diff := cmp.Diff(before, states(t, mem)); diff != "" {
			t.Fatalf("diff changes what is stored: %s", diff)
		}
		_, errs, code := run("apply")
		after := states(t, mem)
		if diff := cmp.Diff(changes(before, after), parts(shown)); diff != "" {
			t.Fatalf("diff %v does not show what apply does (-done +shown):\n%s\ndiff: %s\napply: %s", flags, diff, said, errs)
		}
		want := 0
		switch {
		case code != 0:
			want = 2
		case shown != "":
			want = 1
		}
		if answer != want {
			t.Fatalf("diff %v: exit %d, want %d: %s; apply: exit %d, %s", flags, answer, want, said, code, errs)
		}
	})
}
