package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/cli"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/manifest"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/printer"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/targets"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/writes"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// DeleteOptions are the values of the flags of delete.
type DeleteOptions struct {
	Options
	all            bool
	ignoreNotFound bool
	selector       targets.SelectorFlags
}

// NewDeleteCommand returns the command delete.
func NewDeleteCommand(s *cli.Session) *cobra.Command {
	flags := DeleteOptions{Options: Options{Connect: connectTo(s)}}
	cmd := &cobra.Command{
		Use:   "delete (KIND NAME... | KIND/NAME... | KIND (--all | -l LABELS | --field-selector FIELDS) | -f FILE)",
		Short: "Delete objects",
		Long: `Delete objects by kind and name, all or selected objects of some kinds in a namespace,
or the objects that files name. If somebody else changes a selected object meanwhile,
it is not deleted. Objects of files are deleted in the reverse order of create:
ServiceEntries and WorkloadEntries last. A file with a metadata.resourceVersion deletes
only that version. Separate several kinds by commas; "all" means every kind.`,
		Example: `  # Delete two route rules
  istioctl delete routerule reviews-v2 reviews-v3

  # Delete the objects of a folder, even if some no longer exist
  istioctl delete -f rules/ --ignore-not-found

  # Delete all objects of two kinds in a namespace
  istioctl delete routerules,destinationpolicies --all -n books

  # Delete the objects with a label
  istioctl delete all -l team=reviews`,
		ValidArgsFunction: targets.CompleteNames(s),
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := printer.Check(flags.Output, []string{printer.Name}); err != nil {
			return err
		}
		return flags.Run(cmd.Context(), s, args)
	}
	flags.add(cmd, []string{printer.Name})
	flags.selector.Add(cmd)
	cmd.Flags().BoolVar(&flags.all, "all", false, "delete all objects of the kinds in the namespace")
	cmd.Flags().BoolVar(&flags.ignoreNotFound, "ignore-not-found", false, "treat an object that does not exist as deleted")
	return cmd
}

// Run deletes the objects that the files or arguments name.
func (f DeleteOptions) Run(ctx context.Context, s *cli.Session, args []string) error {
	c, err := f.Connect(f.Client(s.WarnUnknown))
	if err != nil {
		return err
	}
	objects, err := deleteTargets(ctx, s, c, f, args)
	if err != nil {
		return err
	}
	var list []writes.Step
	for _, o := range objects {
		pre := store.Preconditions{}
		if f.selector.Given() || f.files.Given() {
			pre.ResourceVersion = o.Meta.ResourceVersion
		}
		list = append(list, deleteStep(c, o, pre, f.ignoreNotFound))
	}
	return writes.Perform(ctx, s, f.Options.Options, list)
}

func deleteStep(c Writer, o *schema.Object, pre store.Preconditions, ignoreNotFound bool) writes.Step {
	return writes.Step{Object: o, Promise: writes.Deleted, Do: func(ctx context.Context) (*schema.Object, writes.Outcome, error) {
		last, err := c.Delete(ctx, o.Key(), pre)
		switch {
		case ignoreNotFound && errors.Is(err, store.ErrNotFound):
			return o, writes.Absent, nil
		case errors.Is(err, store.ErrNotFound):
			return o, writes.Failed, &store.Error{Kind: store.ErrNotFound, Detail: "not found; --ignore-not-found takes it as deleted"}
		case errors.Is(err, store.ErrConflict):
			return o, writes.Failed, &store.Error{Kind: store.ErrConflict, Detail: "is not the one with resourceVersion " + pre.ResourceVersion +
				"; look at it again, or leave metadata.resourceVersion out to delete it whatever it is"}
		case err == nil && last.Meta.DeletionTimestamp != nil:
			return o, writes.Deleting, nil
		}
		return o, writes.Deleted, err
	}}
}

// deleteTargets returns the objects to delete, in order.
func deleteTargets(ctx context.Context, s *cli.Session, c cli.Pager, flags DeleteOptions, args []string) ([]*schema.Object, error) {
	if flags.files.Given() {
		if len(args) > 0 || flags.all || flags.selector.Given() {
			return nil, cli.Usagef("name objects with -f or as arguments, not both")
		}
		return deleteTargetsByFile(ctx, s, flags.files)
	}
	sel, err := targets.Parse(args)
	switch {
	case err != nil:
		return nil, err
	case (flags.all || flags.selector.Given()) && len(sel.Targets) > 0:
		return nil, cli.Usagef("--all, -l and --field-selector take kinds only, no names")
	case flags.all && flags.selector.Given():
		return nil, cli.Usagef("delete either --all or what is selected")
	case flags.all || flags.selector.Given():
		return deleteTargetsByKind(ctx, s, c, flags, sel)
	case len(sel.Targets) == 0:
		return nil, cli.Usagef("say which objects by name, by labels with -l, or all of them with --all")
	}
	return deleteTargetsByName(s, sel)
}

// deleteTargetsByFile returns each object once, although a folder of alternatives has
// several forms of it. A form with a version is the one that is meant.
func deleteTargetsByFile(ctx context.Context, s *cli.Session, files manifest.Files) ([]*schema.Object, error) {
	list, err := manifest.Read(ctx, s, files, manifest.Named("delete"))
	if err != nil {
		return nil, err
	}
	manifest.ReferencedFirst(list)
	slices.Reverse(list)
	var objects []*schema.Object
	at := map[schema.Key]int{}
	for _, m := range list {
		i, known := at[m.Key()]
		switch {
		case !known:
			at[m.Key()] = len(objects)
			objects = append(objects, m.Object)
		case objects[i].Meta.ResourceVersion == "":
			objects[i] = m.Object
		}
	}
	return objects, nil
}

func deleteTargetsByKind(ctx context.Context, s *cli.Session, c cli.Pager, flags DeleteOptions, sel targets.Selection) ([]*schema.Object, error) {
	selected, err := flags.selector.Of(sel.Kinds)
	if err != nil {
		return nil, err
	}
	list, err := cli.List(ctx, s, c, selected.Among(sel.Kinds, s.Namespace), cli.PageSize)
	if err != nil {
		return nil, s.Fail(ctx, err)
	}
	if len(list.Items) == 0 {
		fmt.Fprintln(s.Stderr, sel.Nothing(s.Namespace))
	}
	return list.Objects().Items, nil
}

func deleteTargetsByName(s *cli.Session, sel targets.Selection) ([]*schema.Object, error) {
	objects := make([]*schema.Object, len(sel.Targets))
	for i, t := range sel.Targets {
		o, err := targets.NameOnly(t.In(s.Namespace))
		if err != nil {
			return nil, err
		}
		objects[i] = o
	}
	return objects, nil
}
