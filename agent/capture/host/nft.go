package host

import (
	"context"
	"strings"

	"github.com/pilot-api/pilot-api/agent/capture/netfilter"
)

// nft changes the packet filter by the program nft. All chains are in one table, which is
// replaced in one step.
type nft struct{ path string }

func (nft) String() string { return "nftables" }

// nftHeld is the text of our table, or empty.
type nftHeld string

func (h nftHeld) empty() bool  { return h == "" }
func (h nftHeld) text() string { return string(h) }

func (n nft) held(ctx context.Context) (holding, error) {
	tables, err := run(ctx, "", n.path, "list", "tables")
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(tables) {
		if strings.TrimSpace(line) == "table inet "+netfilter.NFTTable {
			text, err := run(ctx, "", n.path, "-n", "list", "table", "inet", netfilter.NFTTable)
			return nftHeld(text), err
		}
	}
	return nftHeld(""), nil
}

func (n nft) put(ctx context.Context, w wanted) error { return n.apply(ctx, w.rules.NFT()) }

func (n nft) restore(ctx context.Context, before holding) error {
	script := netfilter.NFTRemoval()
	if before != nil {
		script += before.text()
	}
	return n.apply(ctx, script)
}

func (n nft) apply(ctx context.Context, script string) error {
	_, err := run(ctx, script, n.path, "-f", "-")
	return err
}
