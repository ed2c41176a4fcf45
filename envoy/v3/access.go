package v3

import (
	"net/netip"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	accessv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rbac/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	networkrbacv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/rbac/v3"
	templatev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/path/match/uri_template/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/pilot-api/pilot-api/ir"
)

const (
	networkAccessFilter = "envoy.filters.network.rbac"
	jwtFilter           = "envoy.filters.http.jwt_authn"
	jwtPayload          = "payload"
	tcpAccessPrefix     = "tcp."
	uriTemplate         = "envoy.path.match.uri_template.uri_template_matcher"
)

// The prefixes of the statistics of dry runs, as in Istio.
const (
	dryRunAllow = "istio_dry_run_allow_"
	dryRunDeny  = "istio_dry_run_deny_"
)

// accessFilters returns a filter for each step of HTTP.
func accessFilters(a *ir.Access) []*hcmv3.HttpFilter {
	if a == nil {
		return nil
	}
	var out []*hcmv3.HttpFilter
	for _, step := range a.Steps {
		config := &rbacv3.RBAC{}
		if step.DryRun {
			config.ShadowRules, config.ShadowRulesStatPrefix = accessRules(step), shadowPrefix(step)
		} else {
			config.Rules = accessRules(step)
		}
		out = append(out, httpFilter(accessFilter, typed(config)))
	}
	return out
}

// connectionAccess returns a filter for each step of TCP.
func connectionAccess(a *ir.Access) []*listenerv3.Filter {
	if a == nil {
		return nil
	}
	var out []*listenerv3.Filter
	for _, step := range a.Steps {
		config := &networkrbacv3.RBAC{StatPrefix: tcpAccessPrefix}
		if step.DryRun {
			config.ShadowRules, config.ShadowRulesStatPrefix = accessRules(step), shadowPrefix(step)
		} else {
			config.Rules = accessRules(step)
		}
		out = append(out, networkFilter(networkAccessFilter, config))
	}
	return out
}

func shadowPrefix(step ir.AccessStep) string {
	if step.Action == ir.Allow {
		return dryRunAllow
	}
	return dryRunDeny
}

var accessActions = map[ir.AccessAction]accessv3.RBAC_Action{ir.Deny: accessv3.RBAC_DENY, ir.Allow: accessv3.RBAC_ALLOW, ir.Audit: accessv3.RBAC_LOG}

func accessRules(step ir.AccessStep) *accessv3.RBAC {
	out := &accessv3.RBAC{Action: accessActions[step.Action], Policies: map[string]*accessv3.Policy{}}
	for _, p := range step.Policies {
		out.Policies[p.Name] = &accessv3.Policy{
			Permissions: []*accessv3.Permission{permission(&p.Operation)},
			Principals:  []*accessv3.Principal{principal(&p.Peer)},
		}
	}
	return out
}

// permission writes a condition on the operation.
func permission(c *ir.Condition) *accessv3.Permission {
	list := func(conditions []ir.Condition) *accessv3.Permission_Set {
		set := &accessv3.Permission_Set{}
		for i := range conditions {
			set.Rules = append(set.Rules, permission(&conditions[i]))
		}
		return set
	}
	anyRule := &accessv3.Permission{Rule: &accessv3.Permission_Any{Any: true}}
	switch {
	case c.Never || c.Any != nil && len(c.Any) == 0:
		return &accessv3.Permission{Rule: &accessv3.Permission_NotRule{NotRule: anyRule}}
	case len(c.All) > 0:
		return &accessv3.Permission{Rule: &accessv3.Permission_AndRules{AndRules: list(c.All)}}
	case len(c.Any) > 0:
		return &accessv3.Permission{Rule: &accessv3.Permission_OrRules{OrRules: list(c.Any)}}
	case c.Not != nil:
		return &accessv3.Permission{Rule: &accessv3.Permission_NotRule{NotRule: permission(c.Not)}}
	case c.Test != nil:
		return testOperation(c.Test)
	}
	return anyRule
}

func testOperation(t *ir.Test) *accessv3.Permission {
	switch t.Attribute {
	case ir.AttrDestinationPort:
		return &accessv3.Permission{Rule: &accessv3.Permission_DestinationPort{DestinationPort: uint32(t.Port)}}
	case ir.AttrDestinationAddress:
		return &accessv3.Permission{Rule: &accessv3.Permission_DestinationIp{DestinationIp: cidrRange(t.Block)}}
	case ir.AttrServerName:
		return &accessv3.Permission{Rule: &accessv3.Permission_RequestedServerName{RequestedServerName: textMatcher(t.Text)}}
	case ir.AttrFilterMetadata:
		return &accessv3.Permission{Rule: &accessv3.Permission_SourcedMetadata{SourcedMetadata: metadata(t.Name, t.Path, t.Text)}}
	case ir.AttrPath:
		if t.Text.Template != "" {
			return &accessv3.Permission{Rule: &accessv3.Permission_UriTemplate{UriTemplate: &corev3.TypedExtensionConfig{
				Name: uriTemplate, TypedConfig: typed(&templatev3.UriTemplateMatchConfig{PathTemplate: envoyTemplate(t.Text.Template)}),
			}}}
		}
		return &accessv3.Permission{Rule: &accessv3.Permission_UrlPath{UrlPath: &matcherv3.PathMatcher{Rule: &matcherv3.PathMatcher_Path{Path: textMatcher(t.Text)}}}}
	case ir.AttrMethod:
		return &accessv3.Permission{Rule: &accessv3.Permission_Header{Header: headerTest(":method", t.Text)}}
	case ir.AttrHost:
		return &accessv3.Permission{Rule: &accessv3.Permission_Header{Header: headerTest(":authority", t.Text)}}
	}
	return &accessv3.Permission{Rule: &accessv3.Permission_NotRule{NotRule: &accessv3.Permission{Rule: &accessv3.Permission_Any{Any: true}}}}
}

// envoyTemplate writes {*} and {**} as Envoy does.
func envoyTemplate(path string) string {
	return strings.NewReplacer("{**}", "**", "{*}", "*").Replace(path)
}

// principal writes a condition on the sender.
func principal(c *ir.Condition) *accessv3.Principal {
	list := func(conditions []ir.Condition) *accessv3.Principal_Set {
		set := &accessv3.Principal_Set{}
		for i := range conditions {
			set.Ids = append(set.Ids, principal(&conditions[i]))
		}
		return set
	}
	anybody := &accessv3.Principal{Identifier: &accessv3.Principal_Any{Any: true}}
	switch {
	case c.Never || c.Any != nil && len(c.Any) == 0:
		return &accessv3.Principal{Identifier: &accessv3.Principal_NotId{NotId: anybody}}
	case len(c.All) > 0:
		return &accessv3.Principal{Identifier: &accessv3.Principal_AndIds{AndIds: list(c.All)}}
	case len(c.Any) > 0:
		return &accessv3.Principal{Identifier: &accessv3.Principal_OrIds{OrIds: list(c.Any)}}
	case c.Not != nil:
		return &accessv3.Principal{Identifier: &accessv3.Principal_NotId{NotId: principal(c.Not)}}
	case c.Test != nil:
		return testPeer(c.Test)
	}
	return anybody
}

func testPeer(t *ir.Test) *accessv3.Principal {
	switch t.Attribute {
	case ir.AttrPeerName:
		return &accessv3.Principal{Identifier: &accessv3.Principal_Authenticated_{Authenticated: &accessv3.Principal_Authenticated{PrincipalName: textMatcher(t.Text)}}}
	case ir.AttrPeerAddress:
		return &accessv3.Principal{Identifier: &accessv3.Principal_DirectRemoteIp{DirectRemoteIp: cidrRange(t.Block)}}
	case ir.AttrClientAddress:
		return &accessv3.Principal{Identifier: &accessv3.Principal_RemoteIp{RemoteIp: cidrRange(t.Block)}}
	case ir.AttrHeader:
		return &accessv3.Principal{Identifier: &accessv3.Principal_Header{Header: headerTest(t.Name, t.Text)}}
	case ir.AttrClaim:
		return &accessv3.Principal{Identifier: &accessv3.Principal_SourcedMetadata{SourcedMetadata: metadata(jwtFilter, append([]string{jwtPayload}, t.Path...), t.Text)}}
	}
	return &accessv3.Principal{Identifier: &accessv3.Principal_NotId{NotId: &accessv3.Principal{Identifier: &accessv3.Principal_Any{Any: true}}}}
}

func headerTest(name string, t *ir.TextTest) *routev3.HeaderMatcher {
	if t.Present {
		return &routev3.HeaderMatcher{Name: name, HeaderMatchSpecifier: &routev3.HeaderMatcher_PresentMatch{PresentMatch: true}}
	}
	return &routev3.HeaderMatcher{Name: name, HeaderMatchSpecifier: &routev3.HeaderMatcher_StringMatch{StringMatch: textMatcher(t)}}
}

func textMatcher(t *ir.TextTest) *matcherv3.StringMatcher {
	out := &matcherv3.StringMatcher{IgnoreCase: t.IgnoreCase}
	switch {
	case t.Present:
		out.MatchPattern, out.IgnoreCase = &matcherv3.StringMatcher_SafeRegex{SafeRegex: &matcherv3.RegexMatcher{Regex: ".+"}}, false
	case t.Prefix != "":
		out.MatchPattern = &matcherv3.StringMatcher_Prefix{Prefix: t.Prefix}
	case t.Suffix != "":
		out.MatchPattern = &matcherv3.StringMatcher_Suffix{Suffix: t.Suffix}
	case t.Regex != "":
		out.MatchPattern, out.IgnoreCase = &matcherv3.StringMatcher_SafeRegex{SafeRegex: &matcherv3.RegexMatcher{Regex: t.Regex}}, false
	default:
		out.MatchPattern = &matcherv3.StringMatcher_Exact{Exact: t.Exact}
	}
	return out
}

// metadata matches a text in the metadata of a filter, or one in a list there.
func metadata(filter string, path []string, t *ir.TextTest) *accessv3.SourcedMetadata {
	text := &matcherv3.ValueMatcher{MatchPattern: &matcherv3.ValueMatcher_StringMatch{StringMatch: textMatcher(t)}}
	inList := &matcherv3.ValueMatcher{MatchPattern: &matcherv3.ValueMatcher_ListMatch{ListMatch: &matcherv3.ListMatcher{MatchPattern: &matcherv3.ListMatcher_OneOf{OneOf: text}}}}
	out := &matcherv3.MetadataMatcher{
		Filter: filter,
		Value:  &matcherv3.ValueMatcher{MatchPattern: &matcherv3.ValueMatcher_OrMatch{OrMatch: &matcherv3.OrMatcher{ValueMatchers: []*matcherv3.ValueMatcher{text, inList}}}},
	}
	for _, key := range path {
		out.Path = append(out.Path, &matcherv3.MetadataMatcher_PathSegment{Segment: &matcherv3.MetadataMatcher_PathSegment_Key{Key: key}})
	}
	return &accessv3.SourcedMetadata{MetadataMatcher: out, MetadataSource: accessv3.MetadataSource_DYNAMIC}
}

// cidrRange writes a CIDR block, which ir has validated.
func cidrRange(text string) *corev3.CidrRange {
	p, err := netip.ParsePrefix(text)
	if err != nil {
		return &corev3.CidrRange{}
	}
	return &corev3.CidrRange{AddressPrefix: p.Addr().String(), PrefixLen: wrapperspb.UInt32(uint32(p.Bits()))}
}
