package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/schema"
)

// everyKind is the argument that means all kinds.
const everyKind = "all"

// selection is the objects that the arguments of a verb name. Without names it means
// all objects of its kinds.
type selection struct {
	kinds   []*schema.Kind
	targets []target
	asked   string // the kinds as written
}

// target is one object without its namespace.
type target struct {
	kind *schema.Kind
	name string
}

func (t target) in(namespace string) schema.Key {
	return schema.Key{Kind: t.kind.Kind, Namespace: namespace, Name: t.name}
}

// nameOnly returns an object of which only the key is known.
func nameOnly(key schema.Key) (*schema.Object, error) {
	kind, ok := schema.KindByName(key.Kind)
	if !ok {
		return nil, usagef("there is no kind %q", key.Kind)
	}
	return schema.New(kind, metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}, json.RawMessage("{}"))
}

// parseSelection parses KIND, KIND NAME…, KIND,KIND or KIND/NAME….
func parseSelection(args []string) (selection, error) {
	if len(args) == 0 {
		return selection{}, usagef("say which kind: %s, or all", strings.Join(kindNames(), ", "))
	}
	if strings.Contains(args[0], "/") {
		return parsePairs(args)
	}
	kinds, err := parseKinds(args[0])
	if err != nil {
		return selection{}, err
	}
	sel := selection{kinds: kinds, asked: args[0]}
	for _, name := range args[1:] {
		if strings.Contains(name, "/") {
			return sel, usagef("%q among names: write either KIND NAME… or KIND/NAME…", name)
		}
		for _, kind := range kinds {
			sel.targets = append(sel.targets, target{kind, name})
		}
	}
	return sel, nil
}

// misread returns a hint if a name that was not found is also the name of a kind.
func misread(name string) string {
	if _, ok := schema.Lookup(name); !ok && name != everyKind {
		return ""
	}
	return fmt.Sprintf("; %q is a kind too: write KIND,KIND for all of several kinds, KIND/NAME KIND/NAME for some objects of them", name)
}

// nothing returns the message for an empty result. An empty namespace means all
// namespaces.
func (s selection) nothing(namespace string) string {
	what := s.asked
	switch {
	case what == everyKind:
		what = "objects"
	case len(s.kinds) == 1:
		what = s.kinds[0].Plural
	}
	if namespace == "" {
		return "No " + what + " found."
	}
	return "No " + what + " found in namespace " + namespace + "."
}

func parsePairs(args []string) (selection, error) {
	var sel selection
	for _, arg := range args {
		kindName, name, ok := strings.Cut(arg, "/")
		if !ok || name == "" {
			return sel, usagef("%q: write either KIND NAME… or KIND/NAME…", arg)
		}
		kind, err := parseKind(kindName)
		if err != nil {
			return sel, err
		}
		if !slices.Contains(sel.kinds, kind) {
			sel.kinds = append(sel.kinds, kind)
		}
		sel.targets = append(sel.targets, target{kind, name})
	}
	return sel, nil
}

// parseKinds parses a comma-separated list of kinds, or "all".
func parseKinds(list string) ([]*schema.Kind, error) {
	if list == everyKind {
		return schema.Kinds(), nil
	}
	var kinds []*schema.Kind
	for _, name := range strings.Split(list, ",") {
		kind, err := parseKind(name)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	return kinds, nil
}

func parseKind(name string) (*schema.Kind, error) {
	if kind, ok := schema.Lookup(name); ok {
		return kind, nil
	}
	return nil, usagef("there is no kind %q; %s", name, schema.Suggest(name, kindNames(), "there are"))
}

func kindNames() []string {
	var names []string
	for _, k := range schema.Kinds() {
		names = append(names, k.Singular)
	}
	return names
}

// oneObject returns the key of the one object that the arguments of a verb name.
func oneObject(verb, namespace string, args []string) (schema.Key, error) {
	const want = "say which object: istioctl %s KIND NAME"
	if len(args) == 0 {
		return schema.Key{}, usagef(want, verb)
	}
	sel, err := parseSelection(args)
	switch {
	case err != nil:
		return schema.Key{}, err
	case len(sel.targets) != 1:
		return schema.Key{}, usagef(want, verb)
	}
	return sel.targets[0].in(namespace), nil
}
