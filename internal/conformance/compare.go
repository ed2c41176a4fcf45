package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// unordered are the lists whose order a comparer may ignore, by the name of
// the field and, before the dot, of the one around it; "" is the whole body.
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

// filterList is where HTTP filters are: their order counts, but not that of
// faults among themselves, nor the type of cors.
const filterList = "config.filters"

// compare takes two JSON bodies; the error tells the first difference.
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

// normalise brings what may be ignored into one form, in place. At is the
// place of v, as in unordered.
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

// sortFaults sorts fault filters among the places where faults are.
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

// byName orders by name first, so that what belongs together comes together.
func byName(a, b any) int {
	if c := strings.Compare(label(a), label(b)); c != 0 {
		return c
	}
	return strings.Compare(text(a), text(b))
}

// label is what an element is called, "" if nothing.
func label(v any) string {
	m, _ := v.(map[string]any)
	for _, field := range []string{"name", "service-key", "address"} {
		if name, ok := m[field].(string); ok {
			return name
		}
	}
	return ""
}

// text is JSON with sorted keys.
func text(v any) string {
	out, err := json.Marshal(v)
	if err != nil {
		return err.Error() // Nothing that was decoded fails to encode.
	}
	return string(out)
}
