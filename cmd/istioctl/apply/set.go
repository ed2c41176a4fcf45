package apply

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/cli"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/manifest"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/writes"
	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// SetFlags make an apply treat its files as one set of objects, which has an owner and
// from which objects can be removed.
type SetFlags struct {
	atomic   bool
	prune    bool
	owner    string
	takeOver bool
	selector pruneSelector
}

// Add adds the flags that say what an apply of a set would change.
func (f *SetFlags) Add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVar(&f.prune, "prune", false, "with --owner or -l: also delete the objects that these select and that are no longer in the files")
	flags.VarP(&f.selector, "selector", "l", "with --prune: delete only objects with these labels, such as team=shop; all objects in the files must have them")
	flags.StringVar(&f.owner, "owner", "", "label the objects "+ownerLabel+"=OWNER, and refuse to change objects of another owner")
	flags.BoolVar(&f.takeOver, "take-ownership", false, "with --owner: also change objects of another owner, and make them objects of OWNER")
}

// Given reports whether the files are a set.
func (f *SetFlags) Given() bool {
	return f.atomic || f.prune || f.owner != "" || f.takeOver || f.selector.Selector != nil
}

// Check refuses flags that make no sense together.
func (f *SetFlags) Check() error {
	switch {
	case f.prune && f.owner == "" && f.selector.Selector == nil:
		return cli.Usagef("--prune wants --owner NAME, to delete only what was applied with it, or -l LABELS")
	case f.selector.Selector != nil && !f.prune:
		return cli.Usagef("-l %s is for --prune: all objects of the files are applied", &f.selector)
	case f.takeOver && f.owner == "":
		return cli.Usagef("--take-ownership wants --owner NAME, the new owner")
	case f.owner != "" && len(validation.IsValidLabelValue(f.owner)) > 0:
		return cli.Usagef("--owner %q: must be up to 63 letters, digits, -, _ and ., beginning and ending with a letter or digit", f.owner)
	}
	return nil
}

// Preconditions returns those of a set, in which each object may be given once.
func (f *SetFlags) Preconditions(verb string) []manifest.Precondition {
	return []manifest.Precondition{manifest.Named(verb), manifest.Repeated(diag.Error), f.unowned, f.selector.unselected}
}

// set is an apply of files as a set.
type set struct {
	*cli.Session
	client Transactor
	SetFlags
	list []manifest.Manifest
	// tell is called for each step that is done, in order.
	tell func(step, *schema.Object)

	most         int                 // changes in one transaction
	told         map[schema.Key]bool // steps
	written      int                 // changes
	transactions int
}

func newSet(s *cli.Session, c Transactor, f SetFlags, list []manifest.Manifest) *set {
	return &set{Session: s, client: c, SetFlags: f, list: list, most: store.MaxTxnOps, told: map[schema.Key]bool{}}
}

// apply brings the stored objects to the state of the files and reports each object.
func (t *set) apply(ctx context.Context, flags Options) error {
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
	t.tell = func(done step, o *schema.Object) { r.Done(o, done.outcome(o)) }
	err = t.run(ctx)
	if r.Total = len(t.told); err != nil {
		return err
	}
	if t.transactions > 1 {
		fmt.Fprintf(t.Stderr, "%s were made in %d transactions, because the server does not take them in one.\n", cli.Count(t.written, "change"), t.transactions)
	}
	return r.Finish()
}

// Foreseen is an object as it is, and as an apply would leave it; nil for none.
type Foreseen struct {
	Key           schema.Key
	Before, After *schema.Object
	Origin        string // the file that has it, or "pruned"
}

// Foresee returns the objects of a set that an apply would change, in the order in which
// it would. The client must be one for dry runs.
// together is false if they would be made in several transactions.
func Foresee(ctx context.Context, s *cli.Session, c Transactor, f SetFlags, list []manifest.Manifest) (out []Foreseen, together bool, err error) {
	t := newSet(s, c, f, list)
	t.tell = func(done step, o *schema.Object) {
		if done.idle {
			return
		}
		change := Foreseen{Key: done.object.Key(), Before: done.before, After: o, Origin: done.origin()}
		if done.outcome(o) == writes.Deleted {
			change.After = nil
		}
		out = append(out, change)
	}
	err = t.run(ctx)
	return out, t.transactions <= 1, err
}

func (s step) origin() string {
	if s.file == nil {
		return "pruned"
	}
	return s.file.Place().File
}
