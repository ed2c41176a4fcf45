package main

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/pilot-api/pilot-api/schema"
)

// ofTheWrite are the fields of metadata that every write sets, or that say
// nothing of what its author wanted.
var ofTheWrite = []string{"resourceVersion", "uid", "creationTimestamp", "generation", "managedFields"}

// changedFields are the paths at which two states of an object differ, each as
// deep as both have it.
func changedFields(before, after *schema.Object) ([]string, error) {
	old, err := authored(before)
	if err != nil {
		return nil, err
	}
	next, err := authored(after)
	if err != nil {
		return nil, err
	}
	paths := differing("", old, next)
	if len(paths) == 0 && !before.SameSpec(after) {
		paths = []string{"spec"} // In what a server does not show.
	}
	return paths, nil
}

// authored is an object without what is of the write and not of its author.
func authored(o *schema.Object) (map[string]any, error) {
	u, err := generic(o)
	if err != nil {
		return nil, err
	}
	if meta, ok := u.Object["metadata"].(map[string]any); ok {
		for _, name := range ofTheWrite {
			delete(meta, name)
		}
	}
	delete(u.Object, "status")
	return u.Object, nil
}

func differing(at string, old, next any) []string {
	oldFields, ok := old.(map[string]any)
	nextFields, also := next.(map[string]any)
	if ok && also {
		return differingFields(at, oldFields, nextFields)
	}
	oldItems, ok := old.([]any)
	nextItems, also := next.([]any)
	if ok && also {
		return differingItems(at, oldItems, nextItems)
	}
	if reflect.DeepEqual(old, next) {
		return nil
	}
	return []string{at}
}

func differingFields(at string, old, next map[string]any) []string {
	names := maps.Clone(old)
	maps.Copy(names, next)
	var out []string
	for _, name := range slices.Sorted(maps.Keys(names)) {
		out = append(out, differing(at+onward(at, name), old[name], next[name])...)
	}
	return out
}

func differingItems(at string, old, next []any) []string {
	var out []string
	for i := range max(len(old), len(next)) {
		out = append(out, differing(fmt.Sprintf("%s[%d]", at, i), item(old, i), item(next, i))...)
	}
	return out
}

func item(list []any, i int) any {
	if i < len(list) {
		return list[i]
	}
	return nil
}

// plainName is a field's name that needs no brackets.
var plainName = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// onward is how a path goes on with a name.
func onward(at, name string) string {
	switch {
	case !plainName.MatchString(name):
		return "[" + name + "]"
	case at == "":
		return name
	}
	return "." + name
}

// mostFields is the number of changed fields that a line names.
const mostFields = 3

// fieldsText is the first of some paths, or all of them.
func fieldsText(paths []string, all bool) string {
	if all || len(paths) <= mostFields {
		return strings.Join(paths, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(paths[:mostFields], ", "), len(paths)-mostFields)
}
