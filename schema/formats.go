package schema

import (
	"encoding/base64"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/pilot-api/pilot-api/internal/envoylimits/re2"
)

// format is a named constraint on a text, for "format" in the JSON Schemas.
type format struct {
	want string // follows "must be "
	ok   func(text string) bool
}

// formats are all formats by name. The rules for config.istio.io are those of Pilot
// 0.7.1's own validation. In addition they reject values for which a current Envoy
// would reject a whole configuration: regular expressions that do not compile,
// characters that cannot be in a header.
var formats = map[string]format{
	"dns-label":        {"1 to 63 of a-z, 0-9 and -, beginning and ending with a letter or digit", noneWrong(validation.IsDNS1123Label)},
	"fqdn":             {"a host name in lower case: labels of a-z, 0-9 and -, joined by dots", isFQDN},
	"wildcard-host":    {"a host name, perhaps with a leading *. as in *.example.com", anySpelling(isWildcardHost)},
	"host-or-range":    {"a host name, a wildcard such as *.example.com, or an IPv4 range such as 192.0.2.0/24", either(isWildcardHost, isIPv4Range)},
	"ipv4-subnet":      {"an IPv4 address or range such as 192.0.2.0/24", either(isIPv4, isIPv4Range)},
	"ip-subnet":        {"an IP address or range such as 192.0.2.0/24", either(isIP, isCIDR)},
	"host-or-address":  {"a host name in lower case or an IP address", either(isFQDN, isIP)},
	"virtual-host":     {"a host name, a wildcard such as *.example.com, or an IP address", either(anySpelling(isWildcardHost), isIP)},
	"gateway-name":     {"the name of a Gateway, perhaps after its namespace and a slash, or mesh", isGatewayName},
	"gateway-host":     {"a whole host name, * or a wildcard such as *.example.com, or an IP address; perhaps after a namespace, . or * (~ for none) and a slash", either(anySpelling(isGatewayHost), isClusterSNI)},
	"bind":             {"an IP address, or unix:// and a path", either(isIP, isUnixSocket)},
	"egress-host":      {"a namespace, ., * or ~, a slash, and a host name or a wildcard such as *.example.com or *", anySpelling(isEgressHost)},
	"ip":               {"an IP address", isIP},
	"base64":           {"base64", isBase64},
	"workload-address": {"an IP address, a host name, or unix:// and a path", either(isIP, anyCase(isFQDN), isUnixSocket)},
	"config-label":     {"made of A-Z, a-z, 0-9, -, _, . and /", regexp.MustCompile(`^[A-Za-z0-9\-_./]*$`).MatchString},
	"header-name":      {"a header name in lower case, without spaces", regexp.MustCompile("^[0-9a-z!#$%&'*+\\-.^_|~`]+$").MatchString},
	"header-token":     {"a header name, without spaces", headerToken.MatchString},
	"header-condition": {"a header name, a part of the request such as :path, or @request.auth.claims and a claim", either(headerToken.MatchString, isRequestPart)},
	"header-operation": {"a header name, or :authority", either(headerToken.MatchString, func(s string) bool { return s == ":authority" })},
	"header-value":     {"a text of one line", func(s string) bool { return !strings.ContainsAny(s, "\x00\r\n") }},
	"re2-or-any":       {"a regular expression in RE2 syntax, or * for any value", func(s string) bool { return s == "*" || re2.Check(s) == nil }},
	"re2":              {"a regular expression in RE2 syntax", func(s string) bool { return re2.Check(s) == nil }},
	"duration":         {"a duration such as 250ms, 1.5s or 1m", durationOf(0, 1)},
	"duration-ms":      {"a duration of at least 1ms, in whole milliseconds, such as 250ms, 1.5s or 1m", durationOf(time.Millisecond, time.Millisecond)},
	"duration-s":       {"a duration of at least 1s, in whole seconds, such as 90s or 5m", durationOf(time.Second, time.Second)},
	"server-name":      {"up to 255 bytes, none of them NUL", func(s string) bool { return len(s) <= 255 && !strings.Contains(s, "\x00") }},
	"date-time":        {"a time such as 2006-01-02T15:04:05Z", isTime},
	"subset-name":      {"1 to 63 letters, digits and -, beginning and ending with a letter or digit", func(s string) bool { return len(s) < 64 && portName.MatchString(s) }},
	"port-number":      {"a port from 1 to 65535", isPortNumber},
	"port-name":        {"1 to 62 letters, digits and -, beginning and ending with a letter or digit", isPortName},
	"export-to":        {". (the own namespace), * (all), ~ (none) or the name of a namespace", isExportTo},
	"label-key":        {"a label name: up to 63 letters, digits, -, _ and ., perhaps after a DNS name and a slash", noneWrong(validation.IsQualifiedName)},
	"label-value":      {"empty or up to 63 letters, digits, -, _ and ., beginning and ending with a letter or digit", noneWrong(validation.IsValidLabelValue)},
	"annotation-key":   {"an annotation name: up to 63 letters, digits, -, _ and ., perhaps after a DNS name and a slash", isAnnotationKey},
	"object-name":      {"up to 253 of a-z, 0-9, - and ., beginning and ending with a letter or digit", noneWrong(validation.IsDNS1123Subdomain)},
	"name-prefix":      {"up to 248 of a-z, 0-9, - and ., beginning with a letter or digit", isNamePrefix},
}

// violated says what a format requires in place of the text.
func violated(format, text string) string {
	message := "must be " + formats[format].want
	if isRegex(format) {
		if err := re2.Check(text); err != nil {
			message += ": " + err.Error()
		}
	}
	if last := strings.TrimSuffix(text, "."); last != text && hasHosts(format) && formats[format].ok(last) {
		message += "; leave out the final dot"
	}
	return message
}

// isRegex reports whether texts of a format are regular expressions. Each schema
// with such a format has a maxLength.
func isRegex(format string) bool { return format == "re2" || format == "re2-or-any" }

// hasHosts reports whether texts of a format may be host names.
func hasHosts(format string) bool {
	return format == "fqdn" || format == "host-or-range" || format == "host-or-address" || format == "workload-address"
}

// anySpelling turns a test for a canonical host into one that also accepts upper
// case and a final dot. The wildcard for all hosts may have no such dot.
func anySpelling(test func(string) bool) func(string) bool {
	return func(s string) bool {
		name := hostName(s)
		return test(name) && (name == strings.ToLower(s) || !strings.HasSuffix(name, "*") && !isIP(name))
	}
}

// anyCase turns a test for a text in lower case into one for any case.
func anyCase(test func(string) bool) func(string) bool {
	return func(s string) bool { return test(strings.ToLower(s)) }
}

func noneWrong(complaints func(string) []string) func(string) bool {
	return func(s string) bool { return len(complaints(s)) == 0 }
}

func either(tests ...func(string) bool) func(string) bool {
	return func(s string) bool {
		for _, ok := range tests {
			if ok(s) {
				return true
			}
		}
		return false
	}
}

// endOfTime is the first duration that is too long for every Envoy, which counts
// nanoseconds.
const endOfTime = 9_223_372_036 * time.Second

func durationOf(least, unit time.Duration) func(string) bool {
	return func(s string) bool {
		d, err := time.ParseDuration(s)
		return err == nil && d >= least && d%unit == 0 && d < endOfTime
	}
}

func isFQDN(s string) bool {
	if len(s) > 255 {
		return false
	}
	for label := range strings.SplitSeq(s, ".") {
		if len(validation.IsDNS1123Label(label)) > 0 {
			return false
		}
	}
	return true
}

// isWildcardHost accepts a host, *, or a host with a leading *, *. or *-.
func isWildcardHost(s string) bool {
	rest, wild := strings.CutPrefix(s, "*")
	if wild && rest == "" {
		return true
	}
	if wild && (rest[0] == '.' || rest[0] == '-') {
		rest = rest[1:]
	}
	return isFQDN(rest)
}

// isGatewayName also accepts a name without a namespace in the old form of a host
// name.
func isGatewayName(s string) bool {
	namespace, name, qualified := strings.Cut(s, "/")
	if !qualified {
		return isFQDN(s)
	}
	return len(validation.IsDNS1123Label(namespace)) == 0 && len(validation.IsDNS1123Label(name)) == 0
}

// isGatewayHost rejects short names, which would mean another host in every
// namespace, and *-a.b.c, which gateways do not support. It rejects the namespace ~,
// which means no namespace: Istio takes it only in Gateways that it makes itself.
func isGatewayHost(s string) bool {
	if namespace, host, qualified := strings.Cut(s, "/"); qualified {
		known := namespace == "." || namespace == "*" || len(validation.IsDNS1123Label(namespace)) == 0
		return known && !strings.Contains(host, "/") && isGatewayHost(host)
	}
	whole := strings.Contains(s, ".") && isWildcardHost(s) && (s[0] != '*' || s[1] == '.')
	return s == "*" || whole || isIP(s)
}

func isEgressHost(s string) bool {
	namespace, host, qualified := strings.Cut(s, "/")
	known := namespace == "." || namespace == "*" || namespace == "~" || len(validation.IsDNS1123Label(namespace)) == 0
	return qualified && known && isWildcardHost(strings.ToLower(host))
}

// isClusterSNI accepts the server names that proxies of one mesh use to reach
// another: outbound_.80_.v1_.reviews.default.svc.cluster.local. The semantic check
// says where they may occur.
func isClusterSNI(s string) bool {
	parts := strings.SplitN(s[strings.LastIndex(s, "/")+1:], "_.", 4)
	return len(parts) == 4 && parts[0] == "outbound" && isFQDN(strings.ToLower(parts[3]))
}

var headerToken = regexp.MustCompile("^[0-9A-Za-z!#$%&'*+\\-.^_|~`]+$")

func isRequestPart(s string) bool {
	switch s {
	case ":method", ":scheme", ":authority", ":path", ":status":
		return true
	}
	return strings.HasPrefix(s, claimPrefix)
}

// claimPrefix is the prefix of a token's claim in the place of a header name.
const claimPrefix = "@request.auth.claims"

func isBase64(s string) bool {
	_, err := base64.StdEncoding.DecodeString(s)
	return err == nil
}

func isIP(s string) bool {
	_, err := netip.ParseAddr(s)
	return err == nil
}

func isIPv4(s string) bool {
	addr, err := netip.ParseAddr(s)
	return err == nil && addr.Is4()
}

func isCIDR(s string) bool {
	_, err := netip.ParsePrefix(s)
	return err == nil
}

func isIPv4Range(s string) bool {
	prefix, err := netip.ParsePrefix(s)
	return err == nil && prefix.Addr().Is4()
}

// isUnixSocket accepts any path. The semantic check can report more about it.
func isUnixSocket(s string) bool { return s == "" || strings.HasPrefix(s, unixPrefix) }

func isTime(s string) bool {
	_, err := time.Parse(time.RFC3339, s)
	return err == nil
}

var portName = regexp.MustCompile(`^[a-zA-Z0-9](?:[-a-zA-Z0-9]*[a-zA-Z0-9])?$`)

func isPortName(s string) bool { return len(s) < 63 && portName.MatchString(s) }

func isExportTo(s string) bool {
	return s == "." || s == "*" || s == "~" || len(validation.IsDNS1123Label(s)) == 0
}

func isAnnotationKey(s string) bool { return len(validation.IsQualifiedName(strings.ToLower(s))) == 0 }

// isNamePrefix adds the five random characters that will follow.
func isNamePrefix(s string) bool { return len(validation.IsDNS1123Subdomain(s+"xxxxx")) == 0 }

func isPortNumber(s string) bool {
	n, err := strconv.ParseUint(s, 10, 16)
	return err == nil && n > 0 && s[0] != '0' && s[0] != '+'
}
