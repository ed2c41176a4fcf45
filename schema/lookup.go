package schema

import (
	"slices"
	"strings"
)

// Lookup finds a kind by any name that a person may type: RouteRule, routerule,
// routerules, route-rule, route-rules, a short name, any of these followed by
// ".group" or ".version.group".
func Lookup(name string) (*Kind, bool) {
	name, qualifier, qualified := strings.Cut(strings.ToLower(name), ".")
	for _, k := range kinds {
		if slices.Contains(k.names(), name) && (!qualified || k.qualified(qualifier)) {
			return k, true
		}
	}
	return nil, false
}

// names returns all names of the kind, in lower case.
func (k *Kind) names() []string {
	names := append([]string{k.Singular, k.Plural, k.Dashed}, k.ShortNames...)
	if first, _, dashed := strings.Cut(k.Dashed, "-"); dashed {
		names = append(names, first+"-"+strings.TrimPrefix(k.Plural, first))
	}
	return names
}

func (k *Kind) qualified(by string) bool {
	versions := append(k.Versions(), k.OldVersions...)
	return by == k.Group || slices.ContainsFunc(versions, func(v string) bool { return by == v+"."+k.Group })
}
