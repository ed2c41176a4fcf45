package main

import (
	"bytes"
	"context"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/pilot-api/pilot-api/client"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

const patched outcome = "patched"

// patchTypes maps the values of --type.
var patchTypes = map[string]types.PatchType{"merge": types.MergePatchType, "json": types.JSONPatchType}

type patchFlags struct {
	text, file, kind string
	output, dryRun   string
}

func newPatch(s *session) *cobra.Command {
	var flags patchFlags
	cmd := &cobra.Command{
		Use:   "patch (KIND NAME | KIND/NAME) (-p PATCH | --patch-file FILE)",
		Short: "Change some fields of an object",
		Long: `Change some fields of an object by a patch in YAML or JSON. A merge patch has the
fields to set, and null for the fields to remove; it replaces lists as a whole. With
--type=json the patch is a list of operations (RFC 6902). The server applies the patch
to the newest state of the object, so concurrent changes of other fields are not lost.`,
		Example: `  # Another timeout for the first route
  istioctl patch virtualservice reviews --type=json \
    -p '[{"op": "replace", "path": "/spec/http/0/timeout", "value": "2s"}]'

  # Set one label, remove another, and see what would come of it
  istioctl patch vs/reviews -p '{metadata: {labels: {team: books, old: null}}}' --dry-run=server -o yaml`,
		ValidArgsFunction: completeName(s),
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return runPatch(cmd.Context(), s, flags, args) }
	cmd.Flags().StringVarP(&flags.text, "patch", "p", "", "the patch")
	cmd.Flags().StringVar(&flags.file, "patch-file", "", "file with the patch")
	cmd.Flags().StringVar(&flags.kind, "type", "merge", "merge or json")
	addDryRun(cmd, &flags.dryRun, `"server": the server checks, and tells what it would do; or "none"`, dryRunNone, dryRunServer)
	addOutput(cmd, &flags.output, writeFormats)
	// The flags exist, so this cannot fail.
	_ = cmd.RegisterFlagCompletionFunc("type", cobra.FixedCompletions([]string{"merge", "json"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func runPatch(ctx context.Context, s *session, flags patchFlags, args []string) error {
	kind, ok := patchTypes[flags.kind]
	if !ok {
		return usagef("--type=%s: want merge or json", flags.kind)
	}
	if err := checkOutput(flags.output, writeFormats); err != nil {
		return err
	}
	key, err := oneObject("patch", s.namespace, args)
	if err != nil {
		return err
	}
	patch, err := flags.read()
	if err != nil {
		return err
	}
	write := writeOptions{output: flags.output, dryRun: flags.dryRun}
	c, err := write.connect(s, s.warnUnknown)
	if err != nil {
		return err
	}
	named, err := nameOnly(key)
	if err != nil {
		return err
	}
	return perform(ctx, s, write, []step{patchStep(c, named, kind, patch)})
}

func patchStep(c *client.Client, named *schema.Object, kind types.PatchType, patch []byte) step {
	return step{object: named, promise: patched, do: func(ctx context.Context) (*schema.Object, outcome, error) {
		before, err := c.Get(ctx, named.Key(), store.ReadOptions{})
		if err != nil {
			return nil, failed, err
		}
		o, err := c.Patch(ctx, named.Key(), kind, patch)
		if err == nil && bytes.Equal(o.JSON(), before.JSON()) {
			return o, unchanged, nil
		}
		return o, patched, err
	}}
}

// read returns the patch as JSON.
func (f patchFlags) read() ([]byte, error) {
	if (f.text == "") == (f.file == "") {
		return nil, usagef("say the patch with -p or --patch-file")
	}
	text, where := []byte(f.text), "-p"
	if f.file != "" {
		var err error
		if text, err = os.ReadFile(f.file); err != nil {
			return nil, err
		}
		where = f.file
	}
	patch, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return nil, usagef("%s: %s", where, strings.TrimPrefix(err.Error(), "error converting YAML to JSON: "))
	}
	if f.kind == "json" && !bytes.HasPrefix(patch, []byte("[")) {
		return nil, usagef(`%s: a patch of --type=json is a list of operations, such as [{"op": "replace", "path": "/spec/precedence", "value": 2}]`, where)
	}
	return patch, nil
}
