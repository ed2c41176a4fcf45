package edit

import (
	"bytes"
	"context"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/pilot-api/pilot-api/client"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/cli"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/printer"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/targets"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/writes"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

const patched writes.Outcome = "patched"

// patchTypes maps the values of --type.
var patchTypes = map[string]types.PatchType{"merge": types.MergePatchType, "json": types.JSONPatchType}

// Patcher reads an object, and patches it.
type Patcher interface {
	Get(ctx context.Context, key schema.Key, opts store.ReadOptions) (*schema.Object, error)
	Patch(ctx context.Context, key schema.Key, kind types.PatchType, patch []byte) (*schema.Object, error)
}

// PatchOptions has the flags of patch.
type PatchOptions struct {
	// Connect connects to the server.
	Connect func(client.Options) (Patcher, error)

	writes.Options
	text, file, kind string
}

// NewPatchCommand returns the command patch.
func NewPatchCommand(s *cli.Session) *cobra.Command {
	flags := PatchOptions{Connect: func(as client.Options) (Patcher, error) { return s.ConnectWith(as) }}
	cmd := &cobra.Command{
		Use:   "patch (KIND NAME | KIND/NAME) (-p PATCH | --patch-file FILE)",
		Short: "Change some fields of an object",
		Long: `Change some fields of an object by a patch in YAML or JSON. A merge patch has the
fields to set, and null for the fields to remove; it replaces lists as a whole. With
--type=json the patch is a list of operations (RFC 6902). The server applies the patch
to the newest state of the object, so concurrent changes of other fields are not lost.`,
		Example: `  # Set another timeout for the first route
  istioctl patch virtualservice reviews --type=json \
    -p '[{"op": "replace", "path": "/spec/http/0/timeout", "value": "2s"}]'

  # See the result of setting one label and removing another
  istioctl patch vs/reviews -p '{metadata: {labels: {team: books, old: null}}}' --dry-run=server -o yaml`,
		ValidArgsFunction: targets.CompleteName(s),
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return flags.Run(cmd.Context(), s, args) }
	cmd.Flags().StringVarP(&flags.text, "patch", "p", "", "the patch")
	cmd.Flags().StringVar(&flags.file, "patch-file", "", "file with the patch, or - for standard input")
	cmd.Flags().StringVar(&flags.kind, "type", "merge", "merge or json")
	writes.AddDryRun(cmd, &flags.DryRun, `"server": the server checks, and reports what it would do; or "none"`, writes.DryRunNone, writes.DryRunServer)
	printer.AddFlag(cmd, &flags.Output, printer.WriteFormats)
	// The flags exist, so this cannot fail.
	_ = cmd.RegisterFlagCompletionFunc("type", cobra.FixedCompletions([]string{"merge", "json"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// Run patches the object that the arguments name.
func (o PatchOptions) Run(ctx context.Context, s *cli.Session, args []string) error {
	kind, ok := patchTypes[o.kind]
	if !ok {
		return cli.Usagef("--type=%s: want merge or json", o.kind)
	}
	if err := printer.Check(o.Output, printer.WriteFormats); err != nil {
		return err
	}
	key, err := targets.One("patch", s.Namespace, args)
	if err != nil {
		return err
	}
	patch, err := o.read(ctx, s)
	if err != nil {
		return err
	}
	c, err := o.Connect(o.Client(s.WarnUnknown))
	if err != nil {
		return err
	}
	named, err := targets.NameOnly(key)
	if err != nil {
		return err
	}
	return writes.Perform(ctx, s, o.Options, []writes.Step{patchStep(c, named, kind, patch)})
}

func patchStep(c Patcher, named *schema.Object, kind types.PatchType, patch []byte) writes.Step {
	return writes.Step{Object: named, Promise: patched, Do: func(ctx context.Context) (*schema.Object, writes.Outcome, error) {
		before, err := c.Get(ctx, named.Key(), store.ReadOptions{})
		if err != nil {
			return nil, writes.Failed, err
		}
		o, err := c.Patch(ctx, named.Key(), kind, patch)
		if err == nil && bytes.Equal(o.JSON(), before.JSON()) {
			return o, writes.Unchanged, nil
		}
		return o, patched, err
	}}
}

// read returns the patch as JSON.
func (f PatchOptions) read(ctx context.Context, s *cli.Session) ([]byte, error) {
	if (f.text == "") == (f.file == "") {
		return nil, cli.Usagef("say the patch with -p or --patch-file")
	}
	text, where := []byte(f.text), "-p"
	if f.file != "" {
		var err error
		if text, err = s.ReadFile(ctx, f.file); err != nil {
			return nil, err
		}
		where = "--patch-file " + f.file
	}
	patch, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return nil, cli.Usagef("%s: %s", where, strings.TrimPrefix(err.Error(), "error converting YAML to JSON: "))
	}
	if f.kind == "json" && !bytes.HasPrefix(patch, []byte("[")) {
		return nil, cli.Usagef(`%s: a patch of --type=json is a list of operations, such as [{"op": "replace", "path": "/spec/precedence", "value": 2}]`, where)
	}
	return patch, nil
}
