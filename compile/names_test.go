package compile_test

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/pilot-api/pilot-api/compile"
	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// TestMessagesNameObjectsInOneForm checks that whatever a message shows of objects of other
// namespaces comes with their names in the form of diag.Ref, so that those who may not read
// them get the general message instead. It takes the objects of all archives, and moves each
// of them to another namespace in turn.
func TestMessagesNameObjectsInOneForm(t *testing.T) {
	outside.Slow(t)
	named := 0
	for _, pattern := range []string{"../testdata/translate/*.txtar", "../testdata/messages/*.txtar"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatal(pattern, err)
		}
		for _, file := range files {
			all := meshObjectsOf(t, file)
			for i, o := range all {
				for _, namespace := range []string{"alien", "zone"} {
					moved := slices.Clone(all)
					moved[i] = objectOf(t, o.Kind, namespace, o.Meta.Name, specOf(t, o))
					for _, p := range problemsOfAll(t, moved) {
						named += checkNames(t, file, p, moved)
					}
				}
			}
		}
	}
	if named < 50 {
		t.Errorf("only %d messages name objects of other namespaces", named)
	}
}

// meshObjectsOf returns the objects of an archive that concern proxies and can be read.
func meshObjectsOf(t *testing.T, file string) (all []*schema.Object) {
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range archive.Files {
		if f.Name != "objects.yaml" && f.Name != "bad.yaml" {
			continue
		}
		for _, doc := range schema.Split(f.Data, f.Name) {
			objs, _, _ := doc.Objects(t.Context(), schema.DefaultNamespace)
			for _, o := range objs {
				if !o.Kind.Flat {
					all = append(all, o)
				}
			}
		}
	}
	return all
}

func specOf(t *testing.T, o *schema.Object) json.RawMessage {
	var whole struct{ Spec json.RawMessage }
	if err := json.Unmarshal(o.JSON(), &whole); err != nil {
		t.Fatal(err)
	}
	return whole.Spec
}

// problemsOfAll returns the problems of the objects for the whole mesh, and for a sidecar and
// a router of each of some namespaces.
func problemsOfAll(t *testing.T, objs []*schema.Object) diag.List {
	s := mesh.NewSnapshot(1, mesh.DefaultSettings(), objs)
	c := compile.NewCompiler()
	c.Advance(s)
	all := slices.Concat(s.Problems, c.Problems())
	for _, namespace := range []string{"default", "alien", "zone"} {
		for _, role := range []string{"sidecar", "router"} {
			_, problems := compile.Proxy(s, s.TraitsOf(proxy(t, role+"~10.0.0.1~a."+namespace+"~"+namespace+".svc.cluster.local")))
			all = append(all, problems...)
		}
	}
	return all
}

// checkNames returns 1 if the message names objects of other namespaces. It fails if a message
// that does not shows something of them all the same.
func checkNames(t *testing.T, file string, p diag.Problem, objs []*schema.Object) int {
	t.Helper()
	own := p.Field + p.Value
	for _, o := range objs {
		if o.Key().Ref() == p.Object {
			own += string(o.JSON())
		}
	}
	if slices.ContainsFunc(p.Names(), func(r diag.Ref) bool { return r.Namespace != p.Object.Namespace }) {
		p = p.General("an object")
		if len(p.Names()) > 0 {
			t.Errorf("%s: the general message has names: %s", file, p)
		}
		return 1
	}
	for _, o := range objs {
		if o.Meta.Namespace == p.Object.Namespace {
			continue
		}
		for _, token := range tokensOf(t, o) {
			label, _, _ := strings.Cut(token, ".")
			if strings.Contains(strings.ToLower(own), strings.ToLower(label)) {
				continue // It may come from the object itself.
			}
			form := `["/]` + regexp.QuoteMeta(token) + `($|[^-\w])` // A word is also a word of English.
			if strings.ContainsAny(token, ".-") {
				form = `(^|[^-\w.])` + regexp.QuoteMeta(token) + `($|[^-\w])`
			}
			if regexp.MustCompile(form).MatchString(p.Message) {
				t.Errorf("%s: %s\nshows %q of %s and does not name it", filepath.Base(file), p, token, o.Key())
			}
		}
	}
	return 0
}

// tokensOf returns the name of an object and the texts in it.
func tokensOf(t *testing.T, o *schema.Object) []string {
	tokens := []string{o.Meta.Name}
	for _, m := range regexp.MustCompile(`"([^"]{3,})"`).FindAllStringSubmatch(string(specOf(t, o)), -1) {
		tokens = append(tokens, m[1])
	}
	return tokens
}
