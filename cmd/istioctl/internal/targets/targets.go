package targets

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/cli"
	"github.com/pilot-api/pilot-api/schema"
)

// EveryKind is the argument that means all schema.MeshKinds.
const EveryKind = "all"

// Selection is the objects that the arguments of a verb name. Without names it means
// all objects of its kinds.
type Selection struct {
	Kinds   []*schema.Kind
	Targets []Target
	Asked   string // the kinds as written
}

// Target is one object without its namespace.
type Target struct {
	Kind *schema.Kind
	Name string
}

// In returns the key of the target in a namespace.
func (t Target) In(namespace string) schema.Key {
	return schema.Key{Kind: t.Kind.Kind, Namespace: namespace, Name: t.Name}
}

// NameOnly returns an object with only a key.
func NameOnly(key schema.Key) (*schema.Object, error) {
	kind, ok := schema.KindByName(key.Kind)
	if !ok {
		return nil, cli.Usagef("there is no kind %q", key.Kind)
	}
	return schema.New(kind, metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}, json.RawMessage("{}"))
}

// Parse parses KIND, KIND NAME…, KIND,KIND or KIND/NAME….
func Parse(args []string) (Selection, error) {
	if len(args) == 0 {
		return Selection{}, cli.Usagef("say which kind: %s, or all", strings.Join(KindNames(), ", "))
	}
	if strings.Contains(args[0], "/") {
		return parsePairs(args)
	}
	kinds, err := parseKinds(args[0])
	if err != nil {
		return Selection{}, err
	}
	sel := Selection{Kinds: kinds, Asked: args[0]}
	for _, name := range args[1:] {
		if strings.Contains(name, "/") {
			return sel, cli.Usagef("%q among names: write either KIND NAME… or KIND/NAME…", name)
		}
		for _, kind := range kinds {
			sel.Targets = append(sel.Targets, Target{kind, name})
		}
	}
	return sel, nil
}

// NotFound returns the message that an object does not exist. A cluster kind has no
// namespace.
func NotFound(key schema.Key) string {
	text := strings.ToLower(key.Kind) + "/" + key.Name + " not found"
	if kind, ok := schema.KindByName(key.Kind); ok && kind.Cluster {
		return text
	}
	return text + " in namespace " + key.Namespace
}

// Misread returns a hint if a name that was not found is also the name of a kind.
func Misread(name string) string {
	if _, ok := schema.Lookup(name); !ok && name != EveryKind {
		return ""
	}
	return fmt.Sprintf("; %q is a kind too: write KIND,KIND for all of several kinds, KIND/NAME KIND/NAME for some objects of them", name)
}

// Nothing returns the message for an empty result. An empty namespace means all
// namespaces.
func (s Selection) Nothing(namespace string) string {
	what := s.Asked
	switch {
	case what == EveryKind:
		what = "objects"
	case len(s.Kinds) == 1:
		what = s.Kinds[0].Plural
	}
	cluster := !slices.ContainsFunc(s.Kinds, func(k *schema.Kind) bool { return !k.Cluster })
	if namespace == "" || cluster && len(s.Kinds) > 0 {
		return "No " + what + " found."
	}
	return "No " + what + " found in namespace " + namespace + "."
}

func parsePairs(args []string) (Selection, error) {
	var sel Selection
	for _, arg := range args {
		kindName, name, ok := strings.Cut(arg, "/")
		if !ok || name == "" {
			return sel, cli.Usagef("%q: write either KIND NAME… or KIND/NAME…", arg)
		}
		kind, err := ParseKind(kindName)
		if err != nil {
			return sel, err
		}
		if !slices.Contains(sel.Kinds, kind) {
			sel.Kinds = append(sel.Kinds, kind)
		}
		sel.Targets = append(sel.Targets, Target{kind, name})
	}
	return sel, nil
}

// parseKinds parses a comma-separated list of kinds, or "all".
func parseKinds(list string) ([]*schema.Kind, error) {
	if list == EveryKind {
		return schema.MeshKinds(), nil
	}
	var kinds []*schema.Kind
	for _, name := range strings.Split(list, ",") {
		kind, err := ParseKind(name)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	return kinds, nil
}

// ParseKind parses the name of one kind.
func ParseKind(name string) (*schema.Kind, error) {
	if kind, ok := schema.Lookup(name); ok {
		return kind, nil
	}
	return nil, cli.Usagef("there is no kind %q; %s", name, schema.Suggest(name, KindNames(), "there are"))
}

// KindNames returns the names of all kinds.
func KindNames() []string {
	var names []string
	for _, k := range schema.Kinds() {
		names = append(names, k.Singular)
	}
	return names
}

// One returns the key of the one object that the arguments of a verb name.
func One(verb, namespace string, args []string) (schema.Key, error) {
	const want = "say which object: istioctl %s KIND NAME"
	if len(args) == 0 {
		return schema.Key{}, cli.Usagef(want, verb)
	}
	sel, err := Parse(args)
	switch {
	case err != nil:
		return schema.Key{}, err
	case len(sel.Targets) != 1:
		return schema.Key{}, cli.Usagef(want, verb)
	}
	return sel.Targets[0].In(namespace), nil
}
