package diff

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/pilot-api/pilot-api/client"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/cli"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/past"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/targets"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// pastFlags say which two states of an object to compare.
type pastFlags struct {
	from, to past.Revision // to is 0 for the current state
}

func (f *pastFlags) add(cmd *cobra.Command) {
	cmd.Flags().Var(&f.from, "revision", "show the changes of an object since this revision")
	cmd.Flags().Var(&f.to, "to", "with --revision: show the changes up to this revision instead of the present one")
}

func (f *pastFlags) given() bool { return f.from > 0 || f.to > 0 }

// diffPast compares two states of one object.
func (o Options) diffPast(ctx context.Context, s *cli.Session, args []string) (differs bool, err error) {
	f := o.past
	switch {
	case f.from == 0:
		return false, cli.Usagef("--to goes with --revision, from which on to compare")
	case o.files.Given() || o.proxies:
		return false, cli.Usagef("--revision compares what is stored with what was: leave -f and --proxies out")
	}
	key, err := targets.One("diff", s.Namespace, args)
	if err != nil {
		return false, err
	}
	c, err := o.Connect(client.Options{Warn: s.Warn})
	if err != nil {
		return false, err
	}
	for _, revision := range []past.Revision{f.from, f.to} {
		if err := past.Reached(ctx, c, int64(revision)); err != nil {
			return false, s.Fail(ctx, err)
		}
	}
	versions, err := past.Versions(ctx, s, c, key)
	if err != nil {
		return false, err
	}
	old, oldName, err := stateAt(versions, key, f.from)
	if err != nil {
		return false, err
	}
	next, nextName, err := stateAt(versions, key, f.to)
	if err != nil {
		return false, err
	}
	return showDiff(s, oldName, old, nextName, next)
}

// stateAt returns an object at a revision as text, and a name for that state. A missing
// object is not an error.
func stateAt(versions []store.Version, key schema.Key, revision past.Revision) (text []byte, name string, err error) {
	o, name := versions[0].Object, key.Ref().String()+" (now)"
	if revision > 0 {
		name = fmt.Sprintf("%s (revision %d)", key.Ref(), revision)
		o, err = store.VersionAt(versions, key, int64(revision))
	}
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, name, fmt.Errorf("%s: %s", key.Ref(), cli.Reason(err))
	}
	text, err = comparable(o)
	return text, name, err
}
