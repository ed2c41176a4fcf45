package rest

import (
	"fmt"
	"net"
	"net/http"

	"github.com/pilot-api/pilot-api/discovery"
)

// discoveryV3 serves Envoy's v3 REST discovery. It answers a POST of a
// DiscoveryRequest with a DiscoveryResponse, or with 304 if the Envoy already has
// it.
type discoveryV3 struct {
	discoveryErrors
	server *discovery.Publisher
	reader *pollReader
	proofs proofs
}

// badPollError reports a body that is not a poll, or not one for this path.
type badPollError struct{ reason string }

func (e *badPollError) Error() string { return e.reason }

// poll returns a handler of polls for one type.
func (d discoveryV3) poll(typeURL string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		in, err := d.reader.read(w, r)
		if err == nil {
			err = in.check(typeURL)
		}
		if err == nil {
			err = d.proofs.admit(r, in.Node)
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
		// The version covers the names asked for as well as the content. A first poll
		// carries no version and must be answered in full: 304 would not end Envoy's wait
		// at startup.
		if in.Version == a.Version {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		writeBody(w, a.Body)
	}
}

// ask answers a poll for a type. It includes private keys only if the connection
// proves that the proxy may have them.
func (d discoveryV3) ask(r *http.Request, typeURL string, in poll) (discovery.Answer, error) {
	if typeURL == discovery.SecretType && isPrivate(r) {
		return d.server.V3Secrets(in.Node, in.Version, in.Names)
	}
	return d.server.V3(typeURL, in.Node, in.Version, in.Names)
}

// addressOf returns the address that a request comes from, without the port.
func addressOf(r *http.Request) string {
	if isPrivate(r) {
		return discovery.ThisMachine
	}
	return hostOf(r.RemoteAddr)
}

// hostOf returns an address without its port.
func hostOf(address string) string {
	host, _, _ := net.SplitHostPort(address)
	return host
}

// maxNames bounds the names in one poll and thereby the size of its answer:
// endpoints are answered even for names that do not exist. An Envoy asks for one at
// a time.
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
