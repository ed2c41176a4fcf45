package server

import (
	"fmt"
	"net"
	"net/http"

	"github.com/pilot-api/pilot-api/discovery"
)

// discoveryV3 serves Envoy's v3 REST discovery: a POST of a DiscoveryRequest
// is answered with a DiscoveryResponse, or with 304 when the Envoy has it.
type discoveryV3 struct {
	discoveryErrors
	server *discovery.Publisher
	reader *pollReader
}

// badPollError is a body that is no poll, or not one for this path.
type badPollError struct{ reason string }

func (e *badPollError) Error() string { return e.reason }

// poll answers polls for one type.
func (d discoveryV3) poll(typeURL string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		in, err := d.reader.read(w, r)
		if err == nil {
			err = in.check(typeURL)
		}
		if err != nil {
			d.write(w, r, err)
			return
		}
		a, err := d.ask(r, typeURL, in)
		if err != nil {
			d.write(w, r, err)
			return
		}
		d.server.Introduce(in.Node, discovery.Agent{Version: in.Envoy, Address: addressOf(r)})
		// The version stands for the names asked for as well as for the
		// content. A first poll carries no version and must be answered
		// in full: 304 would not end Envoy's waiting at start-up.
		if in.Version == a.Version {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		writeBody(w, a.Body)
	}
}

// ask polls for a type; for private keys too where the connection proves that the proxy
// may have them.
func (d discoveryV3) ask(r *http.Request, typeURL string, in poll) (discovery.Answer, error) {
	if typeURL == discovery.SecretType && isPrivate(r) {
		return d.server.V3Secrets(in.Node, in.Version, in.Names)
	}
	return d.server.V3(typeURL, in.Node, in.Version, in.Names)
}

// addressOf is where a request comes from, without the port.
func addressOf(r *http.Request) string {
	if isPrivate(r) {
		return discovery.ThisMachine
	}
	return hostOf(r.RemoteAddr)
}

// hostOf is an address without its port.
func hostOf(address string) string {
	host, _, _ := net.SplitHostPort(address)
	return host
}

// maxNames bounds what one poll asks for, and so what its answer takes: names
// of endpoints need not exist to be answered. An Envoy asks for one at a time.
const maxNames = 100

func (p poll) check(typeURL string) error {
	if len(p.Names) > maxNames {
		return &badPollError{fmt.Sprintf("resource_names has %d entries, the most allowed are %d", len(p.Names), maxNames)}
	}
	if p.TypeURL != "" && p.TypeURL != typeURL {
		return &badPollError{fmt.Sprintf("type_url %q does not belong to this path, which is for %q", p.TypeURL, typeURL)}
	}
	return nil
}
