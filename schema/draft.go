package schema

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/diag"
)

// candidate is an object on its way from the parsed tree to the Object, with all
// problems found in it.
type candidate struct {
	problems
	top     map[string]any
	kind    *Kind
	version string // the version of the kind in which the text is written
	meta    metav1.ObjectMeta
	spec    json.RawMessage
	typed   any
	// keep says that an object may result although it breaks rules, so that nothing
	// of it may be lost.
	keep bool
}

// normalise brings the whole tree to the written form.
func (d *candidate) normalise(namespace string) {
	namespace = namespaceOr(namespace)
	delete(d.top, "status")
	d.gather()
	d.spell(true)
	meta, ok := d.top["metadata"].(map[string]any)
	if !ok {
		return
	}
	given := meta["namespace"]
	switch empty := given == nil || given == ""; {
	case empty && d.isCluster():
		delete(meta, "namespace")
	case empty:
		meta["namespace"] = namespace
	}
}

// isCluster reports whether the object is of a kind without namespaces.
func (d *candidate) isCluster() bool {
	name, _ := d.top["kind"].(string)
	kind, ok := KindByName(name)
	return ok && kind.Cluster
}

func namespaceOr(given string) string { return cmp.Or(given, DefaultNamespace) }

// spell normalizes the object as far as its schema is known.
func (d *candidate) spell(rewrite bool) {
	sp := normalizer{problems: &d.problems, rewrite: rewrite, keep: d.keep}
	sp.value(compiled()["object"], d.top)
	name, _ := d.top["kind"].(string)
	if kind, ok := KindByName(name); ok {
		sp.path = []string{"spec"}
		sp.value(compiled()[kind.Singular], d.top["spec"])
	}
}

func (d *candidate) check() {
	// The remaining checks depend on the kind.
	if !d.checkKind() {
		return
	}
	d.structure("", "object", d.top)
	d.checkNames()
	d.checkMeta()
	if spec, ok := d.top["spec"].(map[string]any); ok && d.kind != nil {
		d.checkSpec(spec)
	}
}

// checkNames applies the rules of the kind for names.
func (d *candidate) checkNames() {
	if d.kind == nil {
		return
	}
	meta, _ := d.top["metadata"].(map[string]any)
	if given, has := meta["namespace"]; d.kind.Cluster && has {
		d.invalid("metadata.namespace", fmt.Sprintf("must be left out: a %s is in no namespace, found %s", d.kind.Kind, short(given)))
	}
	name, ok := meta["name"].(string)
	if !ok || !d.kind.isPathName(name) {
		return
	}
	d.list = slices.DeleteFunc(d.list, func(p diag.Problem) bool { return p.Field == "metadata.name" })
}

// checkKind finds the kind, and reports an unknown one.
func (d *candidate) checkKind() bool {
	name, given := d.top["kind"].(string)
	if !given {
		return true // The structure check reports it.
	}
	kind, ok := KindByName(name)
	if !ok {
		d.notSupported("kind", fmt.Sprintf("there is no kind %s; %s", short(name), suggestKind(name)))
		return false
	}
	d.kind = kind
	d.checkVersion(kind)
	return true
}

func (d *candidate) checkVersion(kind *Kind) {
	version, _ := d.top["apiVersion"].(string)
	group, v := splitVersion(version)
	served, isServed := kind.VersionIn(version)
	switch {
	case version == "":
	case isServed:
		d.version = served
	case group == kind.Group && slices.Contains(kind.OldVersions, v):
		d.add(diag.Warning, diag.FieldNotSupported, "apiVersion", short(version), "is read, and written as "+kind.APIVersion()+", which is its name now")
	default:
		d.notSupportedValue("apiVersion", version, fmt.Sprintf("%s; the apiVersion of %s is %s", missingVersion(version, kind), kind.Kind, kind.APIVersions()))
	}
}

func missingVersion(version string, kind *Kind) string {
	exists := slices.ContainsFunc(kinds, func(k *Kind) bool {
		_, served := k.VersionIn(version)
		return served
	})
	if exists {
		return "there is no " + kind.Kind + " in " + version
	}
	return "there is no " + version
}

// APIVersions returns the apiVersions of the kind, for people.
func (k *Kind) APIVersions() string {
	if len(k.Served) == 0 {
		return k.APIVersion()
	}
	return k.APIVersion() + " (also served: " + strings.Join(k.Served, ", ") + ")"
}

func suggestKind(name string) string {
	if kind, ok := Lookup(name); ok {
		return "did you mean " + kind.Kind + "?"
	}
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = k.Kind
	}
	return Suggest(name, names, "the kinds are")
}

func (d *candidate) checkSpec(tree map[string]any) {
	before := len(d.list)
	d.structure("spec", d.kind.Singular, tree)
	broken := slices.Clone(d.list[before:])
	var whole json.RawMessage
	if len(broken) > 0 {
		whole, _ = json.Marshal(tree)
	}
	for _, p := range broken {
		prune(d.top, splitField(p.Field))
	}
	var err error
	if d.spec, err = json.Marshal(tree); err == nil {
		d.typed, err = d.kind.spec.decode(d.spec)
	}
	if whole != nil {
		d.spec = whole // Includes the broken parts, which the decoded spec lacks.
	}
	if err != nil {
		if len(broken) == 0 {
			d.invalid("spec", err.Error())
		}
		return
	}
	d.checkMeaning(broken)
}

// checkMeaning applies the kind's own rules to the typed spec. It skips problems
// that may result from pruning.
func (d *candidate) checkMeaning(broken diag.List) {
	for _, p := range append(d.kind.check(d.typed), d.exportedTwice()...) {
		if !follows(p, broken) {
			d.put(p)
		}
	}
	if d.list.Err() == nil {
		d.put(d.kind.beyond(d.typed)...)
	}
}

// prune removes the nearest field around something that is broken, so that the rest
// can be checked.
func prune(top map[string]any, steps []string) {
	var around map[string]any
	var name string
	var v any = top
	for _, step := range steps {
		switch inner := v.(type) {
		case map[string]any:
			around, name, v = inner, step, inner[step]
		case []any:
			_, v = below(nil, inner, step)
		default:
			v = nil
		}
	}
	delete(around, name)
}

// follows reports whether a problem may be only the result of pruning. A surplus is
// never such a result.
func follows(p diag.Problem, broken diag.List) bool {
	tooMuch := p.Reason == diag.FieldForbidden || p.Reason == diag.FieldNotSupported || p.Reason == diag.FieldDuplicate
	return slices.ContainsFunc(broken, func(b diag.Problem) bool {
		return b.Field == p.Field || !tooMuch && (within(b.Field, p.Field) || within(p.Field, b.Field))
	})
}

func within(inner, outer string) bool {
	rest, ok := strings.CutPrefix(inner, outer)
	return ok && (strings.HasPrefix(rest, ".") || strings.HasPrefix(rest, "["))
}

func (d *candidate) ref() diag.Ref {
	if d.top == nil && d.kind != nil {
		return KeyOf(d.kind, d.meta.Namespace, d.meta.Name).Ref()
	}
	meta, _ := d.top["metadata"].(map[string]any)
	name, _ := meta["name"].(string)
	namespace, _ := meta["namespace"].(string)
	kind, _ := d.top["kind"].(string)
	return diag.Ref{Kind: kind, Namespace: namespace, Name: name}
}

// finish returns every problem once, in order of field.
func (d *candidate) finish() diag.List {
	seen := map[diag.Problem]bool{}
	list := slices.DeleteFunc(d.list, func(p diag.Problem) bool {
		twice := seen[p]
		seen[p] = true
		return twice
	})
	d.kind.spreadFields(list)
	slices.SortStableFunc(list, func(a, b diag.Problem) int { return strings.Compare(a.Field, b.Field) })
	if d.kind != nil && len(d.kind.private) > 0 {
		return withoutValues(list)
	}
	return list
}

// The last messages of a list that was cut.
const (
	moreErrors   = "there are more problems than are listed here"
	moreWarnings = "there are more warnings than are listed here"
)

// readable limits a list to as much as a person can read, plus the first warning of
// each further code. Errors take precedence over warnings.
func readable(list diag.List) diag.List {
	if len(list) <= mostProblems {
		return list
	}
	errs := len(list.Errors())
	room := map[diag.Severity]int{diag.Error: mostProblems, diag.Warning: max(mostProblems-errs, 0)}
	last := diag.Problem{Severity: diag.Warning, Reason: diag.NotHonoured, Code: list[0].Code, Object: list[0].Object, Message: moreWarnings}
	if errs > mostProblems {
		last.Severity, last.Reason, last.Message = diag.Error, diag.FieldInvalid, moreErrors
	}
	listed := map[diag.Code]bool{}
	list = slices.DeleteFunc(list, func(p diag.Problem) bool {
		room[p.Severity]--
		if room[p.Severity] < 0 && (errs > 0 || listed[p.Code]) {
			return true
		}
		listed[p.Code] = true
		return false
	})
	return append(list, last)
}

func byPosition(list diag.List) {
	slices.SortStableFunc(list, func(a, b diag.Problem) int {
		if a.Position == nil || b.Position == nil {
			return 0
		}
		return cmp.Or(cmp.Compare(a.Position.Line, b.Position.Line), cmp.Compare(a.Position.Column, b.Position.Column))
	})
}

func (d *candidate) build() (*Object, error) {
	o, err := assemble(d.kind, d.meta, func(out []byte) []byte { return append(out, d.spec...) }, len(d.spec))
	if err != nil {
		return nil, err
	}
	if size := o.Size(); size > MaxObjectBytes {
		return nil, fmt.Errorf("the object is %d bytes long when written as JSON; %d are allowed", size, MaxObjectBytes)
	}
	o.writtenIn = d.version
	if d.list.Err() != nil {
		return o, nil // The rules that it breaks are known.
	}
	return o.passed(d.typed), nil
}

// passed marks an object that was just checked.
func (o *Object) passed(typed any) *Object {
	o.typed, o.decoded = typedAs(o.Kind, typed), o
	return o
}
