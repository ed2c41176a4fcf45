package mesh

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Called are the hosts that the workload beside a proxy has called, by the port of the call.
// The proxy has routes and clusters only for them (Settings.OnDemand). Called is immutable.
type Called struct {
	hosts map[int][]string // sorted, in lower case, without a port
	all   bool
	key   string
}

// MaxCalled bounds the hosts of a proxy that has only those that it calls. A proxy that calls
// more has all hosts: an Envoy builds its table anew for each further host, and a table of
// this length takes it 4 ms.
const MaxCalled = 1000

var calledEverything = &Called{all: true, key: "*"}

// NewCalled returns the hosts of some names. A name is a port, a slash and a Host header, such
// as 80/shop.example.com:8080. Names that no request can have are ignored. More than MaxCalled
// hosts are CallsEverything.
func NewCalled(names []string) *Called {
	seen := map[int]map[string]bool{}
	total := 0
	for _, name := range names {
		port, host, ok := parseCalled(name)
		if !ok || seen[port][host] {
			continue
		}
		if total++; total > MaxCalled {
			return calledEverything
		}
		if seen[port] == nil {
			seen[port] = map[string]bool{}
		}
		seen[port][host] = true
	}
	out := &Called{hosts: map[int][]string{}}
	var key []byte
	for _, port := range slices.Sorted(maps.Keys(seen)) {
		out.hosts[port] = slices.Sorted(maps.Keys(seen[port]))
		key = strconv.AppendInt(key, int64(port), 10)
		for _, host := range out.hosts[port] {
			key = appendText(append(key, '/'), host)
		}
	}
	out.key = string(key)
	return out
}

// CallsEverything are all hosts. The proxy asks for none.
func CallsEverything() *Called { return calledEverything }

// Everything reports whether the proxy has all hosts.
func (c *Called) Everything() bool { return c.all }

// At returns the hosts that were called at a port, sorted.
func (c *Called) At(port int) []string { return c.hosts[port] }

// Equal reports whether two proxies have called the same hosts. Both may be nil.
func (c *Called) Equal(other *Called) bool {
	if c == nil || other == nil {
		return c == other
	}
	return c.key == other.key
}

// maxHost bounds a host. A name in DNS has at most 253 characters.
const maxHost = 255

func parseCalled(name string) (port int, host string, ok bool) {
	table, authority, found := strings.Cut(name, "/")
	number, err := strconv.ParseUint(table, 10, 16)
	if !found || err != nil {
		return 0, "", false
	}
	host = strings.ToLower(withoutPort(authority))
	return int(number), host, isHost(host)
}

// withoutPort removes the port of a Host header as an Envoy does that ignores ports.
func withoutPort(authority string) string {
	at := strings.LastIndexByte(authority, ':')
	if at < 0 || strings.LastIndexByte(authority, ']') > at || strings.HasPrefix(authority, "[") && authority[at-1] != ']' {
		return authority
	}
	if strings.Trim(authority[at+1:], "0123456789") != "" {
		return authority
	}
	return authority[:at]
}

// isHost reports whether a text has only characters of a host: a name, or an address.
func isHost(text string) bool {
	return text != "" && len(text) <= maxHost && strings.Trim(text, "abcdefghijklmnopqrstuvwxyz0123456789._-:[]") == ""
}
