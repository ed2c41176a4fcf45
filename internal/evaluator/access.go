package evaluator

import (
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	accessv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	templatev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/path/match/uri_template/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
)

// AccessRequest is a request, or a connection, as RBAC filters see it.
type AccessRequest struct {
	Peer            string // the URI in its certificate
	Direct, Remote  netip.Addr
	Destination     netip.Addr
	Port            uint32
	SNI             string
	Headers         map[string]string
	Claims          map[string]string // by path
	FilterMetadata  map[string]string
	Path            string
	HasJWT, HasPeer bool
}

// Passes reports whether the filters, one after the other, take a request. What the filters have and
// this package does not know fails the test.
func (r AccessRequest) Passes(t testing.TB, filters []*accessv3.RBAC) bool {
	t.Helper()
	for _, rules := range filters {
		fits := r.Fits(t, rules)
		if rules.GetAction() == accessv3.RBAC_ALLOW && !fits || rules.GetAction() == accessv3.RBAC_DENY && fits {
			return false
		}
	}
	return true
}

// Fits reports whether a request fits one of the policies of a filter.
func (r AccessRequest) Fits(t testing.TB, rules *accessv3.RBAC) bool {
	t.Helper()
	for _, policy := range rules.GetPolicies() {
		if slices.ContainsFunc(policy.GetPermissions(), func(p *accessv3.Permission) bool { return r.permitted(t, p) }) &&
			slices.ContainsFunc(policy.GetPrincipals(), func(p *accessv3.Principal) bool { return r.isFrom(t, p) }) {
			return true
		}
	}
	return false
}

func (r AccessRequest) permitted(t testing.TB, p *accessv3.Permission) bool {
	switch rule := p.GetRule().(type) {
	case *accessv3.Permission_Any:
		return true
	case *accessv3.Permission_AndRules:
		return !slices.ContainsFunc(rule.AndRules.GetRules(), func(p *accessv3.Permission) bool { return !r.permitted(t, p) })
	case *accessv3.Permission_OrRules:
		return slices.ContainsFunc(rule.OrRules.GetRules(), func(p *accessv3.Permission) bool { return r.permitted(t, p) })
	case *accessv3.Permission_NotRule:
		return !r.permitted(t, rule.NotRule)
	case *accessv3.Permission_Header:
		return r.hasHeader(t, rule.Header)
	case *accessv3.Permission_UrlPath:
		return fitsText(t, rule.UrlPath.GetPath(), r.Path)
	case *accessv3.Permission_UriTemplate:
		template := &templatev3.UriTemplateMatchConfig{}
		if err := rule.UriTemplate.GetTypedConfig().UnmarshalTo(template); err != nil {
			t.Fatal(err)
		}
		return fitsTemplate(template.GetPathTemplate(), r.Path)
	case *accessv3.Permission_DestinationPort:
		return rule.DestinationPort == r.Port
	case *accessv3.Permission_DestinationIp:
		return inRange(rule.DestinationIp, r.Destination)
	case *accessv3.Permission_RequestedServerName:
		return fitsText(t, rule.RequestedServerName, r.SNI)
	case *accessv3.Permission_SourcedMetadata:
		m := rule.SourcedMetadata.GetMetadataMatcher()
		return fitsMetadata(t, m, r.FilterMetadata, m.GetFilter()+".")
	case *accessv3.Permission_Metadata:
		//lint:ignore SA1019 Istio writes it.
		return fitsMetadata(t, rule.Metadata, r.FilterMetadata, rule.Metadata.GetFilter()+".")
	}
	t.Fatalf("permission %v is not known here", p)
	return false
}

func (r AccessRequest) isFrom(t testing.TB, p *accessv3.Principal) bool {
	switch id := p.GetIdentifier().(type) {
	case *accessv3.Principal_Any:
		return true
	case *accessv3.Principal_AndIds:
		return !slices.ContainsFunc(id.AndIds.GetIds(), func(p *accessv3.Principal) bool { return !r.isFrom(t, p) })
	case *accessv3.Principal_OrIds:
		return slices.ContainsFunc(id.OrIds.GetIds(), func(p *accessv3.Principal) bool { return r.isFrom(t, p) })
	case *accessv3.Principal_NotId:
		return !r.isFrom(t, id.NotId)
	case *accessv3.Principal_Authenticated_:
		return r.HasPeer && fitsText(t, id.Authenticated.GetPrincipalName(), r.Peer)
	case *accessv3.Principal_DirectRemoteIp:
		return inRange(id.DirectRemoteIp, r.Direct)
	case *accessv3.Principal_RemoteIp:
		return inRange(id.RemoteIp, r.Remote)
	case *accessv3.Principal_Header:
		return r.hasHeader(t, id.Header)
	case *accessv3.Principal_SourcedMetadata:
		return r.HasJWT && fitsMetadata(t, id.SourcedMetadata.GetMetadataMatcher(), r.Claims, "")
	case *accessv3.Principal_Metadata:
		//lint:ignore SA1019 Istio writes it.
		return r.HasJWT && fitsMetadata(t, id.Metadata, r.Claims, "")
	}
	t.Fatalf("principal %v is not known here", p)
	return false
}

func (r AccessRequest) hasHeader(t testing.TB, m *routev3.HeaderMatcher) bool {
	value, has := r.Headers[strings.ToLower(m.GetName())]
	if m.GetPresentMatch() {
		return has
	}
	return has && fitsText(t, m.GetStringMatch(), value)
}

func fitsText(t testing.TB, m *matcherv3.StringMatcher, text string) bool {
	lower := func(s string) string {
		if m.GetIgnoreCase() {
			return strings.ToLower(s)
		}
		return s
	}
	switch p := m.GetMatchPattern().(type) {
	case *matcherv3.StringMatcher_Exact:
		return lower(p.Exact) == lower(text)
	case *matcherv3.StringMatcher_Prefix:
		return strings.HasPrefix(lower(text), lower(p.Prefix))
	case *matcherv3.StringMatcher_Suffix:
		return strings.HasSuffix(lower(text), lower(p.Suffix))
	case *matcherv3.StringMatcher_Contains:
		return strings.Contains(lower(text), lower(p.Contains))
	case *matcherv3.StringMatcher_SafeRegex:
		return regexp.MustCompile("^(?:" + p.SafeRegex.GetRegex() + ")$").MatchString(text)
	}
	t.Fatalf("text matcher %v is not known here", m)
	return false
}

func fitsMetadata(t testing.TB, m *matcherv3.MetadataMatcher, values map[string]string, prefix string) bool {
	var path []string
	for _, segment := range m.GetPath() {
		path = append(path, segment.GetKey())
	}
	value, has := values[prefix+strings.TrimPrefix(strings.Join(path, "."), "payload.")]
	return has && fitsValue(t, m.GetValue(), value)
}

func fitsValue(t testing.TB, m *matcherv3.ValueMatcher, text string) bool {
	switch p := m.GetMatchPattern().(type) {
	case *matcherv3.ValueMatcher_StringMatch:
		return fitsText(t, p.StringMatch, text)
	case *matcherv3.ValueMatcher_OrMatch:
		return slices.ContainsFunc(p.OrMatch.GetValueMatchers(), func(m *matcherv3.ValueMatcher) bool { return fitsValue(t, m, text) })
	case *matcherv3.ValueMatcher_ListMatch:
		return false // The values here are no lists.
	}
	t.Fatalf("value matcher %v is not known here", m)
	return false
}

// fitsTemplate matches a path with * for one part and ** for any, as Envoy does.
func fitsTemplate(template, path string) bool {
	var out strings.Builder
	for i, part := range strings.Split(template, "/") {
		if i > 0 {
			out.WriteString("/")
		}
		switch part {
		case "*":
			out.WriteString("[^/]+")
		case "**":
			out.WriteString(".*")
		default:
			out.WriteString(regexp.QuoteMeta(part))
		}
	}
	return regexp.MustCompile("^" + out.String() + "$").MatchString(path)
}

func inRange(block *corev3.CidrRange, address netip.Addr) bool {
	start, err := netip.ParseAddr(block.GetAddressPrefix())
	return err == nil && netip.PrefixFrom(start, int(block.GetPrefixLen().GetValue())).Contains(address)
}
