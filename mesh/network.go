package mesh

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/pilot-api/pilot-api/diag"
)

// NetworkLabel is the label with the network of a workload or of a node. A
// WorkloadEntry's network field takes precedence.
const NetworkLabel = "topology.istio.io/network"

// NetworkGateway is an address at which other networks reach all of a network.
type NetworkGateway struct {
	Address string // an IP address
	Port    int
}

// elsewhere is the network of callers in networks without gateways. To them all
// other networks are alike.
const elsewhere = "~"

// network returns the network of a caller, as stated by its node or else by its
// instances. "" means that it reaches all instances directly.
func (s *Snapshot) network(p Proxy, own []*Instance) string {
	if len(s.Settings.Networks) == 0 {
		return ""
	}
	name := p.Labels[NetworkLabel]
	for _, i := range own {
		name = cmp.Or(name, i.Network)
	}
	if name != "" && s.Settings.Networks[name] == nil {
		return elsewhere
	}
	return name
}

// Reached returns the instances of one service as callers in a network reach them:
// instances of another network that has gateways are replaced by the gateways. A
// gateway distinguishes services by the host in a request or in the TLS handshake.
// It does not distinguish versions; traffic that it cannot distinguish is not sent
// there. An instance without an address is reachable only through gateways.
func (s *Settings) Reached(instances []*Instance, network string, ofVersion bool) []*Instance {
	if !slices.ContainsFunc(instances, func(i *Instance) bool { return i.Address == "" || s.remote(i, network) }) {
		return instances
	}
	var out []*Instance
	behind := map[networkPort]*Instance{} // one for all instances behind the gateways, with the sum of their weights
	for _, i := range instances {
		at := networkPort{i.Network, i.Port.Name}
		switch {
		case !s.remote(i, network):
			if i.Address != "" {
				out = append(out, i)
			}
		case ofVersion || !namesHost(i.Port.Protocol):
		case behind[at] != nil:
			behind[at].Weight += max(i.Weight, 1)
		default:
			behind[at] = &Instance{Service: i.Service, Port: i.Port, Network: i.Network, Origin: i.Origin, Weight: max(i.Weight, 1)}
			out = append(out, behind[at])
		}
	}
	return s.throughGateways(out, behind)
}

// networkPort is a port of a service in a network.
type networkPort struct{ network, port string }

// throughGateways divides the weight of the instances in a network among its
// gateways. If a weight does not divide evenly, all other weights are scaled up.
func (s *Settings) throughGateways(instances []*Instance, behind map[networkPort]*Instance) []*Instance {
	parts, sum := 1, 0
	for at := range behind {
		if n := len(s.Networks[at.network]); parts%n != 0 {
			parts *= n
		}
	}
	for _, i := range instances {
		sum += max(i.Weight, 1)
	}
	if sum > math.MaxUint32/parts {
		parts = 1
	}
	var out []*Instance
	for _, i := range instances {
		gateways := s.Networks[i.Network]
		if behind[networkPort{i.Network, i.Port.Name}] != i {
			gateways = []NetworkGateway{{i.Address, i.EndpointPort}}
		}
		for _, g := range gateways {
			share := *i
			share.Address, share.EndpointPort = g.Address, g.Port
			if len(gateways) > 1 || parts > 1 {
				share.Weight = max(1, max(i.Weight, 1)*parts/len(gateways))
			}
			out = append(out, &share)
		}
	}
	return out
}

func (s *Settings) remote(i *Instance, network string) bool {
	return network != "" && i.Network != "" && i.Network != network && len(s.Networks[i.Network]) > 0
}

// namesHost reports whether clients say which host they want.
func namesHost(p Protocol) bool { return p.IsHTTP() || p == HTTPS || p == TLS }

// takeNetworks reads gateways by the name of a network.
func takeNetworks(to *map[string][]NetworkGateway) settingReader {
	return func(f *settingsFile, path string, value *yaml.Node) {
		*to = map[string][]NetworkGateway{}
		f.eachPair(path, value, func(at string, name, value *yaml.Node) {
			var gateways []NetworkGateway
			f.mapping(map[string]settingReader{"gateways": takeNetworkGateways(&gateways)})(at, value)
			if len(gateways) == 0 {
				f.report(value, diag.FieldRequired, at, "must have gateways; a network without any is reached directly, and need not be named")
			}
			(*to)[name.Value] = gateways
		})
	}
}

func takeNetworkGateways(to *[]NetworkGateway) settingReader {
	return func(f *settingsFile, path string, value *yaml.Node) {
		if value.Kind != yaml.SequenceNode {
			f.report(value, diag.FieldTypeInvalid, path, "must be a list of gateways, each with address and port, found "+shown(value))
			return
		}
		for i, item := range value.Content {
			at, gateway := fmt.Sprintf("%s[%d]", path, i), NetworkGateway{}
			f.mapping(map[string]settingReader{
				"address": scalar(takeString(&gateway.Address)),
				"port":    scalar(takePort(&gateway.Port)),
			})(at, resolved(item))
			if gateway.Address = canonicalIP(gateway.Address); !isAddress(gateway.Address) || gateway.Port == 0 {
				f.report(item, diag.FieldRequired, at, "must have an IP address and a port from 1 to 65535")
			}
			*to = append(*to, gateway)
		}
	}
}
