package schema

import (
	"github.com/pilot-api/pilot-api/diag"
)

// DefaultNamespace is where an object goes when nobody says otherwise.
const DefaultNamespace = "default"

// Options for Decode.
type Options struct {
	// File is named in the positions of problems; "" for a request body.
	File string
	// Namespace is given to objects whose metadata names none; "" means
	// DefaultNamespace.
	Namespace string
}

// Document is one document of a file: its text and the line it starts at.
type Document struct {
	Text []byte
	File string
	Line int // of the first line of Text, from 1
}

// Split cuts a text into its YAML documents (a JSON text is one document).
// Empty documents, and those of comments only, are left out. It does not parse
// further than it must.
func Split(text []byte, file string) []Document { panic("not written yet") }

// Decode reads exactly one object from a YAML or JSON text and validates it:
// syntax, structure, meaning. The object is nil when the list holds an error;
// warnings may come with an object. An empty text, or more than one document,
// is an error. Names in the proto spelling (simple_cb) are read and written
// back in lower camel case (simpleCb).
func Decode(text []byte, opts Options) (*Object, diag.List) { panic("not written yet") }

// Objects decodes a document, as Decode does with namespace as the default
// namespace, and unpacks a "kind: List" into its items. Positions count from
// the start of the file. Objects that are good are returned beside the
// problems of those that are not.
func (d Document) Objects(namespace string) ([]*Object, diag.List) { panic("not written yet") }

// Validate checks an object that was built by hand or by a patch, as strictly
// as Decode does.
func Validate(o *Object) diag.List { panic("not written yet") }

// Lookup finds a kind by any name a person may type: RouteRule, routerule,
// routerules, route-rule, route-rules, a short name, any of these followed by
// ".group" or ".version.group".
func Lookup(name string) (*Kind, bool) { panic("not written yet") }
