package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pilot-api/pilot-api/agent/capture/netfilter"
)

// iptables changes the packet filter by iptables-restore and ip6tables-restore. Each
// changes a table in one step; chains of others stay.
type iptables struct {
	variant  string // "", "-legacy" or "-nft"
	families []family
}

// family are the programs for one family.
type family struct {
	is            netfilter.Family
	save, restore string
}

// findIPTables returns a variant of iptables, or nil if the programs for IPv4 are missing.
func findIPTables(variant string) *iptables {
	out := &iptables{variant: variant}
	for _, name := range []string{"iptables", "ip6tables"} {
		f := family{netfilter.IPv4, program(name + variant + "-save"), program(name + variant + "-restore")}
		if name == "ip6tables" {
			f.is = netfilter.IPv6
		}
		if f.save != "" && f.restore != "" && (f.is == netfilter.IPv4 || kernelHasIPv6()) {
			out.families = append(out.families, f)
		}
	}
	if out.of(netfilter.IPv4) == nil {
		return nil
	}
	return out
}

// lockWait makes iptables-restore wait for another one for some seconds, fewer than
// programTime.
const lockWait = "--wait=10"

// kernelHasIPv6 reports whether the kernel speaks IPv6.
func kernelHasIPv6() bool {
	_, err := os.Stat("/proc/net/if_inet6")
	return err == nil
}

func (t *iptables) of(is netfilter.Family) *family {
	for i := range t.families {
		if t.families[i].is == is {
			return &t.families[i]
		}
	}
	return nil
}

func (t *iptables) String() string { return "iptables" + t.variant }

// iptablesHeld has what each family holds.
type iptablesHeld map[netfilter.Family]netfilter.Held

func (h iptablesHeld) empty() bool {
	for _, held := range h {
		if len(held) > 0 {
			return false
		}
	}
	return true
}

func (h iptablesHeld) text() string {
	var out strings.Builder
	for _, family := range []netfilter.Family{netfilter.IPv4, netfilter.IPv6} {
		for _, name := range netfilter.Tables() {
			if table := h[family][name]; table != nil {
				out.WriteString(strings.Join(table.Rules, "\n") + "\n")
			}
		}
	}
	return out.String()
}

func (t *iptables) held(ctx context.Context) (holding, error) {
	out := iptablesHeld{}
	for _, f := range t.families {
		text, err := run(ctx, "", f.save)
		if err != nil {
			return nil, err
		}
		out[f.is] = netfilter.ReadHeld(text)
	}
	return out, nil
}

// put first makes both families test their text, because iptables has no step for both.
func (t *iptables) put(ctx context.Context, w wanted) error {
	if w.ipv6 && t.of(netfilter.IPv6) == nil && kernelHasIPv6() {
		return errors.New("ip6tables-restore is missing; --dual-stack=false captures only IPv4")
	}
	before, err := t.held(ctx)
	if err != nil {
		return err
	}
	now := before.(iptablesHeld)
	texts := map[netfilter.Family]string{}
	for _, f := range t.families {
		rules := w.rules
		if f.is == netfilter.IPv6 && !w.ipv6 {
			rules = netfilter.Ruleset{}
		}
		texts[f.is] = rules.IPTables(f.is, now[f.is])
		if _, err := run(ctx, texts[f.is], f.restore, "--noflush", lockWait, "--test"); err != nil {
			return err
		}
	}
	for _, f := range t.families {
		if err := f.apply(ctx, texts[f.is]); err != nil {
			return errors.Join(err, t.restore(context.WithoutCancel(ctx), before))
		}
	}
	return nil
}

func (t *iptables) restore(ctx context.Context, before holding) error {
	now, err := t.held(ctx)
	if err != nil {
		return err
	}
	was, _ := before.(iptablesHeld)
	for _, f := range t.families {
		text := netfilter.Restore(was[f.is], now.(iptablesHeld)[f.is])
		err = errors.Join(err, f.apply(ctx, text))
	}
	return err
}

func (f family) apply(ctx context.Context, text string) error {
	if text == "" {
		return nil
	}
	_, err := run(ctx, text, f.restore, "--noflush", lockWait)
	return err
}

// variants returns the variants of iptables that this machine has. The one without a name is
// a link to another one on many systems; it is returned once, by its first name.
func variants() (out []*iptables) {
	for _, variant := range []string{"", "-nft", "-legacy"} {
		t := findIPTables(variant)
		if t != nil && !slices.ContainsFunc(out, t.sameAs) {
			out = append(out, t)
		}
	}
	return out
}

// sameAs reports whether two variants are one program.
func (t *iptables) sameAs(other *iptables) bool {
	resolved := func(t *iptables) string {
		path, err := filepath.EvalSymlinks(t.of(netfilter.IPv4).save)
		if err != nil {
			return t.of(netfilter.IPv4).save
		}
		return path
	}
	return resolved(t) == resolved(other)
}

// ways returns all ways to change the packet filter that this machine has.
func ways() (out []filter) {
	if path := program("nft"); path != "" {
		out = append(out, nft{path})
	}
	for _, t := range variants() {
		out = append(out, t)
	}
	return out
}

// choose returns the way that is wanted.
func choose(c Choice) (filter, error) {
	if c.NFT == nil || *c.NFT {
		if path := program("nft"); path != "" {
			return nft{path}, nil
		}
		if c.NFT != nil {
			return nil, errors.New("nft is not on PATH: install the package nftables, or leave out --native-nftables to use iptables-restore")
		}
	}
	variant := ""
	if c.Variant != "" {
		variant = "-" + c.Variant
	}
	if t := findIPTables(variant); t != nil {
		return t, nil
	}
	if c.NFT != nil || c.Variant != "" {
		return nil, fmt.Errorf("iptables%[1]s-save and iptables%[1]s-restore are not on PATH: install the package iptables", variant)
	}
	return nil, errors.New("neither nft nor iptables-restore is on PATH: install the package nftables")
}
