package export

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/client"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/cli"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/printer"
	"github.com/pilot-api/pilot-api/schema"
)

// Options has the flags of export.
type Options struct {
	// Connect connects to the server, whose warnings go to warn.
	Connect func(warn func(string)) (cli.Pager, error)

	output         string
	allNamespaces  bool
	includeSecrets bool
}

// NewCommand returns the command export.
func NewCommand(s *cli.Session) *cobra.Command {
	flags := Options{Connect: func(warn func(string)) (cli.Pager, error) { return s.Connect(warn) }}
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Write objects to files that can be applied again",
		Long: `Write all objects of a namespace, or of all namespaces with -A, as of one revision of
the store. 'istioctl apply' accepts the result. It has no fields that the server sets
and a stable order, so it is suitable for version control. Objects come before those
that refer to them.

-o names a file, or a folder if it ends in a slash or is a folder. In a folder each
object is a file NAMESPACE/PLURAL/NAME.yaml. Such files in the exported namespaces are
deleted if their object no longer exists. Without -o the objects are printed.

A file is replaced as a whole. This includes a symbolic link, whose target is not
changed, so an export never writes outside its folder. A device or named pipe, such as
/dev/stdout, is written to; in a folder it is an error.

No server returns private keys. A Secret with a private key is left out. With
--include-secrets it has a placeholder instead of the key. A server that already has
the key accepts the placeholder, and any other server refuses it; use 'pilot-api
snapshot' to copy keys. An object that is being deleted is left out.

If the server has an object that it cannot read, nothing is written, because the
export would be incomplete.`,
		Example: `  # Copy all objects to another server through one file
  istioctl export -A -o backup.yaml
  istioctl apply -f backup.yaml --server other:8080

  # Keep all objects in a folder under version control
  istioctl export -A --include-secrets -o mesh/
  git -C mesh add --all && git -C mesh commit -m "the mesh as it is"

  # Print the objects of one namespace
  istioctl export -n books`,
		Args: cli.NoArgs,
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return flags.Run(cmd.Context(), s) }
	cmd.Flags().StringVarP(&flags.output, "output", "o", "", "file or folder to write; the default is standard output")
	cmd.Flags().BoolVarP(&flags.allNamespaces, "all-namespaces", "A", false, "objects of all namespaces")
	cmd.Flags().BoolVar(&flags.includeSecrets, "include-secrets", false, "write Secrets with private keys too, with placeholders for the keys")
	return cmd
}

// Run writes the objects to files.
func (o Options) Run(ctx context.Context, s *cli.Session) error {
	if o.output == printer.YAML || o.output == printer.JSON {
		return cli.Usagef("-o %s: names a file here, not a format: the output is always YAML; say -o ./%s if it is a file", o.output, o.output)
	}
	namespace := s.Namespace
	if o.allNamespaces {
		if s.NamespaceGiven {
			return cli.Usagef("say either -n or -A")
		}
		namespace = ""
	}
	var leftOut int
	c, err := o.Connect(func(text string) { leftOut++; s.Warn(text) })
	if err != nil {
		return err
	}
	list, err := cli.List(ctx, s, c, client.Selection{Namespace: namespace}, cli.PageSize)
	if err != nil {
		return s.Fail(ctx, err)
	}
	if leftOut > 0 {
		return errors.New("the server cannot give all objects (see the warnings), and nothing was written: mend or delete those, and export again")
	}
	objects := exported(s, list.Objects().Items, o.includeSecrets)
	exportOrder(objects)
	if err := writeExport(s, o.output, namespace, objects); err != nil {
		return err
	}
	fmt.Fprintf(s.Stderr, "%s%s as of revision %d\n", cli.Count(len(objects), "object"), ofNamespace(namespace), list.Revision)
	return nil
}

func ofNamespace(namespace string) string {
	if namespace == "" {
		return " of all namespaces"
	}
	return " of namespace " + namespace
}

// exported leaves out objects that cannot be applied, and reports them.
func exported(s *cli.Session, objects []*schema.Object, secrets bool) []*schema.Object {
	var withKeys, deleted int
	var out []*schema.Object
	for _, o := range objects {
		switch {
		case o.Meta.DeletionTimestamp != nil:
			deleted++
		case hasKey(o) && !secrets:
			withKeys++
		default:
			out = append(out, o)
		}
	}
	if withKeys > 0 {
		fmt.Fprintf(s.Stderr, "%s with a private key left out; --include-secrets writes marks for the keys\n", cli.Count(withKeys, "Secret"))
	}
	if deleted > 0 {
		fmt.Fprintf(s.Stderr, "%s left out: being deleted\n", cli.Count(deleted, "object"))
	}
	return out
}

// hasKey reports whether an object is a Secret with a private key, for which the server
// shows a mark.
func hasKey(o *schema.Object) bool {
	spec, err := o.Spec()
	secret, ok := spec.(*schema.Secret)
	return err == nil && ok && !secret.PrivateKey.None()
}

// exportedFirst lists the kinds that others refer to. All other kinds follow them.
var exportedFirst = []string{"ServiceEntry", "WorkloadEntry", "Secret", "Gateway", "DestinationRule", "DestinationPolicy"}

// exportOrder sorts referenced kinds first, then by kind, namespace and name.
func exportOrder(objects []*schema.Object) {
	rank := make(map[string]int)
	for i, kind := range schema.Kinds() {
		rank[kind.Kind] = len(exportedFirst) + i
	}
	for i, kind := range exportedFirst {
		rank[kind] = i
	}
	slices.SortFunc(objects, func(a, b *schema.Object) int {
		return cmp.Or(
			rank[a.Kind.Kind]-rank[b.Kind.Kind],
			strings.Compare(a.Meta.Namespace, b.Meta.Namespace),
			strings.Compare(a.Meta.Name, b.Meta.Name),
		)
	})
}

// exportText returns an object without the fields that a server sets.
func exportText(o *schema.Object) ([]byte, error) {
	bare, err := o.WithMeta(metav1.ObjectMeta{
		Namespace: o.Meta.Namespace, Name: o.Meta.Name,
		Labels: o.Meta.Labels, Annotations: o.Meta.Annotations,
		Finalizers: o.Meta.Finalizers, OwnerReferences: o.Meta.OwnerReferences,
	})
	if err != nil {
		return nil, err
	}
	text, err := printer.ToYAML(bare.JSON())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.Key(), err)
	}
	return text, nil
}

// exportFile returns all objects as one text.
func exportFile(objects []*schema.Object) ([]byte, error) {
	var file bytes.Buffer
	for i, o := range objects {
		text, err := exportText(o)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			file.WriteString("---\n")
		}
		file.Write(text)
	}
	return file.Bytes(), nil
}
