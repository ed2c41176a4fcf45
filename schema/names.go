package schema

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/validate/content"
)

// CheckNames returns an error if no object of a kind can have this namespace and this name.
// An object of a Cluster kind has the namespace "".
func CheckNames(kind *Kind, namespace, name string) error {
	if rule := formats["object-name"]; !kind.isPathName(name) && !rule.ok(name) {
		return fmt.Errorf("the name %q of a %s must be %s", name, kind.Kind, rule.want)
	}
	switch {
	case !kind.Cluster:
		return CheckNamespace(namespace)
	case namespace != "":
		return fmt.Errorf("a %s is in no namespace, found %q", kind.Kind, namespace)
	}
	return nil
}

// maxPathName bounds the name of an object whose kind has PathNames, in bytes.
const maxPathName = 253

// isPathName reports whether the kind has PathNames and a name is one.
func (k *Kind) isPathName(name string) bool {
	return k.PathNames && name != "" && len(name) <= maxPathName && len(content.IsPathSegmentName(name)) == 0
}
