package schema

// SelectableField is a field that a fieldSelector may name.
type SelectableField struct {
	// Name is the path of the field, without list indexes: spec.servers.hosts. If
	// several fields answer one question, it is the usual term: destination.host.
	Name string
	// values returns the values of an object, none or several.
	values func(*Object) []string
}

// Selects reports whether an object has a value in the field. "" selects objects
// without a value.
func (f SelectableField) Selects(o *Object, value string) bool {
	found := false
	for _, has := range f.values(o) {
		if has == value {
			return true
		}
		found = found || has != ""
	}
	return value == "" && !found
}

// Fields in the metadata of all kinds.
const (
	FieldName      = "metadata.name"
	FieldNamespace = "metadata.namespace"
)

// metadataFields are selectable in all kinds.
var metadataFields = []SelectableField{
	{FieldName, func(o *Object) []string { return []string{o.Meta.Name} }},
	{FieldNamespace, func(o *Object) []string { return []string{o.Meta.Namespace} }},
}

// SelectableFields returns the fields of a kind; nil stands for all kinds.
func SelectableFields(k *Kind) []SelectableField {
	if k == nil {
		return metadataFields
	}
	return append(metadataFields[:len(metadataFields):len(metadataFields)], k.selectable...)
}

// selectable makes a field from a function on the typed spec.
func selectable[T any](name string, values func(*T) []string) SelectableField {
	return SelectableField{name, func(o *Object) []string {
		spec, err := o.Spec()
		if err != nil {
			return nil
		}
		return values(spec.(*T))
	}}
}

// selectableText makes a field with a single value.
func selectableText[T any](name string, value func(*T) string) SelectableField {
	return selectable(name, func(spec *T) []string { return []string{value(spec)} })
}

// selectableService returns the fields with the names of the service that a rule is
// for.
func selectableService[T any](destination func(*T) *IstioService) []SelectableField {
	part := func(name string, of func(*IstioService) string) SelectableField {
		return selectableText("spec.destination."+name, func(spec *T) string {
			if d := destination(spec); d != nil {
				return of(d)
			}
			return ""
		})
	}
	return []SelectableField{
		part("name", func(s *IstioService) string { return s.Name }),
		part("service", func(s *IstioService) string { return s.Service }),
	}
}
