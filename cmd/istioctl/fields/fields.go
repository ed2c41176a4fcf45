package fields

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/cli"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/targets"
	"github.com/pilot-api/pilot-api/schema"
)

// Options has the flags of explain.
type Options struct{ recursive bool }

// NewCommand returns the command explain.
func NewCommand(s *cli.Session) *cobra.Command {
	var flags Options
	cmd := &cobra.Command{
		Use:   "explain KIND[.FIELD...]",
		Short: "Show the meaning of the fields of a kind",
		Long: `Show the meaning of a kind or of one of its fields, and the fields that it has. The
information comes from the schemas that are used to check objects. istioctl asks no
server.`,
		Example: `  # The fields of a VirtualService
  istioctl explain virtualservice.spec

  # All fields of a route, at every level
  istioctl explain vs.spec.http.route --recursive`,
		Args: cli.ArgsOr(cobra.ExactArgs(1), "say which kind or field: istioctl explain KIND[.FIELD...]"),
		ValidArgsFunction: func(_ *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
			return completeFields(args, toComplete), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
		},
	}
	cmd.RunE = func(_ *cobra.Command, args []string) error { return flags.Run(s.Stdout, args[0]) }
	cmd.Flags().BoolVar(&flags.recursive, "recursive", false, "show the names of all fields below")
	return cmd
}

// Run explains KIND.FIELD.FIELD.
func (o Options) Run(w io.Writer, what string) error {
	path := strings.Split(what, ".")
	kind, err := targets.ParseKind(path[0])
	if err != nil {
		return err
	}
	f, err := fieldAt(kind, path[1:])
	if err != nil {
		return err
	}
	explainField(w, kind, f, o.recursive)
	return nil
}

// field is a part of a kind, with its OpenAPI schema.
type field struct {
	name     string
	schema   map[string]any
	required bool
}

// whole returns a kind as one field.
func whole(kind *schema.Kind) field {
	return field{name: kind.Kind, schema: kind.ObjectOpenAPI(kind.Versions()...)}
}

// fieldAt returns the field at a path, which omits the items of lists and maps.
func fieldAt(kind *schema.Kind, path []string) (field, error) {
	f := whole(kind)
	for i, name := range path {
		next := f.fields()
		at := slices.IndexFunc(next, func(f field) bool { return f.name == name })
		if at < 0 {
			var names []string
			for _, n := range next {
				names = append(names, n.name)
			}
			above := strings.Join(append([]string{kind.Singular}, path[:i]...), ".")
			if len(names) == 0 {
				return f, cli.Usagef("%s has no fields", above)
			}
			return f, cli.Usagef("%s has no field %q; %s", above, name, schema.Suggest(name, names, "there are"))
		}
		f = next[at]
	}
	return f, nil
}

// inside returns the schema that has the fields: that of a list's items or a map's
// values.
func (f field) inside() map[string]any {
	s := f.schema
	for {
		next, ok := s["items"].(map[string]any)
		if !ok {
			if next, ok = s["additionalProperties"].(map[string]any); !ok {
				return s
			}
		}
		s = next
	}
}

// fields returns the fields below f, sorted by name.
func (f field) fields() (out []field) {
	inside := f.inside()
	properties, _ := inside["properties"].(map[string]any)
	required, _ := inside["required"].([]string)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		s, _ := properties[name].(map[string]any)
		out = append(out, field{name, s, slices.Contains(required, name)})
	}
	return out
}

// typeOf returns the type of a schema in kubectl's terms.
func typeOf(s map[string]any) string {
	if items, ok := s["items"].(map[string]any); ok {
		return "[]" + typeOf(items)
	}
	if values, ok := s["additionalProperties"].(map[string]any); ok {
		return "map[string]" + typeOf(values)
	}
	if name, _ := s["type"].(string); name != "object" {
		return name
	}
	return "Object"
}

func (f field) line() string {
	line := f.name + "\t<" + typeOf(f.schema) + ">"
	if f.required {
		line += " -required-"
	}
	return line
}

func explainField(w io.Writer, kind *schema.Kind, f field, recursive bool) {
	fmt.Fprintf(w, "GROUP:      %s\nKIND:       %s\nVERSION:    %s\n\n", kind.Group, kind.Kind, kind.Version)
	if f.name != kind.Kind {
		fmt.Fprintf(w, "FIELD: %s\n\n", strings.ReplaceAll(f.line(), "\t", " "))
	}
	fmt.Fprintf(w, "DESCRIPTION:\n%s\n", wrapped(f.schema, "    "))
	fields := f.fields()
	if len(fields) == 0 {
		return
	}
	fmt.Fprintln(w, "FIELDS:")
	if recursive {
		showNames(w, fields, "  ")
		return
	}
	for _, f := range fields {
		fmt.Fprintf(w, "  %s\n%s\n", f.line(), wrapped(f.schema, "    "))
	}
}

func showNames(w io.Writer, fields []field, indent string) {
	for _, f := range fields {
		fmt.Fprintf(w, "%s%s\n", indent, f.line())
		showNames(w, f.fields(), indent+"  ")
	}
}

// textWidth is the width of text lines for people.
const textWidth = 80

// wrapped returns the description and the allowed values of a schema, wrapped.
func wrapped(s map[string]any, indent string) string {
	text, _ := s["description"].(string)
	if names, ok := s["enum"].([]string); ok {
		text += " One of " + strings.Join(names, ", ") + "."
	}
	var out strings.Builder
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && len(indent)+len(line)+1+len(word) > textWidth {
			fmt.Fprintf(&out, "%s%s\n", indent, line)
			line = ""
		}
		line = strings.TrimSpace(line + " " + word)
	}
	if line != "" {
		fmt.Fprintf(&out, "%s%s\n", indent, line)
	}
	return out.String()
}

// completeFields completes a kind and the path of a field.
func completeFields(args []string, toComplete string) (out []string) {
	path := strings.Split(toComplete, ".")
	if len(args) > 0 {
		return nil
	}
	if len(path) == 1 {
		for _, kind := range schema.Kinds() {
			if strings.HasPrefix(kind.Singular, toComplete) {
				out = append(out, kind.Singular)
			}
		}
		return out
	}
	above := path[:len(path)-1]
	kind, ok := schema.Lookup(above[0])
	if !ok {
		return nil
	}
	f, err := fieldAt(kind, above[1:])
	if err != nil {
		return nil
	}
	for _, next := range f.fields() {
		if strings.HasPrefix(next.name, path[len(path)-1]) {
			out = append(out, strings.Join(above, ".")+"."+next.name)
		}
	}
	return out
}
