package printer

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/pilot-api/pilot-api/client"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/cli"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// Output formats without a parameter. The table is for people and is the default of
// verbs that read.
const (
	Table = "table"
	Wide  = "wide"
	YAML  = "yaml"
	JSON  = "json"
	Name  = "name"
)

var (
	ReadFormats  = []string{Table, Wide, YAML, JSON, Name, "jsonpath=", "custom-columns="}
	WriteFormats = []string{YAML, JSON, Name, "jsonpath=", "custom-columns="}
)

// AddFlag adds the flag --output to a command.
func AddFlag(cmd *cobra.Command, value *string, formats []string) {
	text := strings.NewReplacer("jsonpath=", "jsonpath=TEMPLATE", "custom-columns=", "custom-columns=HEADER:PATH,…").
		Replace(strings.Join(formats, ", "))
	cmd.Flags().StringVarP(value, "output", "o", "", "output format: "+text)
	// The flag exists, so this cannot fail.
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoSpace))
}

// Check refuses an unknown format before anything is done.
func Check(format string, formats []string) error {
	if format == "" {
		return nil
	}
	for _, f := range formats {
		if format == f && !strings.HasSuffix(f, "=") {
			return nil
		}
		if strings.HasSuffix(f, "=") && strings.HasPrefix(format, f) {
			_, err := New(format)
			return err
		}
	}
	return cli.Usagef("there is no output format %q; allowed: %s", format, strings.Join(formats, ", "))
}

// IsTable reports whether a format is a table, which is the default.
func IsTable(format string) bool {
	return format == "" || format == Table || format == Wide
}

// New returns a printer of whole objects in any format except tables. As in
// kubectl, YAML and JSON omit managedFields.
func New(format string) (printers.ResourcePrinter, error) {
	name, parameter, _ := strings.Cut(format, "=")
	switch name {
	case YAML:
		return &printers.OmitManagedFieldsPrinter{Delegate: &yamlPrinter{}}, nil
	case JSON:
		return &printers.OmitManagedFieldsPrinter{Delegate: &printers.JSONPrinter{}}, nil
	case Name:
		return &namePrinter{printers.NamePrinter{ShortOutput: true}}, nil
	case "jsonpath":
		return newJSONPath(parameter)
	case "custom-columns":
		return newCustomColumns(parameter)
	}
	return nil, cli.Usagef("there is no output format %q", format)
}

// WriteDocument prints a document.
func WriteDocument(w io.Writer, format string, document any) error {
	text, err := Encode(format, document)
	if err == nil {
		_, err = io.WriteString(w, text)
	}
	return err
}

// Encode returns a value that is not an object as JSON or YAML.
func Encode(format string, v any) (string, error) {
	if format == YAML {
		text, err := MarshalYAML(v)
		return string(text), err
	}
	text, err := json.MarshalIndent(v, "", "  ")
	// Invalid UTF-8, which a raw message may contain, decodes to this character.
	return strings.ToValidUTF8(string(text), "\ufffd") + "\n", err
}

// Generic returns an object in the form that the printers accept.
func Generic(o *schema.Object) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(o.JSON()); err != nil {
		return nil, fmt.Errorf("%s: %w", o.Key(), err)
	}
	return u, nil
}

// GenericWithStatus is like Generic, with the status.
func GenericWithStatus(o client.ObjectWithStatus) (*unstructured.Unstructured, error) {
	u, err := Generic(o.Object)
	if err != nil || len(o.Raw) == 0 {
		return u, err
	}
	var status map[string]any
	if err := utiljson.Unmarshal(o.Raw, &status); err != nil {
		return nil, fmt.Errorf("status of %s: %w", o.Key(), err)
	}
	u.Object["status"] = status
	return u, nil
}

// genericList returns several objects as a v1 List, as in kubectl.
func genericList(objects []client.ObjectWithStatus) (*unstructured.UnstructuredList, error) {
	list := &unstructured.UnstructuredList{Object: map[string]any{
		"apiVersion": "v1", "kind": "List", "metadata": map[string]any{"resourceVersion": ""},
	}}
	for _, o := range objects {
		u, err := GenericWithStatus(o)
		if err != nil {
			return nil, err
		}
		list.Items = append(list.Items, *u)
	}
	return list, nil
}

// PrintObjects prints a single object, or any number of them as a List.
func PrintObjects(w io.Writer, p printers.ResourcePrinter, objects []client.ObjectWithStatus, alone bool) error {
	if alone {
		u, err := GenericWithStatus(objects[0])
		if err != nil {
			return err
		}
		return p.PrintObj(u, w)
	}
	list, err := genericList(objects)
	if err != nil {
		return err
	}
	return p.PrintObj(list, w)
}

// PrintObject prints an object without its status.
func PrintObject(w io.Writer, p printers.ResourcePrinter, o *schema.Object) error {
	u, err := Generic(o)
	if err != nil {
		return err
	}
	return p.PrintObj(u, w)
}

// PrintEvent prints a change as a document {type, object}. Formats that cannot express
// that print the object alone.
func PrintEvent(w io.Writer, format string, p printers.ResourcePrinter, e store.Event) error {
	u, err := Generic(e.Object)
	if err != nil {
		return err
	}
	if format == YAML || format == JSON {
		u.SetManagedFields(nil)
		event := &metav1.WatchEvent{Type: string(e.Type), Object: runtime.RawExtension{Object: u}}
		return p.PrintObj(event, w)
	}
	return p.PrintObj(u, w)
}

// None is the text for an empty value, as in kubectl.
const None = "<none>"

// DocumentFormats are those of verbs that show a table or a document.
var DocumentFormats = []string{Table, YAML, JSON}
