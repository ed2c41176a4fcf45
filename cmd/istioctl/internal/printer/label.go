package printer

import (
	"github.com/pilot-api/pilot-api/internal/terminal"
	"github.com/pilot-api/pilot-api/schema"
)

// Label returns the name of an object in result lines, on one line.
func Label(o *schema.Object) string {
	name := o.Meta.Name
	if name == "" {
		name = o.Meta.GenerateName + "(generated)"
	}
	return o.Kind.Singular + "/" + terminal.Line(name)
}

// Where returns the namespace for a result line, "" for the default namespace and for an
// object without a namespace.
func Where(o *schema.Object) string {
	if o.Kind.Cluster || o.Meta.Namespace == schema.DefaultNamespace {
		return ""
	}
	return " in namespace " + o.Meta.Namespace
}
