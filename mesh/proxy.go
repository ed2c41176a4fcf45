package mesh

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/pilot-api/pilot-api/internal/terminal"
)

// Role is the role of a proxy in the mesh.
type Role string

const (
	Sidecar Role = "sidecar" // beside one workload
	Ingress Role = "ingress" // at the edge, for IngressRules
	Router  Role = "router"  // at the edge, for Gateways
)

// Proxy is the identity that an Envoy states in every request for configuration:
// "role~ip~id~domain", and optionally properties of its workload.
type Proxy struct {
	Role   Role
	IP     string // in canonical form if it is an address
	ID     string
	Domain string
	// Namespace that the node states, or "" for that of the domain.
	Namespace string
	// Locality that the node states, as region/zone/sub-zone, or "".
	Locality string
	// Labels that the node states of its workload, or nil. They must not be
	// modified.
	Labels Labels
}

// maxNode is the maximum size of an identity, in bytes. A client chooses it, and it
// is kept with the results for the client. A real one has some 60 bytes.
const maxNode = 1 << 10

// Proxy returns the proxy that a node describes.
func (n Node) Proxy() (Proxy, error) {
	p, err := ParseProxy(n.ID)
	if p.Namespace, p.Locality = n.Namespace, n.Locality; n.Labels != "" {
		p.Labels = parseLabels(n.Labels)
	}
	return p, err
}

// ParseProxy parses an identity of up to 1 KiB without control and format
// characters. The error says which part is wrong and what is allowed. Only a
// sidecar must state an IP address: its listeners and own instances depend on it.
func ParseProxy(node string) (Proxy, error) {
	if len(node) > maxNode {
		return Proxy{}, fmt.Errorf("node of %d bytes, at most %d are allowed", len(node), maxNode)
	}
	if err := checkPrintable("node", node); err != nil {
		return Proxy{}, err
	}
	parts := strings.Split(node, "~")
	if len(parts) != 4 {
		return Proxy{}, fmt.Errorf("node %q: want four parts joined by ~, role~ip~id~domain, found %d", node, len(parts))
	}
	p := Proxy{Role: Role(parts[0]), IP: canonicalIP(parts[1]), ID: parts[2], Domain: parts[3]}
	switch p.Role {
	case Sidecar, Ingress, Router:
	default:
		return Proxy{}, fmt.Errorf("node %q: unknown role %q, want sidecar, ingress or router", node, p.Role)
	}
	if _, err := netip.ParseAddr(p.IP); err != nil && p.Role == Sidecar {
		return Proxy{}, fmt.Errorf("node %q: the second part must be the IP address of the sidecar, found %q", node, p.IP)
	}
	return p, nil
}

// checkPrintable rejects characters that could control a terminal that shows an
// identity, or a log with it. No name of a workload has such characters.
func checkPrintable(name, text string) error {
	if terminal.Line(text) == text {
		return nil
	}
	return fmt.Errorf("%s %s: must be UTF-8 without control and format characters", name, strconv.QuoteToASCII(text))
}

func (p Proxy) String() string {
	return strings.Join([]string{string(p.Role), p.IP, p.ID, p.Domain}, "~")
}

// canonicalBlock returns the canonical form of an IP address or CIDR block. A block
// of one address becomes that address.
func canonicalBlock(text string) string {
	block, err := netip.ParsePrefix(text)
	if err != nil {
		return canonicalIP(text)
	}
	if block.IsSingleIP() {
		return canonicalIP(block.Addr().String())
	}
	return block.Masked().String()
}

func isAddress(text string) bool {
	_, err := netip.ParseAddr(text)
	return err == nil
}

// canonicalIP returns the canonical form of an IP address, so that addresses can be
// compared as strings. It returns any other text unchanged.
func canonicalIP(text string) string {
	addr, err := netip.ParseAddr(text)
	if err != nil {
		return text
	}
	return addr.Unmap().String()
}
