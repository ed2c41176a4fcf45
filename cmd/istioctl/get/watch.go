package get

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pilot-api/pilot-api/client"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/cli"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/printer"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/targets"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
	"github.com/pilot-api/pilot-api/store/cache"
)

// WatchOptions has the flags of watch.
type WatchOptions struct {
	// Connect connects to the server, whose warnings go to warn.
	Connect func(warn func(string)) (Objects, error)

	output        string
	selector      targets.SelectorFlags
	allNamespaces bool
	// plain leaves the type of a change out of tables, as get does.
	plain bool
	rows  printer.RowOptions
	chunk cli.ChunkSize
}

// NewWatchCommand returns the command watch.
func NewWatchCommand(s *cli.Session) *cobra.Command {
	flags := WatchOptions{Connect: connectTo(s), chunk: cli.PageSize}
	cmd := &cobra.Command{
		Use:   "watch (KIND [NAME] | KIND/NAME)",
		Short: "Follow the objects of a kind as they change",
		Long: `Show the objects of a kind, or one of them, and then every change, until interrupted.
After a lost connection istioctl resumes where it stopped and shows no change twice.
After a long time without a connection it shows only the difference. If the server no
longer lets you read, for example because a token has ended, the command fails.

-o wide has a column with the progress of the proxies, and shows an object again when
its progress changes.`,
		Example: `  # Follow all route rules of the default namespace
  istioctl watch routerules

  # Follow one rule for a program: each change is a JSON document
  istioctl watch routerule reviews -o json`,
		Args:              cli.ArgsOr(cobra.MaximumNArgs(2), "watch one kind, or one object, at a time"),
		ValidArgsFunction: targets.CompleteNames(s),
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return flags.Run(cmd.Context(), s, args)
	}
	printer.AddFlag(cmd, &flags.output, printer.ReadFormats)
	targets.AddFlags(cmd, &flags.selector, &flags.allNamespaces)
	return cmd
}

// Run prints the objects that the arguments name, and their changes until ctx ends.
func (o WatchOptions) Run(ctx context.Context, s *cli.Session, args []string) error {
	scope, by, err := watchScope(s, o, args)
	if err != nil {
		return err
	}
	c, err := o.Connect(s.Warn)
	if err != nil {
		return err
	}
	// The first list shows whether there is a server at all. Later failures are
	// retried.
	stated, err := cli.List(ctx, s, c, client.InScope(scope), o.chunk)
	if err != nil {
		return s.Fail(ctx, err)
	}
	first := stated.Objects()
	if err := checkWatched(s, o, scope, first.Items); err != nil {
		return err
	}
	show, err := newDisplay(s, o, scope, stated)
	if err != nil {
		return err
	}
	f := follower{
		source: cli.NewLink(s, &narrowed{c, scope, first}), selector: by, display: show,
		statuses: func(ctx context.Context, tell func(client.ObjectWithStatus)) error {
			return c.FollowStatuses(ctx, scope, tell)
		},
	}
	return f.run(ctx)
}

// checkWatched reports that a single watched object does not exist. Then a get with a
// watch fails, as a get does; a watch waits for the object.
func checkWatched(s *cli.Session, flags WatchOptions, scope store.Scope, first []*schema.Object) error {
	switch {
	case scope.Name == "" || len(first) > 0:
		return nil
	case flags.plain:
		return errors.New(targets.NotFound(schema.KeyOf(scope.Kind, scope.Namespace, scope.Name)))
	}
	fmt.Fprintf(s.Stderr, "%s/%s does not exist yet in namespace %s\n", scope.Kind.Singular, scope.Name, scope.Namespace)
	return nil
}

func watchScope(s *cli.Session, flags WatchOptions, args []string) (store.Scope, targets.Selector, error) {
	if len(args) == 0 {
		return store.Scope{}, targets.Selector{}, cli.Usagef("say which kind: %s", strings.Join(targets.KindNames(), ", "))
	}
	q, err := newQuery(s, flags.output, flags.selector, flags.allNamespaces, args)
	switch {
	case err != nil:
		return store.Scope{}, targets.Selector{}, err
	case len(q.Kinds) != 1 || len(q.Targets) > 1:
		return store.Scope{}, targets.Selector{}, cli.Usagef("watch one kind, or one object, at a time")
	}
	scope := store.Scope{Kind: q.Kinds[0], Namespace: q.namespace}
	if len(q.Targets) == 1 {
		scope.Name = q.Targets[0].Name
	}
	return scope, q.selected, nil
}

// display shows changes.
type display struct {
	event  func(store.Event) error
	status func(client.ObjectWithStatus) error // nil if the proxies' progress is not shown
}

// newDisplay returns a display in the requested format. Tables are laid out for the
// first list of objects. They have the proxies' progress if they are wide, and as a get
// shows them.
func newDisplay(s *cli.Session, flags WatchOptions, scope store.Scope, first *client.ListWithStatus) (display, error) {
	if !printer.IsTable(flags.output) {
		p, err := printer.New(flags.output)
		return display{event: func(e store.Event) error { return printer.PrintEvent(s.Stdout, flags.output, p, e) }}, err
	}
	style := printer.Style{
		Wide: flags.output == printer.Wide, Namespaces: scope.Namespace == "", Events: !flags.plain,
		RowOptions: flags.rows,
	}
	table := printer.NewTable(s.Stdout, scope.Kind, style)
	if !style.Wide && !flags.plain {
		return display{event: table.Event}, table.Fit(first.Objects().Items)
	}
	progress := printer.NewProgressTable(table)
	for _, o := range first.Items {
		if err := progress.Learn(o); err != nil {
			return display{}, err
		}
	}
	return display{progress.Event, progress.Status}, table.Fit(first.Objects().Items)
}

// selected turns the changes of a cache into the events that are visible through a
// selector.
func selected(by targets.Selector, tell func(store.Event)) cache.Handler {
	in := by.Matches
	return cache.Handler{
		Add: func(o *schema.Object) {
			if in(o) {
				tell(store.Event{Type: store.Added, Object: o})
			}
		},
		Update: func(before, after *schema.Object) {
			switch {
			case in(before) && in(after):
				tell(store.Event{Type: store.Modified, Object: after})
			case in(after):
				tell(store.Event{Type: store.Added, Object: after})
			case in(before):
				tell(store.Event{Type: store.Deleted, Object: before})
			}
		},
		Delete: func(last *schema.Object) {
			if in(last) {
				tell(store.Event{Type: store.Deleted, Object: last})
			}
		},
	}
}

// narrowed is a store that shows only one scope. Its first list is one that was read
// before.
type narrowed struct {
	store.Reader
	scope store.Scope
	first *store.List
}

func (n *narrowed) List(ctx context.Context, _ store.Scope, opts store.ListOptions) (*store.List, error) {
	if list := n.first; list != nil {
		n.first = nil
		return list, nil
	}
	return n.Reader.List(ctx, n.scope, opts)
}

func (n *narrowed) Watch(ctx context.Context, _ store.Scope, after int64) (store.Watcher, error) {
	return n.Reader.Watch(ctx, n.scope, after)
}
