package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/schema"
)

// everyKind is the word for all of them.
const everyKind = "all"

// selection is what the arguments of a verb name: some objects of some kinds,
// or all of them when there are no names.
type selection struct {
	kinds   []*schema.Kind
	targets []target
	asked   string // the kinds as they were written
}

// target is one object, its namespace still to come.
type target struct {
	kind *schema.Kind
	name string
}

func (t target) in(namespace string) schema.Key {
	return schema.Key{Kind: t.kind.Kind, Namespace: namespace, Name: t.name}
}

// noneEmpty refuses an argument without a word in it, as from a variable that is not
// set: it must never come to mean all objects of a kind. The words of a completion are
// not whole yet.
func noneEmpty(cmd *cobra.Command, args []string) error {
	if cmd.Name() == cobra.ShellCompRequestCmd {
		return nil
	}
	for i, arg := range args {
		if strings.TrimSpace(arg) == "" {
			return usagef("argument %d of %s is empty: is a variable not set?", i+1, cmd.CommandPath())
		}
	}
	return nil
}

// nameOnly is an object of which no more is known than its name.
func nameOnly(key schema.Key) (*schema.Object, error) {
	kind, ok := schema.KindByName(key.Kind)
	if !ok {
		return nil, usagef("there is no kind %q", key.Kind)
	}
	return schema.New(kind, metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}, json.RawMessage("{}"))
}

// parseSelection reads KIND, KIND NAME…, KIND,KIND or KIND/NAME….
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

// misread is a hint for a name that is not there and that a kind has.
func misread(name string) string {
	if _, ok := schema.Lookup(name); !ok && name != everyKind {
		return ""
	}
	return fmt.Sprintf("; %q is a kind too: write KIND,KIND for all of several kinds, KIND/NAME KIND/NAME for some objects of them", name)
}

// nothing says that there is nothing of what was asked for; namespace "" means
// all.
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

// parseKinds reads a comma list of kinds, or "all".
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
