package v3

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"google.golang.org/protobuf/proto"
)

// listenerChains checks that a listener has an address and chains, and that a connection
// fits at most one chain.
func listenerChains(m *listenerv3.Listener) error {
	if s := m.GetAddress().GetSocketAddress(); s != nil {
		if err := address4or6(s.GetAddress()); err != nil {
			return err
		}
	}
	if len(m.GetFilterChains()) == 0 && m.GetDefaultFilterChain() == nil && m.GetApiListener() == nil {
		return errors.New("must have a filter chain")
	}
	taken := map[string]bool{}
	for _, c := range m.GetFilterChains() {
		for _, key := range matchKeys(c.GetFilterChainMatch()) {
			if taken[key] {
				return fmt.Errorf("two filter chains take the same connections: %s", key)
			}
			taken[key] = true
		}
	}
	return nil
}

// matchKeys returns all combinations of a block of addresses, a server name, and the other
// conditions of a match.
func matchKeys(m *listenerv3.FilterChainMatch) []string {
	rest := &listenerv3.FilterChainMatch{}
	if m != nil {
		rest = proto.Clone(m).(*listenerv3.FilterChainMatch)
		rest.PrefixRanges, rest.ServerNames = nil, nil
	}
	text, _ := proto.MarshalOptions{Deterministic: true}.Marshal(rest)
	blocks := []string{"any address"}
	if ranges := m.GetPrefixRanges(); len(ranges) > 0 {
		blocks = nil
		for _, r := range ranges {
			blocks = append(blocks, block(r))
		}
	}
	names := m.GetServerNames()
	if len(names) == 0 {
		names = []string{""}
	}
	var out []string
	for _, b := range blocks {
		for _, n := range names {
			out = append(out, fmt.Sprintf("%s %q %x", b, strings.ToLower(n), text))
		}
	}
	return out
}

// block returns equal texts for equal blocks of addresses.
func block(r *corev3.CidrRange) string {
	addr, err := netip.ParseAddr(r.GetAddressPrefix())
	if err != nil {
		return r.GetAddressPrefix()
	}
	return netip.PrefixFrom(addr, min(int(r.GetPrefixLen().GetValue()), addr.BitLen())).Masked().String()
}

// chainMatch checks server names. A wildcard must be a whole label at the beginning.
func chainMatch(m *listenerv3.FilterChainMatch) error {
	wild := func(name string) bool { return strings.Contains(name, "*") && !strings.HasPrefix(name, "*.") }
	if i := slices.IndexFunc(m.GetServerNames(), wild); i >= 0 {
		return fmt.Errorf("a wildcard must be a leading *., found %q", m.GetServerNames()[i])
	}
	return nil
}
