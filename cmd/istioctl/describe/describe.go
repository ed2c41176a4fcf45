package describe

import (
	"context"
	"errors"
	"slices"

	"github.com/spf13/cobra"

	"github.com/pilot-api/pilot-api/client"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/cli"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/offline"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/past"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/printer"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/targets"
	"github.com/pilot-api/pilot-api/compile"
	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// Witness returns everything that a server knows about an object.
type Witness interface {
	past.Historian
	Problems(ctx context.Context, opts client.ProblemsOptions) (*client.Problems, error)
	References(ctx context.Context, key schema.Key) (*diag.References, error)
	GetWithFreshStatus(ctx context.Context, key schema.Key, opts store.ReadOptions) (client.ObjectWithStatus, error)
	ProxiesOf(ctx context.Context, key schema.Key) ([]client.Proxy, error)
}

// Options has the flags of describe.
type Options struct {
	// Connect connects to the server, whose warnings go to warn.
	Connect func(warn func(string)) (Witness, error)

	offline.Flags
	output string
}

// NewCommand returns the command describe.
func NewCommand(s *cli.Session) *cobra.Command {
	f := Options{Connect: func(warn func(string)) (Witness, error) { return s.ConnectToRead(warn) }}
	cmd := &cobra.Command{
		Use:   "describe (KIND NAME | KIND/NAME)",
		Short: "Show an object with its status, references and changes",
		Long: `Show an object with its main fields, its status with the proxies, the references from
it and to it, its problems, its recent changes and their authors, and the proxies that
it affects.

Hosts have the meaning that they have in the object's namespace. The answer includes
everything that was written before the request.

With -f, istioctl asks no server. It compiles the objects of the files, which are all
objects that it knows, and shows no changes, no proxies, and no refusals of Envoys.`,
		Example: `  # Show an object, the objects that refer to it, and its problems
  istioctl describe virtualservice reviews

  # Which objects refer to this DestinationRule?
  istioctl describe dr/reviews -o yaml

  # The same for the files of a folder, before anything is stored
  istioctl describe serviceentry reviews -f rules/`,
		ValidArgsFunction: targets.CompleteName(s),
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := printer.Check(f.output, printer.DocumentFormats); err != nil {
			return err
		}
		if err := f.Check(cmd); err != nil {
			return err
		}
		key, err := targets.One("describe", s.Namespace, args)
		if err != nil {
			return err
		}
		return f.Run(cmd.Context(), s, key)
	}
	f.Add(cmd)
	printer.AddFlag(cmd, &f.output, printer.DocumentFormats)
	return cmd
}

// description has everything that is known about an object.
type description struct {
	client.ObjectWithStatus
	diag.References
	problems diag.List
	changes  []past.Entry   // newest first
	proxies  []client.Proxy // those that the object concerns
	live     bool           // from a server; otherwise changes and proxies are unknown
	// noProxies says why the proxies are not known; nil if they are.
	noProxies error
}

// Run prints an object of the server, or of the files.
func (f *Options) Run(ctx context.Context, s *cli.Session, key schema.Key) error {
	look := f.ask
	if f.Offline() {
		look = f.look
	}
	d, err := look(ctx, s, key)
	switch {
	case err != nil:
		return err
	case d == nil:
		return errors.New(targets.NotFound(key))
	case printer.IsTable(f.output):
		return d.write(s.Stdout)
	}
	document, err := d.document()
	if err != nil {
		return err
	}
	return printer.WriteDocument(s.Stdout, f.output, document)
}

// ask asks the server. It returns nil if there is no such object. The problems are
// first, because that request waits until everything written before is compiled, and
// the other answers depend on it.
func (f *Options) ask(ctx context.Context, s *cli.Session, key schema.Key) (*description, error) {
	c, err := f.Connect(s.Warn)
	if err != nil {
		return nil, err
	}
	var d description
	var problems *client.Problems
	var references *diag.References
	for _, ask := range []func() error{
		func() (err error) {
			problems, err = c.Problems(ctx, client.ProblemsOptions{Namespace: key.Namespace})
			return err
		},
		func() (err error) { references, err = c.References(ctx, key); return err },
		func() (err error) {
			d.ObjectWithStatus, err = c.GetWithFreshStatus(ctx, key, store.ReadOptions{})
			return err
		},
		func() (err error) { d.changes, err = changesOf(ctx, c, key); return err },
		func() (err error) {
			d.proxies, err = c.ProxiesOf(ctx, key)
			if errors.Is(err, client.ErrDenied) {
				d.noProxies, err = err, nil
			}
			return err
		},
	} {
		if err := ask(); errors.Is(err, store.ErrNotFound) {
			return nil, nil
		} else if err != nil {
			return nil, s.Fail(ctx, err)
		}
	}
	d.References, d.problems, d.live = *references, problemsOf(problems.Problems, key), true
	return &d, nil
}

// changesOf returns the changes that the server knows, without the objects' states.
func changesOf(ctx context.Context, c past.Historian, key schema.Key) ([]past.Entry, error) {
	versions, err := c.History(ctx, key)
	if err != nil {
		return nil, err
	}
	entries, err := past.Entries(versions)
	for i := range entries {
		entries[i].Object = nil
	}
	return entries, err
}

// look compiles the files. It returns nil if the object is not in them.
func (f *Options) look(ctx context.Context, s *cli.Session, key schema.Key) (*description, error) {
	snapshot, objects, err := f.Snapshot(ctx, s)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(objects, func(o *schema.Object) bool { return o.Key() == key })
	if at < 0 {
		return nil, nil
	}
	c := compile.NewCompiler()
	c.Advance(snapshot)
	return &description{
		ObjectWithStatus: client.ObjectWithStatus{Object: objects[at]}, References: c.References(key),
		problems: problemsOf(slices.Concat(snapshot.Problems, c.Problems()), key),
	}, nil
}

func problemsOf(all diag.List, key schema.Key) diag.List {
	return slices.DeleteFunc(slices.Clone(all), func(p diag.Problem) bool { return p.Object != key.Ref() })
}

// document returns the description for programs.
func (d *description) document() (any, error) {
	object, err := printer.GenericWithStatus(d.ObjectWithStatus)
	if err != nil {
		return nil, err
	}
	object.SetManagedFields(nil)
	return struct {
		Object any `json:"object"`
		diag.References
		Problems diag.List      `json:"problems"`
		Changes  []past.Entry   `json:"changes,omitempty"`
		Proxies  []client.Proxy `json:"proxies,omitempty"`
	}{object.Object, d.References, append(diag.List{}, d.problems...), d.changes, d.proxies}, nil
}
