package main

import "github.com/pilot-api/pilot-api/schema"

// label returns the name of an object in result lines.
func label(o *schema.Object) string {
	name := o.Meta.Name
	if name == "" {
		name = o.Meta.GenerateName + "(generated)"
	}
	return o.Kind.Singular + "/" + name
}

// where returns the namespace for a result line, "" for the default namespace.
func where(o *schema.Object) string {
	if o.Meta.Namespace == schema.DefaultNamespace {
		return ""
	}
	return " in namespace " + o.Meta.Namespace
}
