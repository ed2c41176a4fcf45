package schema

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilot-api/pilot-api/internal/envoylimits/re2"
)

// This file decides which parts of an object can be followed, for the code that warns and
// the code that compiles.

// IsClaim reports whether a condition is on the claim of a token instead of a
// header.
func IsClaim(header string) bool { return strings.HasPrefix(header, "@") }

// AnyText is an expression that matches any value, and so asks only for presence.
const AnyText = ".*"

// FitsEmpty reports whether the empty value meets a condition that asks for more
// than presence. Such a condition cannot be inverted for a header: Envoy does not
// distinguish an empty value from an absent one.
func FitsEmpty(m *networking.StringMatch) bool {
	switch kind := m.GetMatchType().(type) {
	case *networking.StringMatch_Exact:
		return kind.Exact == ""
	case *networking.StringMatch_Regex:
		empty, err := re2.MatchesEmpty(kind.Regex)
		return kind.Regex != AnyText && (err != nil || empty)
	}
	return false
}

// Redirects reports whether a redirect changes the URL, with an HTTP code that Envoy
// supports.
func Redirects(r *networking.HTTPRedirect) bool {
	switch r.GetRedirectCode() {
	case 0, http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther,
		http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
	default:
		return false
	}
	return r.GetScheme() != "" || r.GetAuthority() != "" || r.GetPort() != 0 || r.GetUri() != "" || r.GetPrefixRewrite() != "" ||
		ToPortOfRequest(r)
}

// ToPortOfRequest reports whether a redirect keeps the port of the request.
// Otherwise it uses the default port of the scheme.
func ToPortOfRequest(r *networking.HTTPRedirect) bool {
	return r.GetRedirectPort() != nil && r.GetPort() == 0 && r.GetDerivePort() == networking.HTTPRedirect_FROM_REQUEST_PORT
}

// Rewrites reports whether an expression and its substitution are valid for RE2. In
// the substitution a backslash must precede a group number or another backslash.
func Rewrites(r *networking.RegexRewrite) bool {
	groups, err := re2.Groups(r.GetMatch())
	if err != nil {
		return false
	}
	text := r.GetRewrite()
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' {
			continue
		}
		i++
		if i == len(text) || text[i] != '\\' && (text[i] < '0' || text[i] > '9' || int(text[i]-'0') > groups) {
			return false
		}
	}
	return true
}

// RevokesUnverified reports whether settings have a list of revoked certificates
// but verify none.
func RevokesUnverified(t *networking.ClientTLSSettings) bool {
	own := t.GetMode() == networking.ClientTLSSettings_SIMPLE || t.GetMode() == networking.ClientTLSSettings_MUTUAL
	return own && t.GetCaCrl() != "" && t.GetInsecureSkipVerify().GetValue()
}

// FollowsServerTLS reports whether a gateway can enforce all requirements on its
// clients.
func FollowsServerTLS(t *networking.ServerTLSSettings) bool {
	return (len(t.GetCipherSuites()) == 0 || len(KnownCiphers(t.GetCipherSuites())) > 0) &&
		!slices.ContainsFunc(t.GetVerifyCertificateSpki(), isNoKeyHash) && !slices.ContainsFunc(t.GetVerifyCertificateHash(), isNoCertificateHash)
}

// ciphers are the ciphers of TLS 1.2 and before that gateways support, as Istio
// lists them.
var ciphers = []string{
	"ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-ECDSA-AES256-GCM-SHA384", "ECDHE-RSA-AES256-GCM-SHA384",
	"ECDHE-ECDSA-CHACHA20-POLY1305", "ECDHE-RSA-CHACHA20-POLY1305", "ECDHE-ECDSA-AES128-SHA", "ECDHE-RSA-AES128-SHA",
	"ECDHE-ECDSA-AES256-SHA", "ECDHE-RSA-AES256-SHA", "AES128-GCM-SHA256", "AES256-GCM-SHA384", "AES128-SHA", "AES256-SHA", "DES-CBC3-SHA",
}

// KnownCiphers returns the supported ciphers of a list, each once. A gateway
// rejects a list with an unknown name as a whole.
func KnownCiphers(names []string) []string {
	var out []string
	for _, name := range names {
		if slices.Contains(ciphers, name) && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

func isNoKeyHash(text string) bool {
	sum, err := base64.StdEncoding.DecodeString(text)
	return err != nil || len(sum) != sha256.Size
}

func isNoCertificateHash(text string) bool {
	if len(text) == 3*sha256.Size-1 {
		text = strings.ReplaceAll(text, ":", "")
	}
	sum, err := hex.DecodeString(text)
	return err != nil || len(sum) != sha256.Size
}

// IsAddress reports whether a text is an IP address, not another place to listen
// at.
func IsAddress(text string) bool {
	_, err := netip.ParseAddr(text)
	return err == nil
}

// FollowsWay reports whether connections are made in the way that the policy asks
// for.
func FollowsWay(t *networking.TrafficPolicy) bool {
	return t.GetTunnel() == nil && t.GetProxyProtocol() == nil
}

// WarmsUp reports whether new instances get their share gradually.
func WarmsUp(lb *networking.LoadBalancerSettings) bool {
	if lb.GetConsistentHash() != nil || lb.GetWarmup().GetDuration().AsDuration() <= 0 && lb.GetWarmupDurationSecs().AsDuration() <= 0 {
		return false
	}
	switch lb.GetSimple() {
	case networking.LoadBalancerSettings_RANDOM, networking.LoadBalancerSettings_PASSTHROUGH:
		return false
	}
	return true
}

// LocalitiesEnabled reports whether the localities of callers and instances matter.
// The default is yes.
func LocalitiesEnabled(l *networking.LocalityLoadBalancerSetting) bool {
	return l.GetEnabled() == nil || l.GetEnabled().GetValue()
}

// AsksForLocalities reports whether proxies must know their locality to follow a
// DestinationRule. ofMesh is the mesh's setting for rules without their own.
func AsksForLocalities(rule *networking.DestinationRule, ofMesh *networking.LocalityLoadBalancerSetting) bool {
	asks := func(lb *networking.LoadBalancerSettings, o *networking.OutlierDetection) bool {
		setting := lb.GetLocalityLbSetting()
		if setting == nil {
			setting = ofMesh
		}
		return LocalitiesEnabled(setting) && (len(setting.GetDistribute()) > 0 || o != nil)
	}
	top := rule.GetTrafficPolicy()
	policies := []*networking.TrafficPolicy{top}
	for _, s := range rule.GetSubsets() {
		policies = append(policies, s.GetTrafficPolicy())
	}
	for _, policy := range policies {
		lb, outlier := policy.GetLoadBalancer(), policy.GetOutlierDetection()
		if lb == nil {
			lb = top.GetLoadBalancer()
		}
		if outlier == nil {
			outlier = top.GetOutlierDetection()
		}
		if asks(lb, outlier) {
			return true
		}
		for _, own := range policy.GetPortLevelSettings() {
			if asks(own.GetLoadBalancer(), own.GetOutlierDetection()) {
				return true
			}
		}
	}
	return false
}
