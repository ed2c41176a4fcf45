package schema

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/pilot-api/pilot-api/diag"
)

// The API groups of the kinds.
const (
	configGroup     = "config.istio.io"
	networkingGroup = "networking.istio.io"
	securityGroup   = "security.istio.io"
	registryGroup   = "registry.istio.io" // this project's own
)

// networkingVersions are the versions beside v1 in which Istio serves these kinds.
// Its CustomResourceDefinitions have the same fields in all of them.
var networkingVersions = []string{"v1beta1", "v1alpha3"}

// securityVersions are the same for the kinds of securityGroup.
var securityVersions = []string{"v1beta1"}

var kinds []*Kind

// register adds a kind and keeps the order that Kinds promises. The init function
// of the kind's own file calls it.
func register(k *Kind) {
	kinds = append(kinds, k)
	slices.SortFunc(kinds, CompareKinds)
}

// StoredGroup returns the group in the order of kinds and in the keys of stores: the core
// group, which has no name, is core.
func (k *Kind) StoredGroup() string { return cmp.Or(k.Group, "core") }

// CompareKinds orders kinds by group and plural.
func CompareKinds(a, b *Kind) int {
	return cmp.Or(strings.Compare(a.StoredGroup(), b.StoredGroup()), strings.Compare(a.Plural, b.Plural))
}

// checkAs makes a kind's check from a function on its typed spec.
func checkAs[T any](check func(*T) diag.List) func(any) diag.List {
	return func(spec any) diag.List { return check(spec.(*T)) }
}

// cell makes a table cell from a function on the typed spec.
func cell[T any](text func(*T) string) func(*Object) string {
	return func(o *Object) string {
		spec, err := o.Spec()
		if err != nil {
			return "<invalid>"
		}
		return text(spec.(*T))
	}
}

func stringColumn[T any](name, description string, text func(*T) string) Column {
	return Column{Name: name, Type: "string", Description: description, Cell: cell(text)}
}

// listColumn shows entries joined by sep.
func listColumn[T any](name, description, sep string, entries func(*T) []string) Column {
	c := stringColumn(name, description, func(spec *T) string { return strings.Join(entries(spec), sep) })
	c.Short = cell(func(spec *T) string { return shortList(entries(spec), sep) })
	return c
}

func shortList(entries []string, sep string) string {
	const most = 3
	if len(entries) <= most {
		return strings.Join(entries, sep)
	}
	return fmt.Sprintf("%s …and %d more", strings.Join(entries[:most], sep), len(entries)-most)
}

func wideColumn[T any](name, description string, text func(*T) string) Column {
	c := stringColumn(name, description, text)
	c.Wide = true
	return c
}
