package main

import (
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/pilot-api/pilot-api/client"
	"github.com/pilot-api/pilot-api/schema"
)

// selectorFlags say which objects of a kind are selected.
type selectorFlags struct{ labels, fields string }

func (f *selectorFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&f.labels, "selector", "l", "", "only objects with these labels, such as team=reviews,stage!=test")
	cmd.Flags().StringVar(&f.fields, "field-selector", "", "only objects with these values, such as spec.hosts=reviews,metadata.name!=a; the fields are those of the API")
}

func (f *selectorFlags) given() bool { return f.labels != "" || f.fields != "" }

// of returns the selector for objects of the given kinds.
func (f *selectorFlags) of(kinds []*schema.Kind) (selector, error) {
	out := selector{asked: *f, fields: map[*schema.Kind]schema.FieldSelector{}}
	var err error
	if out.labels, err = labels.Parse(f.labels); err != nil {
		return out, usagef("-l %s: %w", f.labels, err)
	}
	for _, kind := range kinds {
		if out.fields[kind], err = schema.ParseFieldSelector(kind, f.fields); err != nil {
			return out, usagef("--field-selector %s: of %s: %w", f.fields, kind.Plural, err)
		}
	}
	return out, nil
}

// selector selects objects of each kind.
type selector struct {
	asked  selectorFlags
	labels labels.Selector
	fields map[*schema.Kind]schema.FieldSelector
}

// among returns the selection for the server.
func (s selector) among(kinds []*schema.Kind, namespace string) client.Selection {
	return client.Selection{Kinds: kinds, Namespace: namespace, Labels: s.asked.labels, Fields: s.asked.fields}
}

func (s selector) matches(o *schema.Object) bool {
	return s.labels.Matches(labels.Set(o.Meta.Labels)) && s.fields[o.Kind].Matches(o)
}

func addSelection(cmd *cobra.Command, selector *selectorFlags, allNamespaces *bool) {
	selector.add(cmd)
	cmd.Flags().BoolVarP(allNamespaces, "all-namespaces", "A", false, "objects of all namespaces")
}
