package host

import (
	"context"
	"fmt"
	"strings"

	"github.com/pilot-api/pilot-api/agent/capture"
	"github.com/pilot-api/pilot-api/agent/capture/netfilter"
)

// wanted is what Install puts in place.
type wanted struct {
	rules netfilter.Ruleset
	// ipv6 says that IPv6 is captured beside IPv4.
	ipv6    bool
	routing capture.Routing
}

// Choice says which program changes the packet filter. The zero value takes nft if there is
// one, and otherwise iptables-restore.
type Choice struct {
	// NFT, if it is not nil, demands nft or forbids it.
	NFT *bool
	// Variant is "legacy" or "nft" for the variants of iptables that some systems have
	// beside each other; empty means the one that is called iptables.
	Variant string
}

// filter is a way to change the packet filter.
type filter interface {
	// String names the way, for people.
	String() string
	// held returns what of ours is there now.
	held(ctx context.Context) (holding, error)
	// put replaces what is ours by the rules, all or nothing for each family.
	put(ctx context.Context, w wanted) error
	// restore makes what was held before replace what is there now; nil means nothing.
	restore(ctx context.Context, before holding) error
}

// holding is what a filter has of ours.
type holding interface {
	// empty reports whether nothing is there.
	empty() bool
	// text has all rules that are there.
	text() string
}

// Found is what there is of ours.
type Found struct {
	// By are the programs by which rules were installed: "nftables", "iptables".
	By []string
	// Fingerprints are the comments of rules, which tell rulesets apart; one for each program
	// and family.
	Fingerprints []string
	// Strangers are rules of other tools that redirect connections too.
	Strangers []Stranger
	// Routing are the routing rules and routes of ours.
	Routing []string
}

// Find returns what there is. It changes nothing.
func Find(ctx context.Context) (*Found, error) {
	if err := mayChange(); err != nil {
		return nil, err
	}
	out := &Found{}
	for _, way := range ways() {
		h, err := way.held(ctx)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", way, err)
		}
		if h.empty() {
			continue
		}
		out.By = append(out.By, way.String())
		out.Fingerprints = append(out.Fingerprints, fingerprintsIn(h.text())...)
	}
	var err error
	if out.Strangers, err = strangers(ctx); err != nil {
		return nil, err
	}
	out.Routing, err = routingText()
	return out, err
}

// fingerprintsIn returns the comments that tell rulesets apart.
func fingerprintsIn(rules string) (out []string) {
	for line := range strings.Lines(rules) {
		if _, rest, ok := strings.Cut(line, `"`+capture.FingerprintPrefix); ok {
			mark, _, _ := strings.Cut(rest, `"`)
			out = append(out, capture.FingerprintPrefix+mark)
		}
	}
	return out
}
