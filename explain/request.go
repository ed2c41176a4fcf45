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

// Request is one request on a connection of its own to a proxy.
type Request struct {
	Method string `json:"method"`
	Scheme string `json:"scheme"` // http, or https for connections that begin with TLS
	Host   string `json:"host"`   // the Host header
	Path   string `json:"path"`   // with the query
	// Headers are by lower-case name, with all values of each. They have no
	// pseudo-headers.
	Headers map[string][]string `json:"headers,omitempty"`

	// Way is the way on which the request arrives. Ask determines it.
	Way Way `json:"way"`
	// Port and Address are the destination of the connection. An Address of "" is
	// not known, and no listener has it as its own.
	Port    int    `json:"port"`
	Address string `json:"address,omitempty"`

	// Caller is what is known about the sender; nil for nothing.
	Caller *Caller `json:"caller,omitempty"`

	claims     *claims // of its token; nil if it has none that a proxy verifies
	identified bool    // the proxy knows the name in the certificate of the caller
	connection bool    // the proxy does not read it as HTTP
	// open is set if the method, host, path, headers and token are not known. Then expressions keeps
	// regular expressions, and spent counts conditions.
	open        bool
	expressions expressions
	spent       *int
}

// Way is how a connection comes to the proxy.
type Way string

// The ways of a connection.
const (
	Captured Way = "captured" // to another destination, redirected to the proxy
	Direct   Way = "direct"   // to the address that a listener binds
	Asked    Way = "asked"    // to the proxy as an HTTP proxy, with the whole URL
)

// NewRequest returns a request for an absolute URL. The error says what is wrong
// with the URL or headers.
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

// pathAsWritten returns the path and query of a URL exactly as written, as far as a
// request may contain the characters.
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

// ParseHeaders parses headers such as "end-user: jason". A header may be repeated.
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

// Name returns the host without a port.
func (r Request) Name() string {
	if at := strings.LastIndexByte(r.Host, ':'); at > strings.LastIndexByte(r.Host, ']') {
		return strings.Trim(r.Host[:at], "[]")
	}
	return strings.Trim(r.Host, "[]")
}

// enter returns the request with the way and address by which it reaches the proxy.
// At the edge it goes directly to the proxy. Otherwise it is captured on the way to
// an address of its host or, if nothing is captured, takes the way that the proxy
// accepts. Of several addresses enter picks the first that has a listener.
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

// shown returns the request as an answer may show it.
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

// shownPath returns a path or URL as an answer may show it.
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

// header returns the values of a header or pseudo-header, or none.
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

// bare returns the path without the query, and the query with its question mark.
func (r Request) bare() (path, query string) {
	if i := strings.IndexByte(r.Path, '?'); i >= 0 {
		return r.Path[:i], r.Path[i:]
	}
	return r.Path, ""
}

// parameter returns the first value of a query parameter.
func (r Request) parameter(name string) (value string, ok bool) {
	_, query := r.bare()
	for pair := range strings.SplitSeq(strings.TrimPrefix(query, "?"), "&") {
		if key, value, _ := strings.Cut(pair, "="); key == name {
			return value, true
		}
	}
	return "", false
}

// addr returns the address. It is invalid if the address is not known.
func (r Request) addr() netip.Addr {
	addr, _ := netip.ParseAddr(r.Address)
	return addr.Unmap()
}
