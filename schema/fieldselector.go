package schema

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/fields"
	operator "k8s.io/apimachinery/pkg/selection"
)

// FieldSelector is a list of conditions on the fields of an object. All must hold.
type FieldSelector []FieldCondition

// FieldCondition holds for an object that has the value in the field, possibly
// among others. With Not it holds for the other objects.
type FieldCondition struct {
	SelectableField
	Value string
	Not   bool
}

// ParseFieldSelector parses a selector such as metadata.name!=a,spec.hosts=reviews
// for objects of a kind; nil stands for all kinds.
func ParseFieldSelector(k *Kind, text string) (FieldSelector, error) {
	parsed, err := fields.ParseSelector(text)
	if err != nil {
		return nil, err
	}
	allowed := SelectableFields(k)
	var out FieldSelector
	for _, one := range parsed.Requirements() {
		i := slices.IndexFunc(allowed, func(f SelectableField) bool { return f.Name == one.Field })
		if i < 0 {
			return nil, fmt.Errorf("must select by %s, found %q", namesOfFields(allowed), one.Field)
		}
		out = append(out, FieldCondition{allowed[i], one.Value, one.Operator == operator.NotEquals})
	}
	return out, nil
}

func namesOfFields(all []SelectableField) string {
	names := make([]string, len(all))
	for i, f := range all {
		names[i] = f.Name
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// Matches reports whether all conditions hold for an object.
func (s FieldSelector) Matches(o *Object) bool {
	for _, c := range s {
		if c.Selects(o, c.Value) == c.Not {
			return false
		}
	}
	return true
}

// Exact returns the value that a field must have, or "".
func (s FieldSelector) Exact(field string) string {
	for _, c := range s {
		if c.Name == field && !c.Not {
			return c.Value
		}
	}
	return ""
}
