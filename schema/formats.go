package schema

import (
	"net/netip"
	"regexp"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
)

// A format is a named constraint on a text, for "format" in the JSON Schemas.
type format struct {
	want string // Follows "must be ".
	ok   func(text string) bool
}

// The rules for config.istio.io are those of Pilot 0.7.1's own validation,
// except that what today's Envoy would refuse together with everything beside
// it is refused here: regular expressions that do not compile, characters that
// cannot be in a header.
var formats = map[string]format{
	"dns-label": {
		"1 to 63 of a-z, 0-9 and -, beginning and ending with a letter or digit",
		func(s string) bool { return len(validation.IsDNS1123Label(s)) == 0 },
	},
	"fqdn":          {"a host name in lower case: labels of a-z, 0-9 and -, joined by dots", isFQDN},
	"wildcard-host": {"a host name in lower case, perhaps with a leading *. as in *.example.com", isWildcardHost},
	"host-or-range": {"a host name, a wildcard such as *.example.com, or an IPv4 range such as 192.0.2.0/24", func(s string) bool {
		return isWildcardHost(s) || isIPv4Range(s)
	}},
	"ipv4-subnet": {"an IPv4 address or range such as 192.0.2.0/24", func(s string) bool {
		addr, err := netip.ParseAddr(s)
		return err == nil && addr.Is4() || isIPv4Range(s)
	}},
	"ip-subnet": {"an IP address or range such as 192.0.2.0/24", func(s string) bool {
		_, notIP := netip.ParseAddr(s)
		return notIP == nil || isCIDR(s)
	}},
	"workload-address": {"an IP address, a host name, or unix:// and a path", func(s string) bool {
		_, notIP := netip.ParseAddr(s)
		return s == "" || notIP == nil || strings.HasPrefix(s, unixPrefix) || isFQDN(s)
	}},
	"config-label": {"made of A-Z, a-z, 0-9, -, _, . and /", regexp.MustCompile(`^[A-Za-z0-9\-_./]*$`).MatchString},
	"header-name":  {"a header name in lower case, without spaces", regexp.MustCompile("^[0-9a-z!#$%&'*+\\-.^_|~`]+$").MatchString},
	"header-value": {"a text of one line", func(s string) bool { return !strings.ContainsAny(s, "\x00\r\n") }},
	"re2": {"a regular expression in RE2 syntax", func(s string) bool {
		_, err := regexp.Compile(s)
		return err == nil
	}},
	"duration":    {"a duration such as 250ms, 1.5s or 1m", func(s string) bool { return isDuration(s, 0, 1) }},
	"duration-ms": {"a duration of at least 1ms, in whole milliseconds, such as 250ms, 1.5s or 1m", func(s string) bool { return isDuration(s, time.Millisecond, time.Millisecond) }},
	"duration-s":  {"a duration of at least 1s, in whole seconds, such as 90s or 5m", func(s string) bool { return isDuration(s, time.Second, time.Second) }},
	"date-time": {"a time such as 2006-01-02T15:04:05Z", func(s string) bool {
		_, err := time.Parse(time.RFC3339, s)
		return err == nil
	}},
	"port-name":      {"1 to 62 letters, digits and -, beginning and ending with a letter or digit", isPortName},
	"export-to":      {". (the own namespace), * (all), ~ (none) or the name of a namespace", isExportTo},
	"label-key":      {"a label name: up to 63 letters, digits, -, _ and ., perhaps after a DNS name and a slash", isQualifiedName},
	"annotation-key": {"an annotation name: up to 63 letters, digits, -, _ and ., perhaps after a DNS name and a slash", func(s string) bool { return isQualifiedName(strings.ToLower(s)) }},
	"label-value": {"empty or up to 63 letters, digits, -, _ and ., beginning and ending with a letter or digit", func(s string) bool {
		return len(validation.IsValidLabelValue(s)) == 0
	}},
	"object-name": {"up to 253 of a-z, 0-9, - and ., beginning and ending with a letter or digit", func(s string) bool {
		return len(validation.IsDNS1123Subdomain(s)) == 0
	}},
	"name-prefix": {"up to 248 of a-z, 0-9, - and ., beginning with a letter or digit", func(s string) bool {
		// Five random characters will follow.
		return len(validation.IsDNS1123Subdomain(s+"xxxxx")) == 0
	}},
}

// asFunc is the form that the JSON Schema library asks for.
func (f format) asFunc(v any) bool {
	text, isText := v.(string)
	return !isText || f.ok(text)
}

// violated says what is wanted instead of the text.
func (f format) violated(text string) string {
	message := "must be " + f.want
	if _, err := regexp.Compile(text); err != nil && f.want == formats["re2"].want {
		message += ": " + strings.TrimPrefix(err.Error(), "error parsing regexp: ")
	}
	return message
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

func isWildcardHost(s string) bool {
	if s == "*" {
		return true
	}
	rest, wild := strings.CutPrefix(s, "*")
	if wild {
		rest = strings.TrimPrefix(strings.TrimPrefix(rest, "."), "-")
	}
	return isFQDN(rest)
}

func isIPv4Range(s string) bool {
	prefix, err := netip.ParsePrefix(s)
	return err == nil && prefix.Addr().Is4()
}

func isCIDR(s string) bool {
	_, err := netip.ParsePrefix(s)
	return err == nil
}

func isDuration(s string, least, unit time.Duration) bool {
	d, err := time.ParseDuration(s)
	return err == nil && d >= least && d%unit == 0
}

var portName = regexp.MustCompile(`^[a-zA-Z0-9](?:[-a-zA-Z0-9]*[a-zA-Z0-9])?$`)

func isPortName(s string) bool { return len(s) < 63 && portName.MatchString(s) }

func isExportTo(s string) bool {
	return s == "." || s == "*" || s == "~" || len(validation.IsDNS1123Label(s)) == 0
}

func isQualifiedName(s string) bool { return len(validation.IsQualifiedName(s)) == 0 }
