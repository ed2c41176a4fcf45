package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/pilot-api/pilot-api/schema"
)

// written is an object as written in a case's file.
type written struct {
	Kind     string
	Metadata metav1.ObjectMeta
	Spec     map[string]any
}

// readObjects reads the config objects of Pilot 0.7.1 in a file. refused says why
// validation would refuse some of them.
func readObjects(file, namespace string) (objects []*schema.Object, refused, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, nil, err
	}
	for _, doc := range schema.Split(text, file) {
		var o written
		if err := yaml.Unmarshal(doc.Text, &o); err != nil {
			return nil, nil, fmt.Errorf("line %d: %w", doc.Line, err)
		}
		obj, invalid, err := o.object(namespace)
		if err != nil {
			return nil, nil, err
		}
		objects, refused = append(objects, obj), errors.Join(refused, invalid)
	}
	return objects, refused, nil
}

// object returns the current form of the object. The v1alpha2 kinds are unchanged; those
// of v1alpha3 are converted to today's form. An object that Pilot accepted and validation
// refuses, such as one with an address block for a host, is returned as an older store
// may contain it.
func (o *written) object(namespace string) (obj *schema.Object, refused, err error) {
	if o.Metadata.Namespace == "" {
		o.Metadata.Namespace = namespace
	}
	camelCase(o.Spec)
	if modernise, old := modern[o.Kind]; old {
		modernise(o)
	}
	obj, refused = validObject(o.Kind, o.Metadata, o.Spec)
	if refused != nil {
		obj, err = anyObject(o.Kind, o.Metadata, o.Spec)
	}
	return obj, refused, err
}

// anyObject returns an object that need not be valid.
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

// ownNames are the fields whose keys the author chooses. An endpoint's ports are among
// them; a service's ports are a list.
var ownNames = []string{"labels", "sourceLabels", "headers", "appendHeaders", "selector", "ports"}

var underscore = regexp.MustCompile(`_[a-z0-9]`)

// camelCase renames the fields of a spec to the proto spelling.
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
			if _, keyed := value.(map[string]any); !keyed || !slices.Contains(ownNames, camel) {
				camelCase(value)
			}
		}
	}
}
