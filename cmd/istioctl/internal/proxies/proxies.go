package proxies

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/pilot-api/pilot-api/client"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/cli"
	"github.com/pilot-api/pilot-api/explain"
)

// Rejected is the state of a type if the proxy refuses its newest configuration.
const Rejected = "REJECTED"

// ShortNode returns the part of a node id that is a name for people.
func ShortNode(node string) string {
	if parts := strings.Split(node, "~"); len(parts) == 4 && parts[2] != "" {
		return parts[2]
	}
	return node
}

// Worst returns the state of the type that lags behind the most.
func Worst(one client.Proxy) string {
	for _, state := range []string{Rejected, "STALE", "SENT", "FETCHED"} {
		for _, name := range explain.Types {
			if one.Types[name].State == state {
				return state + " " + name
			}
		}
	}
	return "not yet"
}

// Doing describes what a proxy does while it does not run an object.
func Doing(p client.Proxy) string {
	if p.State == client.Disconnected && p.LastSeen != nil {
		return fmt.Sprintf("is disconnected, was seen last at %s and ran revision %d then", p.LastSeen.Format(time.DateTime), max(p.Revision, p.FetchedRevision))
	}
	runs := fmt.Sprintf("runs revision %d", p.Revision)
	switch {
	case p.FetchedRevision > 0:
		runs = fmt.Sprintf("has fetched revision %d, and cannot say what it runs", p.FetchedRevision)
	case p.Revision == 0:
		runs = "runs nothing yet that is known"
	}
	for _, name := range explain.Types {
		if t := p.Types[name]; t.State == Rejected {
			return fmt.Sprintf("refuses its %s and %s: %s", name, runs, cmp.Or(cli.OneLine(t.Error), "it does not say why"))
		}
	}
	for _, name := range explain.Types {
		if t := p.Types[name]; t.Error != "" {
			return runs + ": " + cli.OneLine(t.Error)
		}
	}
	return runs
}
