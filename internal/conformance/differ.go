package main

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
)

// differ compares two JSON values. The error describes the first difference: where, as a
// JSON path, and both values.
func differ(path string, want, got any) error {
	switch w := want.(type) {
	case map[string]any:
		if g, ok := got.(map[string]any); ok {
			return differInObject(path, w, g)
		}
	case []any:
		if g, ok := got.([]any); ok {
			return differInList(path, w, g)
		}
	default:
		if want == got {
			return nil
		}
	}
	return fmt.Errorf("%s: want %s, got %s", path, shown(want), shown(got))
}

func differInObject(path string, want, got map[string]any) error {
	names := slices.Collect(maps.Keys(want))
	for name := range got {
		if _, both := want[name]; !both {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		at := path + "." + name
		w, wanted := want[name]
		g, found := got[name]
		switch {
		case !found:
			return missing(at, w)
		case !wanted:
			return unexpected(at, g)
		}
		if err := differ(at, w, g); err != nil {
			return err
		}
	}
	return nil
}

// differInList compares element by element. An element whose name is not in the other
// list is missing or superfluous.
func differInList(path string, want, got []any) error {
	for i := range max(len(want), len(got)) {
		switch {
		case i < len(want) && (i >= len(got) || lacks(got, label(want[i]))):
			return missing(element(path, i, want), want[i])
		case i < len(got) && (i >= len(want) || lacks(want, label(got[i]))):
			return unexpected(element(path, i, got), got[i])
		}
		if err := differ(element(path, i, want), want[i], got[i]); err != nil {
			return err
		}
	}
	return nil
}

func lacks(list []any, name string) bool {
	return name != "" && !slices.ContainsFunc(list, func(v any) bool { return label(v) == name })
}

func element(path string, i int, list []any) string {
	if name := label(list[i]); name != "" {
		return fmt.Sprintf("%s[%q]", path, name)
	}
	return fmt.Sprintf("%s[%d]", path, i)
}

func missing(path string, want any) error {
	return fmt.Errorf("%s: want %s, got nothing", path, shown(want))
}

func unexpected(path string, got any) error {
	return fmt.Errorf("%s: want nothing, got %s", path, shown(got))
}

func shown(v any) string { return shorten([]byte(text(v))) }

// mostShown is the maximum length of a printed value.
const mostShown = 120

func shorten(value []byte) string {
	value = bytes.TrimSpace(value)
	if len(value) > mostShown {
		return string(value[:mostShown]) + "…"
	}
	return string(value)
}
