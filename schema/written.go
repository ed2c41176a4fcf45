package schema

import (
	"bytes"

	"github.com/pilot-api/pilot-api/diag"
)

// decodeWritten is Decode for valid JSON in the written form: the fast way of
// docs/decisions/023-fast-validation.md. It returns nil for all other texts, which
// may be valid.
func decodeWritten(text []byte, opts Options) (*Object, diag.List) {
	if len(text) > MaxTextBytes || !beginsAsJSON(text) || !opts.Counted && TooMany(text) {
		return nil, nil
	}
	s, ok := read(string(text))
	defer s.done()
	if !ok {
		return nil, nil
	}
	metadata := s.member(0, "metadata")
	if metadata == 0 {
		return nil, nil
	}
	s.drop(0, "status")
	var d candidate
	if namespace := namespaceOr(opts.Namespace); formats["dns-label"].ok(namespace) {
		d.meta.Namespace = namespace
	}
	spec, ok := d.take(s)
	if !ok {
		return nil, nil
	}
	o, err := assemble(d.kind, d.meta, func(out []byte) []byte { return s.appendWritten(out, spec) }, int(s.nodes[spec].end-s.nodes[spec].start))
	if err != nil || o.Size() > MaxObjectBytes || !d.means(o) {
		return nil, nil
	}
	o.writtenIn = d.version
	if len(d.list) == 0 {
		return o.passed(d.typed), nil
	}
	return o.passed(d.typed), Document{Text: text, File: opts.File, Line: 1}.unread().tell("", &d)
}

// isWritten is Validate for a valid object in the written form. It returns false
// for all others, which may be valid.
func (o *Object) isWritten() bool {
	warnings, ok := o.warnings()
	return ok && len(warnings) == 0
}

// warnings returns the warnings about a valid object in the written form, and false
// for all others, which may be valid.
func (o *Object) warnings() (diag.List, bool) {
	if len(o.raw) > MaxTextBytes || o.sealed != nil {
		return nil, false // The shown text of a sealed object is not the one to check.
	}
	s, ok := read(string(o.JSON()))
	defer s.done()
	d := candidate{}
	if ok {
		_, ok = d.take(s)
	}
	if !ok || !d.means(o) {
		return nil, false
	}
	return readable(d.finish()), true
}

// take checks a scan against the schemas and reads its metadata. The namespace in
// d.meta is for an object that names none.
func (d *candidate) take(s *scan) (spec int32, ok bool) {
	apiVersion, _ := s.of(s.member(0, "apiVersion"))
	name, _ := s.of(s.member(0, "kind"))
	// Problems must not show the values of private fields; the slow way ensures
	// that.
	if d.kind, ok = KindByName(name); !ok || len(d.kind.private) > 0 || d.kind.Flat {
		return 0, false
	}
	if d.version, ok = d.kind.VersionIn(apiVersion); !ok {
		return 0, false
	}
	metadata, spec := s.member(0, "metadata"), s.member(0, "spec")
	if !s.isPlain("object", 0) || !s.isPlain(d.kind.Singular, spec) {
		return 0, false
	}
	namespace := d.meta.Namespace
	if d.meta, ok = s.meta(metadata); !ok {
		return 0, false
	}
	if d.meta.Namespace == "" {
		d.meta.Namespace = namespace
	}
	named := s.member(metadata, "name") != 0 || s.member(metadata, "generateName") != 0
	return spec, named && d.meta.Namespace != ""
}

func (s *scan) isPlain(schema string, i int32) bool {
	p := predicates()[schema]
	if p == nil {
		return false
	}
	fits, plain := p.fits(s, i)
	return fits && plain
}

// means checks what no schema expresses, and keeps the typed spec. It may find
// warnings and still return true.
func (d *candidate) means(o *Object) bool {
	d.checkMeaningOfMeta()
	var err error
	if d.typed, err = d.kind.spec.decode(o.spec); err != nil {
		return false
	}
	d.checkMeaning(nil)
	return d.list.Err() == nil
}

// unread returns a tree for positions only.
func (d Document) unread() *tree {
	return &tree{places: places{doc: d}, nodes: lazyNodes(func() []byte {
		// A tab is white space in JSON and not in YAML, whose parser finds the
		// positions. Strings in JSON have no tabs.
		return bytes.ReplaceAll(d.Text, []byte("\t"), []byte(" "))
	})}
}

// written returns a JSON text in the written form, and any text that a scan rejects
// unchanged.
func written(text []byte) []byte {
	s, ok := read(string(text))
	defer s.done()
	if !ok {
		return text
	}
	return s.appendWritten(make([]byte, 0, len(text)), 0)
}
