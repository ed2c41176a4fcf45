package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/schema"
)

// written is an object as a case's file has it.
type written struct {
	Kind     string
	Metadata metav1.ObjectMeta
	Spec     map[string]any
}

// readObject reads a config object of Pilot 0.7.1. The v1alpha2 kinds are
// what they were; those of v1alpha3 are written as people do it today. What
// Pilot took and validation refuses, such as a block of addresses for a host,
// is an object as it may be in a store from older times; refused says why.
func readObject(file, namespace string) (obj *schema.Object, refused, err error) {
	var o written
	if err := readYAML(file, &o); err != nil {
		return nil, nil, err
	}
	if o.Metadata.Namespace == "" {
		o.Metadata.Namespace = namespace
	}
	camelCase(o.Spec)
	if modernise, old := modern[o.Kind]; old {
		modernise(&o)
	}
	obj, refused = validObject(o.Kind, o.Metadata, o.Spec)
	if refused != nil {
		obj, err = anyObject(o.Kind, o.Metadata, o.Spec)
	}
	return obj, refused, err
}

// anyObject need not be valid.
func anyObject(kind string, meta metav1.ObjectMeta, spec any) (*schema.Object, error) {
	k, _ := schema.KindByName(kind)
	if k == nil {
		return nil, fmt.Errorf("there is no kind %s", kind)
	}
	text, err := json.Marshal(spec)
	if err != nil {
		return nil, err
	}
	return schema.New(k, meta, text)
}

// ownNames are the fields whose keys are the author's own words.
var ownNames = []string{"labels", "sourceLabels", "headers", "appendHeaders"}

var underscore = regexp.MustCompile(`_[a-z0-9]`)

// camelCase respells the fields of a spec in the proto spelling.
func camelCase(v any) {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			camelCase(item)
		}
	case map[string]any:
		for _, name := range slices.Collect(maps.Keys(v)) {
			value := v[name]
			camel := underscore.ReplaceAllStringFunc(name, func(s string) string { return strings.ToUpper(s[1:]) })
			rename(v, name, camel)
			if !slices.Contains(ownNames, camel) {
				camelCase(value)
			}
		}
	}
}
