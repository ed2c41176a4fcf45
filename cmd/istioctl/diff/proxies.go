package diff

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/pilot-api/pilot-api/client"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/cli"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/manifest"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/printer"
	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/store"
)

// diffProxies compares the current configuration of proxies with the one that they
// would have.
func (o Options) diffProxies(ctx context.Context, s *cli.Session) (differs bool, err error) {
	list, err := manifest.Read(ctx, s, o.files, manifest.Named("diff"), manifest.Repeated(diag.Error))
	if err != nil {
		return false, err
	}
	c, err := o.Connect(client.Options{Warn: s.Warn})
	if err != nil {
		return false, err
	}
	found, err := c.Preview(ctx, manifest.Joined(list), s.Namespace)
	if errors.Is(err, store.ErrOutcomeUnknown) {
		err = fmt.Errorf("no answer came from %s", s.Server) // A preview writes nothing.
	}
	if err != nil {
		return false, s.Fail(ctx, err)
	}
	for _, p := range found.Problems {
		s.Warn("it would be a problem: " + p.String())
	}
	for _, change := range found.Changes {
		if err := showChange(s, change); err != nil {
			return false, err
		}
	}
	if found.Proxies > 0 {
		sumUp(s, found)
	}
	if len(found.Changes) > 0 || found.Omitted > 0 {
		return true, nil
	}
	return false, unseen(found)
}

// unseen returns why a preview without changes does not prove that there would be none.
func unseen(found *client.Preview) error {
	switch {
	case len(found.Missing) > 0:
		return errors.New("not all proxies were looked at: whether something would change is not known")
	case found.NotLookedAt > 0:
		return fmt.Errorf("%s were not looked at: whether something would change for them is not known", countProxies(found.NotLookedAt))
	case found.Proxies == 0:
		return errors.New("no proxies are connected: there was nothing to compare")
	}
	return nil
}

func showChange(s *cli.Session, c client.ResourceChange) error {
	before, err := messageText(c.Before)
	if err != nil {
		return err
	}
	after, err := messageText(c.After)
	if err != nil {
		return err
	}
	name := c.Type + " " + c.Name
	_, err = showDiff(s, name+" (now)", before, fmt.Sprintf("%s (of %s)", name, countProxies(c.Proxies)), after)
	return err
}

// messageText returns a message as YAML.
func messageText(message json.RawMessage) ([]byte, error) {
	if len(message) == 0 {
		return nil, nil
	}
	return printer.ToYAML(message)
}

// sumUp prints, for people, what was compared.
func sumUp(s *cli.Session, found *client.Preview) {
	fmt.Fprintf(s.Stderr, "%s would change, of %s, compared with revision %d.\n",
		cli.Count(len(found.Changes)+found.Omitted, "resource"), countProxies(found.Proxies), found.Revision)
	if found.Omitted > 0 {
		s.Warn(fmt.Sprintf("%s are not shown: there are too many", cli.Count(found.Omitted, "change")))
	}
	if found.NotLookedAt > 0 {
		s.Warn(fmt.Sprintf("%s were not looked at: there are too many kinds of them", countProxies(found.NotLookedAt)))
	}
}

func countProxies(n int) string {
	if n == 1 {
		return "1 proxy"
	}
	return fmt.Sprintf("%d proxies", n)
}
