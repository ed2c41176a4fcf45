package apply

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"strconv"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/cli"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/manifest"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/printer"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/writes"
	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// ownerLabel names the set of files that an object comes from.
const ownerLabel = "registry.istio.io/owner"

// atomicFlags make an apply one transaction.
type atomicFlags struct {
	atomic   bool
	prune    bool
	owner    string
	selector pruneSelector
}

func (f *atomicFlags) add(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.atomic, "atomic", false, "apply all objects in one transaction, or none of them")
	cmd.Flags().BoolVar(&f.prune, "prune", false, "with --owner or -l: also delete the objects that these select and that are no longer in the files, in the same transaction; implies --atomic")
	cmd.Flags().VarP(&f.selector, "selector", "l", "with --prune: delete only objects with these labels, such as team=shop; all objects in the files must have them")
	cmd.Flags().StringVar(&f.owner, "owner", "", "label the objects "+ownerLabel+"=OWNER, and change no object of another owner; implies --atomic")
}

func (f *atomicFlags) given() bool {
	return f.atomic || f.prune || f.owner != "" || f.selector.Selector != nil
}

func (f *atomicFlags) check(dryRun string) error {
	switch {
	case f.prune && f.owner == "" && f.selector.Selector == nil:
		return cli.Usagef("--prune wants --owner NAME, to delete only what was applied with it, or -l LABELS")
	case f.selector.Selector != nil && !f.prune:
		return cli.Usagef("-l %s is for --prune: all objects of the files are applied", &f.selector)
	case f.prune && dryRun == writes.DryRunClient:
		return cli.Usagef("--prune --dry-run=client: only the server knows what would be deleted; use --dry-run=server")
	case f.owner != "" && len(validation.IsValidLabelValue(f.owner)) > 0:
		return cli.Usagef("--owner %q: must be up to 63 letters, digits, -, _ and ., beginning and ending with a letter or digit", f.owner)
	}
	return nil
}

// preconditions returns those of an apply in which each object may be given once.
func (f *atomicFlags) preconditions() []manifest.Precondition {
	return []manifest.Precondition{manifest.Named("apply"), manifest.Repeated(diag.Error), f.unowned, f.selector.unselected}
}

// unowned finds objects with a different owner than that of the command line.
func (f *atomicFlags) unowned(list []manifest.Manifest) diag.List {
	var out diag.List
	for _, m := range list {
		if said := m.Meta.Labels[ownerLabel]; f.owner != "" && said != "" && said != f.owner {
			out = append(out, m.Problem(diag.Error, diag.FieldInvalid, "metadata.labels["+ownerLabel+"]",
				fmt.Sprintf("is %q, the command line says --owner %q", said, f.owner)))
		}
	}
	return out
}

// atomicApply is an apply in one transaction.
type atomicApply struct {
	*cli.Session
	client Transactor
	atomicFlags
	list []manifest.Manifest
}

// operation is a store operation with the state that it was made for.
type operation struct {
	store.Op
	before *schema.Object // nil for none
	object *schema.Object // names the object
}

// apply does everything or nothing. It tries again after changes by other writers,
// unless a file names a version of the object.
func (t *atomicApply) apply(ctx context.Context, flags Options) error {
	r, err := writes.NewReport(t.Session, flags.Options, len(t.list))
	if err != nil {
		return err
	}
	if flags.DryRun == writes.DryRunClient {
		for _, m := range t.list {
			r.Done(m.Object, writes.Checked)
		}
		return r.Finish()
	}
	for try := 1; ; try++ {
		steps, err := t.operations(ctx)
		if err != nil {
			return err
		}
		done, err := t.client.Txn(ctx, opsOf(steps))
		if err != nil && try < applyTries && t.raced(err) {
			continue
		}
		if err != nil {
			return t.failed(ctx, steps, err)
		}
		r.Total = len(steps)
		for i, step := range steps {
			r.Done(done[i], step.outcome(done[i]))
		}
		return r.Finish()
	}
}

func opsOf(steps []operation) []store.Op {
	ops := make([]store.Op, len(steps))
	for i, step := range steps {
		ops[i] = step.Op
	}
	return ops
}

// operations returns the operations that bring the stored objects to the state of the
// files. Each requires that the state it was made for is still stored.
func (t *atomicApply) operations(ctx context.Context) ([]operation, error) {
	stored, err := t.stored(ctx)
	if err != nil {
		return nil, t.Fail(ctx, err)
	}
	var steps []operation
	for _, m := range t.list {
		step, err := t.operation(m, stored[m.Key()])
		if err != nil {
			return nil, err
		}
		steps = append(steps, step)
	}
	if t.prune {
		steps = append(steps, t.pruned(stored)...)
	}
	return steps, nil
}

func (t *atomicApply) operation(m manifest.Manifest, before *schema.Object) (operation, error) {
	meta, verb := m.Meta, store.OpUpdate
	if err := t.ours(m, before); err != nil {
		return operation{}, err
	}
	switch {
	case meta.ResourceVersion != "":
	case before == nil:
		verb = store.OpCreate
	default:
		meta.ResourceVersion = before.Meta.ResourceVersion
	}
	if t.owner != "" {
		meta.Labels = maps.Clone(meta.Labels)
		if meta.Labels == nil {
			meta.Labels = map[string]string{}
		}
		meta.Labels[ownerLabel] = t.owner
	}
	o, err := m.WithMeta(meta)
	return operation{Op: store.Op{Verb: verb, Object: o}, before: before, object: m.Object}, err
}

// ours refuses a stored object that another owner has applied.
func (t *atomicApply) ours(m manifest.Manifest, before *schema.Object) error {
	if before == nil || t.owner == "" && !t.prune {
		return nil
	}
	owner, us := before.Meta.Labels[ownerLabel], cmp.Or(t.owner, m.Meta.Labels[ownerLabel])
	if owner == "" || owner == us {
		return nil
	}
	not := fmt.Sprintf("not to %q", us)
	if us == "" {
		not = "and no --owner is given"
	}
	return fmt.Errorf("%s: %s%s belongs to owner %q, %s; nothing was done", m.Place(), printer.Label(m.Object), printer.Where(m.Object), owner, not)
}

func (o operation) outcome(done *schema.Object) writes.Outcome {
	switch {
	case o.Verb == store.OpCreate:
		return writes.Created
	case o.Verb == store.OpDelete && done.Meta.DeletionTimestamp != nil:
		return writes.Deleting
	case o.Verb == store.OpDelete:
		return writes.Deleted
	case o.before != nil && bytes.Equal(o.before.JSON(), done.JSON()):
		return writes.Unchanged
	}
	return writes.Replaced
}

// raced reports whether another writer was faster with an object for which no file
// names a version.
func (t *atomicApply) raced(err error) bool {
	if !errors.Is(err, store.ErrNotFound) && !errors.Is(err, store.ErrExists) && !errors.Is(err, store.ErrConflict) {
		return false
	}
	i, _, ok := blamed(err)
	return ok && (i >= len(t.list) || t.list[i].Meta.ResourceVersion == "")
}

// operationError matches the server's error about one operation.
var operationError = regexp.MustCompile(`(?s)^operations\[([0-9]+)\]: (.*)$`)

// blamed returns the operation that an error is about, if there is one.
func blamed(err error) (index int, text string, ok bool) {
	var e *store.Error
	if !errors.As(err, &e) {
		return 0, "", false
	}
	if said := operationError.FindStringSubmatch(e.Detail); said != nil {
		index, err := strconv.Atoi(said[1])
		return index, said[2], err == nil
	}
	return e.Index, cli.Reason(err), e.Key != (schema.Key{})
}

// failed returns an error with the object at fault and its position in the files.
func (t *atomicApply) failed(ctx context.Context, steps []operation, err error) error {
	if errors.Is(err, store.ErrOutcomeUnknown) {
		return fmt.Errorf("%s; all of it or nothing was done: run it again to be sure", t.Explain(ctx, err))
	}
	i, text, ok := blamed(err)
	switch {
	case !ok || i >= len(steps):
		return fmt.Errorf("%s; nothing was done", t.Explain(ctx, err))
	case i >= len(t.list):
		return fmt.Errorf("%s%s, which is to be pruned: %s; nothing was done", printer.Label(steps[i].object), printer.Where(steps[i].object), text)
	}
	m := t.list[i]
	if errors.Is(err, store.ErrConflict) && m.Meta.ResourceVersion != "" {
		text = cli.Reason(replaceHint(m, err))
	}
	return fmt.Errorf("%s: %s%s: %s; nothing was done", m.Place(), printer.Label(steps[i].object), printer.Where(steps[i].object), text)
}
