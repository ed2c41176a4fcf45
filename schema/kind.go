// Package schema defines the config kinds: their names, their fields, how a text
// becomes an Object, and what is wrong with an invalid one. The server and the
// command line use this same package, so that they always agree.
//
// To add a kind, write one Go file (its descriptor, its Go types if they are ours,
// its semantic checks) and one JSON Schema under jsonschema/.
//
// A text passes three steps: syntax (YAML or JSON, one document), structure (JSON
// Schema, strict) and meaning (the kind's own checks). Every step reports all its
// findings as diag.Problem with a field path and, for files, line and column.
//
// A kind has a file of its name, such as virtualservice.go, and limits_virtualservice.go
// for what is accepted with a warning. Files of other names have what several kinds share.
// kind.go and registry.go have the kinds. decode.go has the three steps: syntax.go, yaml.go
// and json.go; structure.go; metadata.go and problems.go. written.go and predicate.go are a
// fast way through them. object.go, stored.go and sealed.go have decoded objects. table.go
// and status.go have columns. openapi.go and reference.go describe the kinds.
package schema

import (
	"slices"
	"strings"

	"github.com/pilot-api/pilot-api/diag"
)

// Kind describes one kind of object. Descriptors are created at start-up, listed by
// Kinds, and never change.
type Kind struct {
	Group   string // "config.istio.io"
	Version string // the version stored, and preferred by clients, "v1alpha2"
	// Served are further versions in which clients read and write objects, the
	// preferred ones first. They have the fields of Version, so a conversion changes
	// only the apiVersion.
	Served []string
	// OldVersions are versions once in use. They are read with a warning and
	// written as Version.
	OldVersions []string
	Kind        string   // "RouteRule"
	Plural      string   // "routerules", as in a URL
	Singular    string   // "routerule"
	Dashed      string   // "route-rule", Pilot's store type; it orders objects in tie-breaks
	ShortNames  []string // "rr"
	// Cluster says that objects of the kind are in no namespace. Their keys have
	// NoNamespace.
	Cluster bool
	// Flat says that objects have the fields of their spec beside the metadata, as the
	// kinds of Kubernetes that have no spec. Such objects concern no proxy, and have no
	// status.
	Flat bool
	// PathNames says that objects may have any name that fits into a path, such as
	// system:view.
	PathNames bool
	// Columns are the kind's own columns in tables, between NAME and AGE.
	Columns []Column
	// Doc is one paragraph on the purpose of the kind.
	Doc string
	// Notes are remarks that the table of fields has no room for; "" for none.
	Notes string

	// selectable are the fields of the spec that a fieldSelector may name.
	selectable []SelectableField
	// private are the top-level text fields of the spec that cannot be read back.
	private []string
	// spec is the type of its specs.
	spec specType
	// check does the semantic checks on a typed spec that already passed the JSON
	// Schema. Field paths start with "spec". The caller fills in object and
	// position.
	check func(spec any) diag.List
	// limits warns of what a typed spec says and no proxy follows; nil if
	// everything is followed.
	limits func(spec any) diag.List
}

// Column is one column of a table. Wide columns are shown only on request.
type Column struct {
	Name        string
	Type        string // OpenAPI type: string, integer, boolean
	Description string
	Wide        bool
	Cell        func(*Object) string
	// Short is Cell with long lists cut off; nil if the column has no list.
	Short func(*Object) string
}

// HasPrivateFields reports whether objects of the kind have fields that cannot be read back,
// such as private keys.
func (k *Kind) HasPrivateFields() bool { return len(k.private) > 0 }

// APIVersion returns "group/version" of the stored version.
func (k *Kind) APIVersion() string { return k.In(k.Version) }

// In returns "group/version" of one of Versions, and the version alone in the core group.
func (k *Kind) In(version string) string {
	if k.Group == "" {
		return version
	}
	return k.Group + "/" + version
}

// Root returns the path of one of Versions: "/apis/group/version", or "/api/version" in the
// core group.
func (k *Kind) Root(version string) string {
	if k.Group == "" {
		return "/api/" + version
	}
	return "/apis/" + k.In(version)
}

// Versions returns all versions in which clients read and write objects, the
// preferred ones first.
func (k *Kind) Versions() []string { return append([]string{k.Version}, k.Served...) }

// VersionIn returns the version that an apiVersion names, if it is one of Versions.
func (k *Kind) VersionIn(apiVersion string) (version string, ok bool) {
	group, version := splitVersion(apiVersion)
	return version, group == k.Group && (version == k.Version || slices.Contains(k.Served, version))
}

// splitVersion splits an apiVersion. In the core group it has only a version.
func splitVersion(apiVersion string) (group, version string) {
	group, version, found := strings.Cut(apiVersion, "/")
	if !found {
		return "", apiVersion
	}
	return group, version
}

// Kinds returns all kinds in the order of CompareKinds.
func Kinds() []*Kind { return kinds }

// MeshKinds returns the kinds that concern proxies. They are what people mean by all kinds:
// roles, bindings and service accounts are asked for by name.
func MeshKinds() []*Kind {
	return slices.DeleteFunc(slices.Clone(kinds), func(k *Kind) bool { return k.Flat })
}

// KindByName finds a kind by its exact kind name.
func KindByName(name string) (*Kind, bool) {
	for _, k := range kinds {
		if k.Kind == name {
			return k, true
		}
	}
	return nil, false
}
