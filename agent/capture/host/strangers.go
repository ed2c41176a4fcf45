package host

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Stranger is a set of rules of another tool.
type Stranger struct {
	// Tool is the name of the tool.
	Tool string
	// What describes the rules and the place where they are.
	What string
	// Removal is a command that removes them.
	Removal string
	// Active is false for chains that nothing calls any more.
	Active bool
}

func (s Stranger) String() string { return fmt.Sprintf("%s: %s", s.Tool, s.What) }

// tool is another program that redirects connections.
type tool struct {
	name, removal string
	chains        string // the beginning of the names of its chains in iptables
	tables        string // the same of its tables in nft; empty if it has none
}

var tools = []tool{
	{"Istio", "istio-iptables --cleanup-only", "ISTIO_", "istio-"},
	{"Kuma", "kumactl uninstall transparent-proxy", "KUMA_", ""},
	{"Consul", "", "CONSUL_PROXY_", ""},
	{"Linkerd", "", "PROXY_INIT_", ""},
}

// strangers returns the rules of other tools.
func strangers(ctx context.Context) (out []Stranger, err error) {
	if path := program("nft"); path != "" {
		tables, err := run(ctx, "", path, "list", "tables")
		if err != nil {
			return nil, err
		}
		out = append(out, nftStrangers(tables)...)
	}
	for _, t := range variants() {
		for _, f := range t.families {
			saved, err := run(ctx, "", f.save)
			if err != nil {
				return nil, err
			}
			for _, s := range iptablesStrangers(saved, f.restore) {
				if !slices.ContainsFunc(out, func(o Stranger) bool { return o.Tool == s.Tool && o.What == s.What }) {
					out = append(out, s)
				}
			}
		}
	}
	return out, nil
}

func nftStrangers(tables string) (out []Stranger) {
	for line := range strings.Lines(tables) {
		words := strings.Fields(line) // table inet istio-proxy-nat
		for _, tool := range tools {
			if len(words) == 3 && tool.tables != "" && strings.HasPrefix(words[2], tool.tables) {
				out = append(out, Stranger{tool.name, "table " + words[2] + " of nft", "nft delete table " + words[1] + " " + words[2], true})
			}
		}
	}
	return out
}

var (
	declared = regexp.MustCompile(`(?m)^:([A-Z_0-9]+) - `)
	called   = regexp.MustCompile(`(?m)^-A (?:PREROUTING|OUTPUT) .*?-[jg] ([A-Z_0-9]+)`)
)

func iptablesStrangers(saved, restore string) (out []Stranger) {
	active := map[string]bool{}
	for _, match := range called.FindAllStringSubmatch(saved, -1) {
		active[match[1]] = true
	}
	for _, tool := range tools {
		var chains []string
		isActive := false
		for _, match := range declared.FindAllStringSubmatch(saved, -1) {
			if strings.HasPrefix(match[1], tool.chains) && !slices.Contains(chains, match[1]) {
				chains = append(chains, match[1])
				isActive = isActive || active[match[1]]
			}
		}
		if len(chains) > 0 {
			out = append(out, Stranger{tool.name, fmt.Sprintf("chains %s of iptables", strings.Join(chains, ", ")), tool.removal, isActive})
		}
	}
	return out
}
