package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// unordered lists the lists whose order may be ignored, by the name of the field and,
// before the dot, that of the enclosing one. "" is the whole body.
var unordered = []string{
	".clusters",
	".listeners",
	".virtual_hosts",
	"route_config.virtual_hosts",
	"virtual_hosts.domains",
	".hosts",
	"routes.headers",
	"routes.request_headers_to_add",
}

// filterList is where HTTP filters are. Their order counts, except that of faults among
// themselves. The type of cors does not count.
const filterList = "config.filters"

// compare compares two JSON bodies. The error describes the first difference.
func compare(want, got []byte) error {
	var wanted, found any
	if err := json.Unmarshal(want, &wanted); err != nil {
		return fmt.Errorf("the expected body: %w", err)
	}
	if err := json.Unmarshal(got, &found); err != nil {
		return fmt.Errorf("the answer is not JSON: %w: %s", err, shorten(got))
	}
	normalise(wanted, ".")
	normalise(found, ".")
	return differ("$", wanted, found)
}

// normalise brings what may be ignored into one form, in place. at is the place of v, as
// in unordered.
func normalise(v any, at string) {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			normalise(item, at)
		}
		if slices.Contains(unordered, at) {
			slices.SortFunc(v, byName)
		}
		if at == filterList {
			sortFaults(v)
		}
	case map[string]any:
		if at == filterList && v["name"] == "cors" {
			delete(v, "type")
		}
		_, around, _ := strings.Cut(at, ".")
		for name, value := range v {
			normalise(value, around+"."+name)
		}
	}
}

// sortFaults sorts fault filters among their places.
func sortFaults(filters []any) {
	var faults []any
	for _, f := range filters {
		if label(f) == "fault" {
			faults = append(faults, f)
		}
	}
	slices.SortFunc(faults, byName)
	for i, f := range filters {
		if label(f) == "fault" {
			filters[i], faults = faults[0], faults[1:]
		}
	}
}

// byName orders by name first, so that related elements are adjacent.
func byName(a, b any) int {
	if c := strings.Compare(label(a), label(b)); c != 0 {
		return c
	}
	return strings.Compare(text(a), text(b))
}

// label returns the name of an element, "" if it has none.
func label(v any) string {
	m, _ := v.(map[string]any)
	for _, field := range []string{"name", "service-key", "address"} {
		if name, ok := m[field].(string); ok {
			return name
		}
	}
	return ""
}

// text returns JSON with sorted keys.
func text(v any) string {
	out, err := json.Marshal(v)
	if err != nil {
		return err.Error() // Everything that was decoded can be encoded.
	}
	return string(out)
}
