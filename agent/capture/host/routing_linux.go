package host

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"syscall"

	"github.com/vishvananda/netlink"

	"github.com/pilot-api/pilot-api/agent/capture"
)

// origin marks routes and routing rules of ours, as "proto 137" of the command ip. It is not
// one of the numbers that the kernel or a routing daemon uses.
const origin = 137

// ownSource6 is the address of IPv6 from which the proxy calls its workload.
var ownSource6 = func() *net.IPNet {
	block := capture.OwnSource6()
	return &net.IPNet{IP: block.Addr().AsSlice(), Mask: net.CIDRMask(block.Bits(), block.Bits())}
}()

func netlinkFamilies(ipv6 bool) []int {
	if ipv6 {
		return []int{netlink.FAMILY_V4, netlink.FAMILY_V6}
	}
	return []int{netlink.FAMILY_V4}
}

// putRouting adds what is missing. undo removes what was added.
func putRouting(w wanted) (undo func() error, err error) {
	var added []func() error
	undo = func() (err error) {
		for _, remove := range slices.Backward(added) {
			err = errors.Join(err, remove())
		}
		return err
	}
	note := func(remove func() error, err error) error {
		if remove != nil {
			added = append(added, remove)
		}
		return err
	}
	if w.routing.OwnSource6 && kernelHasIPv6() {
		if err := note(addOwnSource6()); err != nil {
			return undo, err
		}
	}
	if w.routing.Mark == 0 {
		return undo, nil
	}
	for _, family := range netlinkFamilies(w.ipv6 && kernelHasIPv6()) {
		if err := note(addRoute(family, w.routing.Table)); err != nil {
			return undo, err
		}
		if err := note(addRule(family, w.routing)); err != nil {
			return undo, err
		}
	}
	return undo, nil
}

func addOwnSource6() (remove func() error, err error) {
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return nil, fmt.Errorf("loopback interface: %w", err)
	}
	address := &netlink.Addr{IPNet: ownSource6}
	switch err := netlink.AddrAdd(lo, address); {
	case errors.Is(err, syscall.EEXIST):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("address %s of the loopback interface: %w", ownSource6, err)
	}
	return func() error { return netlink.AddrDel(lo, address) }, nil
}

// everywhere is the block of all addresses of a family.
func everywhere(family int) *net.IPNet {
	if family == netlink.FAMILY_V4 {
		return &net.IPNet{IP: net.IPv4zero.To4(), Mask: net.CIDRMask(0, 32)}
	}
	return &net.IPNet{IP: net.IPv6zero, Mask: net.CIDRMask(0, 128)}
}

func addRoute(family, table int) (remove func() error, err error) {
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return nil, fmt.Errorf("loopback interface: %w", err)
	}
	route := &netlink.Route{
		Family: family, Table: table, LinkIndex: lo.Attrs().Index, Dst: everywhere(family),
		Type: syscall.RTN_LOCAL, Scope: netlink.SCOPE_HOST, Protocol: origin,
	}
	existing, err := netlink.RouteListFiltered(family, &netlink.Route{Table: table}, netlink.RT_FILTER_TABLE)
	if err != nil {
		return nil, fmt.Errorf("routing table %d: %w", table, err)
	}
	if at := slices.IndexFunc(existing, func(r netlink.Route) bool { return r.Protocol != origin }); at >= 0 {
		return nil, fmt.Errorf("routing table %d has other routes (%s): choose another by --istio-inbound-tproxy-route-table", table, existing[at])
	}
	if len(existing) > 0 {
		return nil, nil
	}
	if err := netlink.RouteAdd(route); err != nil {
		return nil, fmt.Errorf("route in table %d: %w", table, err)
	}
	return func() error { return netlink.RouteDel(route) }, nil
}

func addRule(family int, r capture.Routing) (remove func() error, err error) {
	rules, err := ourRules(family)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(rules, func(have netlink.Rule) bool { return have.Mark == r.Mark && have.Table == r.Table }) {
		return nil, nil
	}
	rule := netlink.NewRule()
	rule.Family, rule.Mark, rule.Table, rule.Protocol = family, r.Mark, r.Table, origin
	if err := netlink.RuleAdd(rule); err != nil {
		return nil, fmt.Errorf("routing rule for the mark %d: %w", r.Mark, err)
	}
	return func() error { return netlink.RuleDel(rule) }, nil
}

func ourRules(family int) (out []netlink.Rule, err error) {
	rules, err := netlink.RuleList(family)
	if err != nil {
		return nil, fmt.Errorf("routing rules: %w", err)
	}
	for _, rule := range rules {
		if rule.Protocol == origin {
			rule.Family = family
			out = append(out, rule)
		}
	}
	return out, nil
}

func ourRoutes(family int) ([]netlink.Route, error) {
	routes, err := netlink.RouteListFiltered(family, &netlink.Route{Table: syscall.RT_TABLE_UNSPEC, Protocol: origin},
		netlink.RT_FILTER_TABLE|netlink.RT_FILTER_PROTOCOL)
	if err != nil {
		return nil, fmt.Errorf("routes: %w", err)
	}
	return routes, nil
}

// removeRouting removes what is ours and not wanted, and tells what that was. The address of
// the loopback interface stays if keepAddress is true.
func removeRouting(keep capture.Routing, ipv6, keepAddress bool) (removed []string, err error) {
	for _, family := range netlinkFamilies(kernelHasIPv6()) {
		wanted := func(table int, mark uint32) bool {
			return keep.Mark != 0 && keep.Table == table && (mark == 0 || keep.Mark == mark) && (ipv6 || family == netlink.FAMILY_V4)
		}
		rules, e := ourRules(family)
		err = errors.Join(err, e)
		for _, rule := range rules {
			if !wanted(rule.Table, rule.Mark) {
				err = errors.Join(err, netlink.RuleDel(&rule))
				removed = append(removed, ruleText(rule))
			}
		}
		routes, e := ourRoutes(family)
		err = errors.Join(err, e)
		for _, route := range routes {
			if !wanted(route.Table, 0) {
				err = errors.Join(err, netlink.RouteDel(&route))
				removed = append(removed, routeText(route))
			}
		}
	}
	if !kernelHasIPv6() || keepAddress || keep.OwnSource6 {
		return removed, err
	}
	lo, e := netlink.LinkByName("lo")
	if e != nil {
		return removed, errors.Join(err, e)
	}
	switch e := netlink.AddrDel(lo, &netlink.Addr{IPNet: ownSource6}); {
	case e == nil:
		removed = append(removed, fmt.Sprintf("address %s of the loopback interface", capture.OwnSource6().Addr()))
	case !errors.Is(e, syscall.EADDRNOTAVAIL):
		err = errors.Join(err, e)
	}
	return removed, err
}

func ruleText(r netlink.Rule) string {
	return fmt.Sprintf("routing rule of %s for the mark %d to table %d", familyText(r.Family), r.Mark, r.Table)
}

func routeText(r netlink.Route) string {
	return fmt.Sprintf("route of %s in table %d", familyText(r.Family), r.Table)
}

func familyText(family int) string {
	if family == netlink.FAMILY_V6 {
		return "IPv6"
	}
	return "IPv4"
}

// routingText tells the routing rules and routes of ours.
func routingText() (out []string, err error) {
	for _, family := range netlinkFamilies(kernelHasIPv6()) {
		rules, err := ourRules(family)
		if err != nil {
			return nil, err
		}
		for _, rule := range rules {
			out = append(out, ruleText(rule))
		}
		routes, err := ourRoutes(family)
		if err != nil {
			return nil, err
		}
		for _, route := range routes {
			route.Family = family
			out = append(out, routeText(route))
		}
	}
	return out, nil
}
