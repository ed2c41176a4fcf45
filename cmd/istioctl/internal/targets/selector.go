package targets

import (
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/pilot-api/pilot-api/client"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/cli"
	"github.com/pilot-api/pilot-api/schema"
)

// SelectorFlags are the flags that select objects of a kind.
type SelectorFlags struct{ labels, fields string }

// Add adds the flags to a command.
func (f *SelectorFlags) Add(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&f.labels, "selector", "l", "", "only objects with these labels, such as team=reviews,stage!=test")
	cmd.Flags().StringVar(&f.fields, "field-selector", "", "only objects with these values, such as spec.hosts=reviews,metadata.name!=a; the fields are those of the API")
}

// Given reports whether anything is selected.
func (f *SelectorFlags) Given() bool { return f.labels != "" || f.fields != "" }

// Of returns the selector for objects of the given kinds.
func (f *SelectorFlags) Of(kinds []*schema.Kind) (Selector, error) {
	out := Selector{asked: *f, fields: map[*schema.Kind]schema.FieldSelector{}}
	var err error
	if out.labels, err = labels.Parse(f.labels); err != nil {
		return out, cli.Usagef("-l %s: %w", f.labels, err)
	}
	if f.labels != "" && out.labels.Empty() {
		return out, cli.Usagef("-l %q has no condition: it would select all objects", f.labels)
	}
	for _, kind := range kinds {
		if out.fields[kind], err = schema.ParseFieldSelector(kind, f.fields); err != nil {
			return out, cli.Usagef("--field-selector %s: of %s: %w", f.fields, kind.Plural, err)
		}
		if f.fields != "" && len(out.fields[kind]) == 0 {
			return out, cli.Usagef("--field-selector %q has no condition: it would select all objects", f.fields)
		}
	}
	return out, nil
}

// Selector selects objects of each kind.
type Selector struct {
	asked  SelectorFlags
	labels labels.Selector
	fields map[*schema.Kind]schema.FieldSelector
}

// Among returns the selection for the server.
func (s Selector) Among(kinds []*schema.Kind, namespace string) client.Selection {
	return client.Selection{Kinds: kinds, Namespace: namespace, Labels: s.asked.labels, Fields: s.asked.fields}
}

// Matches reports whether an object is selected.
func (s Selector) Matches(o *schema.Object) bool {
	return s.labels.Matches(labels.Set(o.Meta.Labels)) && s.fields[o.Kind].Matches(o)
}

// AddFlags adds the flags of verbs that read: a selector, and all namespaces.
func AddFlags(cmd *cobra.Command, selector *SelectorFlags, allNamespaces *bool) {
	selector.Add(cmd)
	cmd.Flags().BoolVarP(allNamespaces, "all-namespaces", "A", false, "objects of all namespaces")
}
