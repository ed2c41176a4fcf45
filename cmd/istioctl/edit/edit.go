package edit

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pilot-api/pilot-api/client"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/cli"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/printer"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/targets"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/writes"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// Texts reads an object, and replaces it by a text.
type Texts interface {
	Get(ctx context.Context, key schema.Key, opts store.ReadOptions) (*schema.Object, error)
	UpdateText(ctx context.Context, t client.Text) (*schema.Object, error)
}

// Options has the flags of edit.
type Options struct {
	// Connect connects to the server.
	Connect func(client.Options) (Texts, error)

	writes.Options
}

// NewCommand returns the command edit.
func NewCommand(s *cli.Session) *cobra.Command {
	flags := Options{
		Connect: func(as client.Options) (Texts, error) { return s.ConnectWith(as) },
		Options: writes.Options{DryRun: writes.DryRunNone},
	}
	cmd := &cobra.Command{
		Use:   "edit (KIND NAME | KIND/NAME)",
		Short: "Edit an object in an editor",
		Long: `Open an object in the editor of ISTIOCTL_EDITOR or EDITOR, or in vi, and store the
saved text. If the text has a mistake, or somebody else has changed the object
meanwhile, the editor opens again with the reason at the top. If the text is unchanged
or empty, the command ends without a change. A text that was refused is kept in a file.

vi needs a terminal. Without one, set EDITOR to a program that changes the file by itself,
or use 'istioctl patch' or 'istioctl apply'.`,
		Example: `  istioctl edit virtualservice reviews
  EDITOR=nano istioctl edit vs/reviews -n books`,
		ValidArgsFunction: targets.CompleteName(s),
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := printer.Check(flags.Output, printer.WriteFormats); err != nil {
			return err
		}
		key, err := targets.One("edit", s.Namespace, args)
		if err != nil {
			return err
		}
		return flags.Run(cmd.Context(), s, key)
	}
	printer.AddFlag(cmd, &flags.Output, printer.WriteFormats)
	return cmd
}

// Run opens the object in the editor, and stores the result.
func (o Options) Run(ctx context.Context, s *cli.Session, key schema.Key) error {
	c, err := o.Connect(o.Client(s.WarnUnknown))
	if err != nil {
		return err
	}
	stored, err := c.Get(ctx, key, store.ReadOptions{})
	switch {
	case errors.Is(err, store.ErrNotFound):
		return errors.New(targets.NotFound(key) + targets.Misread(key.Name))
	case err != nil:
		return s.Fail(ctx, err)
	case chosenEditor(s) == "" && !onTerminal(s):
		return errors.New("vi needs a terminal, and standard input or output is none: " + withoutTerminal)
	}
	text, err := printer.ToYAML(stored.JSON())
	if err != nil {
		return err
	}
	e := edit{s, c, key, text, "Edit the object. Lines that begin with a # are left out; an empty file ends without a change."}
	done, err := e.run(ctx)
	if err != nil || done == nil {
		return err
	}
	r, err := writes.NewReport(s, o.Options, 1)
	if err != nil {
		return err
	}
	r.Done(done, writes.Replaced)
	return r.Finish()
}

// withoutTerminal is what a person can do without a terminal.
const withoutTerminal = "set EDITOR to a program that changes the file by itself, or use 'istioctl patch' or 'istioctl apply'"

// chosenEditor returns the user's editor, "" for the default one.
func chosenEditor(s *cli.Session) string {
	return cmp.Or(s.Getenv("ISTIOCTL_EDITOR"), s.Getenv("EDITOR"))
}

func onTerminal(s *cli.Session) bool { return s.StdinIsTerminal && s.StdoutIsTerminal }

// edit is an object in an editor.
type edit struct {
	*cli.Session
	client Texts
	key    schema.Key
	text   []byte // the text to edit
	reason string // the comment at its top
}

// run opens the editor until its result is stored. It returns nil if nothing changed.
func (e *edit) run(ctx context.Context) (*schema.Object, error) {
	refused := false
	for {
		shown := append(comment(e.reason), e.text...)
		saved, err := e.open(ctx, shown)
		if err != nil {
			return nil, err
		}
		text := uncommented(saved)
		if bytes.Equal(saved, shown) || len(bytes.TrimSpace(text)) == 0 || bytes.Equal(text, uncommented(shown)) && !refused {
			return nil, e.cancel(refused)
		}
		o, err := e.store(ctx, text)
		if err == nil {
			return o, nil
		}
		if ctx.Err() != nil {
			return nil, e.Fail(ctx, err)
		}
		refused, e.text, e.reason = true, text, "It was not stored: "+err.Error()
		if errors.Is(err, store.ErrConflict) {
			e.rebase(ctx)
		}
	}
}

// cancel reports that nothing changes, and saves text that was refused.
func (e *edit) cancel(refused bool) error {
	if !refused {
		fmt.Fprintln(e.Stderr, "nothing was changed")
		return nil
	}
	kept, err := os.CreateTemp("", "istioctl-edit-*.yaml")
	if err != nil {
		return err
	}
	_, err = kept.Write(e.text)
	if err := errors.Join(err, kept.Close()); err != nil {
		return err
	}
	first, _, _ := strings.Cut(e.reason, "\n")
	return fmt.Errorf("nothing was changed; your text is in %s. %s", kept.Name(), first)
}

// store replaces the object by a text, for the version that the text names.
func (e *edit) store(ctx context.Context, text []byte) (*schema.Object, error) {
	o, problems := schema.Decode(text, schema.Options{Namespace: e.key.Namespace})
	if err := problems.Err(); err != nil || o == nil {
		return nil, cmp.Or(err, errors.New("there is no object in it"))
	}
	if o.Key() != e.key {
		return nil, fmt.Errorf("it is %s now: kind, namespace and name must stay", o.Key())
	}
	e.ShowProblems(problems.Warnings())
	return e.client.UpdateText(ctx, client.Text{Kind: o.Kind, Namespace: e.key.Namespace, Name: e.key.Name, Body: text})
}

// rebase shows the newest state of the object and puts its version into the text, so
// that the text can replace it.
func (e *edit) rebase(ctx context.Context) {
	newest, err := e.client.Get(ctx, e.key, store.ReadOptions{})
	if err != nil {
		return
	}
	theirs, err := printer.ToYAML(newest.JSON())
	if err != nil {
		return
	}
	e.reason = "Somebody else has changed it meanwhile. To store yours in its place, take the changes over that you want, and delete these lines. Theirs:\n" + string(theirs)
	lines := strings.SplitAfter(string(e.text), "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, "  resourceVersion:") {
			lines[i] = fmt.Sprintf("  resourceVersion: %q\n", newest.Meta.ResourceVersion)
		}
	}
	e.text = []byte(strings.Join(lines, ""))
}

// open opens the text in the user's editor and returns the result.
func (e *edit) open(ctx context.Context, text []byte) ([]byte, error) {
	file, err := os.CreateTemp("", "istioctl-edit-*.yaml")
	if err != nil {
		return nil, err
	}
	defer os.Remove(file.Name())
	_, err = file.Write(text)
	if err := errors.Join(err, file.Close()); err != nil {
		return nil, err
	}
	editor := cmp.Or(chosenEditor(e.Session), "vi")
	// As in git, the words of the variable are a command line.
	cmd := exec.CommandContext(ctx, "sh", "-c", editor+` "$1"`, editor, file.Name())
	// The editor draws on the terminal itself.
	cmd.Stdin, cmd.Stdout, cmd.Stderr = e.Stdin, e.Outside.Stdout, e.Outside.Stderr
	if err := cmd.Run(); err != nil {
		err = fmt.Errorf("editor %s: %w; nothing was changed", editor, err)
		if !onTerminal(e.Session) {
			err = fmt.Errorf("%w. If the editor needs a terminal: there is none here; %s", err, withoutTerminal)
		}
		return nil, err
	}
	return os.ReadFile(file.Name())
}

// comment returns a text as comment lines.
func comment(text string) []byte {
	var out bytes.Buffer
	for line := range strings.Lines(strings.TrimSpace(text)) {
		fmt.Fprintf(&out, "# %s\n", strings.TrimRight(line, "\n"))
	}
	return out.Bytes()
}

// uncommented returns a text without comment lines. Indented comments stay, because
// they may be a part of a text block.
func uncommented(text []byte) []byte {
	var out bytes.Buffer
	for line := range bytes.Lines(text) {
		if !bytes.HasPrefix(line, []byte("#")) {
			out.Write(line)
		}
	}
	return out.Bytes()
}
