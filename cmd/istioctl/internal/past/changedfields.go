package past

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/printer"
	"github.com/pilot-api/pilot-api/schema"
)

// ofTheWrite lists the fields of metadata that every write sets or that say nothing
// about the author's intent.
var ofTheWrite = []string{"resourceVersion", "uid", "creationTimestamp", "generation", "managedFields"}

// changedFields returns the paths at which two states of an object differ. Each path
// is as deep as both states have it.
func changedFields(before, after *schema.Object) ([]string, error) {
	old, err := Authored(before)
	if err != nil {
		return nil, err
	}
	next, err := Authored(after)
	if err != nil {
		return nil, err
	}
	paths := differing("", old, next)
	if len(paths) == 0 && !before.SameSpec(after) {
		paths = []string{"spec"} // The change is in a part that a server does not show.
	}
	return paths, nil
}

// Authored returns an object without the fields that each write sets.
func Authored(o *schema.Object) (map[string]any, error) {
	u, err := printer.Generic(o)
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

// plainName matches field names that need no brackets in a path.
var plainName = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// onward returns the next element of a path, for a name below at.
func onward(at, name string) string {
	switch {
	case !plainName.MatchString(name):
		return "[" + name + "]"
	case at == "":
		return name
	}
	return "." + name
}

// mostFields is the maximum number of changed fields in a line.
const mostFields = 3

// fieldsText joins the first paths, or all of them.
func fieldsText(paths []string, all bool) string {
	if all || len(paths) <= mostFields {
		return strings.Join(paths, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(paths[:mostFields], ", "), len(paths)-mostFields)
}
