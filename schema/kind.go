// Package schema knows the config kinds: their names, their fields, how a
// text becomes an Object and what is wrong with one that does not. Server and
// command line compile in this same package, so they can never disagree.
//
// Adding a kind touches one Go file (its descriptor, its Go types if they are
// ours, its semantic checks) and one JSON Schema under jsonschema/.
//
// The way of a text: syntax (YAML or JSON, one document) → structure (JSON
// Schema, strict) → meaning (the kind's own checks). Every step reports all it
// finds as diag.Problem with field path and, for files, line and column.
package schema

import (
	"github.com/pilot-api/pilot-api/diag"
)

// Kind describes one kind of object. Descriptors are made at start-up, listed
// by Kinds, and never change.
type Kind struct {
	Group   string // "config.istio.io"
	Version string // the version served and written, "v1alpha2"
	// OldVersions were once written by people; they are read with a warning
	// and written as Version.
	OldVersions []string
	Kind        string   // "RouteRule"
	Plural      string   // "routerules", as in a URL
	Singular    string   // "routerule"
	Dashed      string   // "route-rule", Pilot's store type; it orders objects in tie-breaks
	ShortNames  []string // "rr"
	// Columns are the kind's own columns in tables, between NAME and AGE.
	Columns []Column
	// Doc is one paragraph on what the kind is for.
	Doc string
	// Notes are what the table of fields has no room for; "" for nothing.
	Notes string

	// selectable are the fields of the spec that a fieldSelector may name.
	selectable []SelectableField
	// private are the fields of the spec, directly in it, that are texts which
	// nobody may read back.
	private []string
	// spec is the type of its specs.
	spec specType
	// check does the semantic checks on a typed spec that already passed the
	// JSON Schema. Field paths start with "spec"; object and position are
	// filled in by the caller.
	check func(spec any) diag.List
	// limits tells what a typed spec says and no proxy follows, as warnings;
	// nil when all is followed.
	limits func(spec any) diag.List
}

// Column is one column of a table. Wide columns are only shown when asked.
type Column struct {
	Name        string
	Type        string // OpenAPI type: string, integer, boolean
	Description string
	Wide        bool
	Cell        func(*Object) string
	// Short is Cell with a list of many entries cut off; nil where there is
	// no list.
	Short func(*Object) string
}

// APIVersion is "group/version".
func (k *Kind) APIVersion() string { return k.Group + "/" + k.Version }

// Kinds lists all kinds in a fixed order: by group, then by kind name.
func Kinds() []*Kind { return kinds }

// KindByName finds a kind by its exact kind name.
func KindByName(name string) (*Kind, bool) {
	for _, k := range kinds {
		if k.Kind == name {
			return k, true
		}
	}
	return nil, false
}
