package explain

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"github.com/pilot-api/pilot-api/ir"
)

// Request comes to a proxy over a connection of its own.
type Request struct {
	Method string `json:"method"`
	Scheme string `json:"scheme"` // http, or https: what begins with TLS
	Host   string `json:"host"`   // the Host header
	Path   string `json:"path"`   // with the query
	// Headers by lower-case name, with all values of each; no pseudo-headers.
	Headers map[string][]string `json:"headers,omitempty"`

	// Way on which it comes; Ask finds it out.
	Way Way `json:"way"`
	// Port that the connection is to, and the address; "" where that is not
	// known, and so one that no listener has for its own.
	Port    int    `json:"port"`
	Address string `json:"address,omitempty"`
}

// Way is how a connection comes to the proxy.
type Way string

// The ways.
const (
	Captured Way = "captured" // going elsewhere, redirected to the proxy
	Direct   Way = "direct"   // to the address that a listener binds
	Asked    Way = "asked"    // to the proxy as an HTTP proxy, for the whole URL
)

// NewRequest is one for an absolute URL. The error says what is wrong with it.
func NewRequest(method, target string, headers map[string][]string) (Request, error) {
	u, err := url.Parse(target)
	switch {
	case err != nil:
		return Request{}, err
	case u.Scheme != "http" && u.Scheme != "https", u.Hostname() == "":
		return Request{}, fmt.Errorf("URL must be one such as http://reviews:9080/path, found %q", target)
	case u.User != nil, u.Fragment != "":
		return Request{}, fmt.Errorf("URL %q: must have no user and no fragment", target)
	}
	r := Request{Method: method, Scheme: u.Scheme, Host: u.Host, Path: pathAsWritten(target, u), Port: 80, Headers: map[string][]string{}}
	if u.Scheme == "https" {
		r.Port = 443
	}
	if text := u.Port(); text != "" {
		if r.Port, err = strconv.Atoi(text); err != nil || r.Port < 1 || r.Port > 65535 {
			return Request{}, fmt.Errorf("URL %q: port must be from 1 to 65535", target)
		}
	}
	for name, values := range headers {
		switch name = strings.ToLower(name); {
		case name != "host":
			r.Headers[name] = values
		case len(values) > 1:
			return Request{}, errors.New("there is one header host at most")
		default:
			r.Host = values[0]
		}
	}
	if r.Method == "" {
		r.Method = http.MethodGet
	}
	return r, nil
}

// pathAsWritten is that of a URL with its query, in the very signs of the text as far
// as a request may have them.
func pathAsWritten(target string, u *url.URL) string {
	_, rest, _ := strings.Cut(target, "://")
	at := strings.IndexAny(rest, "/?\\")
	plain := func(c rune) bool { return c > ' ' && c < 0x7f }
	switch {
	case at < 0:
		return "/"
	case strings.ContainsFunc(rest, func(c rune) bool { return !plain(c) }):
		return u.RequestURI()
	case rest[at] == '?':
		return "/" + rest[at:]
	}
	return rest[at:]
}

// ParseHeaders reads headers such as "end-user: jason", any of them several times.
func ParseHeaders(lines []string) (map[string][]string, error) {
	headers := map[string][]string{}
	for _, line := range lines {
		name, value, ok := strings.Cut(line, ":")
		if name = strings.ToLower(strings.TrimSpace(name)); !ok || name == "" {
			return nil, fmt.Errorf("header %q: must be 'name: value'", line)
		}
		headers[name] = append(headers[name], strings.TrimSpace(value))
	}
	return headers, nil
}

// Name is the host without a port.
func (r Request) Name() string {
	if at := strings.LastIndexByte(r.Host, ':'); at > strings.LastIndexByte(r.Host, ']') {
		return strings.Trim(r.Host[:at], "[]")
	}
	return strings.Trim(r.Host, "[]")
}

// enter is the request on the way to the proxy: straight to it where that is at
// the edge; else captured on the way to one of the addresses of its host, or, where
// nothing is captured, as the proxy takes it. Of the addresses it is the first that
// a listener is for.
func (p Proxy) enter(r Request) Request {
	listeners := p.Config.ListenersAt(p.IP)
	var addresses []string
	if p.Resolve != nil {
		addresses = p.Resolve(r.Name())
	}
	r.Way = Direct
	for _, l := range listeners {
		switch {
		case l.Direction == ir.Gateway:
			r.Way, r.Address = Direct, p.IP
			return r
		case l.UseOriginalDst && l.Bind:
			r.Way = Captured
		}
	}
	for _, address := range addresses {
		r.Address = address
		if exact(listeners, r) != nil {
			return r
		}
	}
	if len(addresses) > 0 {
		r.Address = addresses[0]
	}
	if r.Way == Captured || accept(listeners, r) != nil {
		return r
	}
	for _, l := range listeners {
		if l.HTTP != nil && l.HTTP.ForwardProxy && l.Bind {
			r.Way, r.Address, r.Port = Asked, l.IP, l.Port
			break
		}
	}
	return r
}

// shown is the request as an answer may repeat it.
func (r Request) shown() Request {
	headers := make(map[string][]string, len(r.Headers))
	for name, values := range r.Headers {
		for _, value := range values {
			headers[name] = append(headers[name], ir.Shown(name, value))
		}
	}
	r.Headers = headers
	r.Path = shownPath(r.Path)
	return r
}

// shownPath is a path, or a URL, as an answer may repeat it.
func shownPath(text string) string {
	path, query, has := strings.Cut(text, "?")
	if !has {
		return text
	}
	pairs := strings.Split(query, "&")
	for i, pair := range pairs {
		name, value, _ := strings.Cut(pair, "=")
		if shown := ir.Shown(name, value); shown != value {
			pairs[i] = pair[:len(pair)-len(value)] + shown
		}
	}
	return path + "?" + strings.Join(pairs, "&")
}

// header has the values of a header or pseudo-header; none where it is not there.
func (r Request) header(name string) []string {
	switch name {
	case ":method":
		return []string{r.Method}
	case ":authority", "host":
		return []string{r.Host}
	case ":path":
		return []string{r.Path}
	case ":scheme":
		return []string{r.Scheme}
	}
	return r.Headers[strings.ToLower(name)]
}

// bare is the path without the query, and the query with its question mark.
func (r Request) bare() (path, query string) {
	if i := strings.IndexByte(r.Path, '?'); i >= 0 {
		return r.Path[:i], r.Path[i:]
	}
	return r.Path, ""
}

// parameter is the first value of a query parameter.
func (r Request) parameter(name string) (value string, ok bool) {
	_, query := r.bare()
	for pair := range strings.SplitSeq(strings.TrimPrefix(query, "?"), "&") {
		if key, value, _ := strings.Cut(pair, "="); key == name {
			return value, true
		}
	}
	return "", false
}

// addr is not valid where the address is not known.
func (r Request) addr() netip.Addr {
	addr, _ := netip.ParseAddr(r.Address)
	return addr.Unmap()
}
