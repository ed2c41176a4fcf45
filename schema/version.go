package schema

import "cmp"

// WrittenIn returns the version of the kind in which a client wrote the object. It is
// Kind.Version for an object that was not decoded from a text, such as a stored one.
func (o *Object) WrittenIn() string { return cmp.Or(o.writtenIn, o.Kind.Version) }

// JSONIn returns the whole object as clients of a version of its kind see it. The
// caller must not change it: in the stored version it is JSON.
func (o *Object) JSONIn(version string) []byte {
	if version == o.Kind.Version {
		return o.JSON()
	}
	return o.AppendJSONIn(make([]byte, 0, o.LengthIn(version)), version)
}

// AppendJSONIn appends JSONIn to out.
func (o *Object) AppendJSONIn(out []byte, version string) []byte {
	from := 0
	if version != o.Kind.Version {
		out = append(append(out, beforeGroup...), o.Kind.In(version)...)
		from = len(beforeGroup) + len(o.Kind.APIVersion())
	}
	if o.plain == nil {
		return append(out, o.raw[from:]...)
	}
	before, after := o.aroundRevision()
	out = appendRevision(append(out, before[from:]...), o.Meta.ResourceVersion)
	if after[0] == '}' {
		out = out[:len(out)-1] // No comma if nothing follows.
	}
	return append(out, after...)
}

// LengthIn returns the length of JSONIn in bytes.
func (o *Object) LengthIn(version string) int {
	return len(o.raw) + len(version) - len(o.Kind.Version) +
		len(o.Meta.ResourceVersion) - len(o.WithoutStatus().Meta.ResourceVersion)
}
