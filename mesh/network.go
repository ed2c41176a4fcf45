package mesh

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/pilot-api/pilot-api/diag"
)

// NetworkLabel of a workload, or of what a node states of its own, is the network
// that it is in; a WorkloadEntry's network comes first.
const NetworkLabel = "topology.istio.io/network"

// NetworkGateway is where all of a network is reached from others.
type NetworkGateway struct {
	Address string // an IP address
	Port    int
}

// elsewhere is the network of callers in one that has no gateways. For them all
// others are alike.
const elsewhere = "~"

// network of a caller: what its node states, or its instances say. "" is that of
// whatever it calls.
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

// Reached are instances of one service as callers in a network come to them:
// those of another network that has gateways by these. A gateway tells services
// apart by the host that a request or the beginning of TLS names, and no versions;
// what it cannot tell is not sent there. Nobody comes to an instance without an
// address in another way.
func (s *Settings) Reached(instances []*Instance, network string, ofVersion bool) []*Instance {
	if !slices.ContainsFunc(instances, func(i *Instance) bool { return i.Address == "" || s.remote(i, network) }) {
		return instances
	}
	var out []*Instance
	behind := map[networkPort]*Instance{} // one for all of them, with their weight
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

// throughGateways has the gateways of a network share the weight of what is behind
// them. That of all others grows with it where it must be divided.
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
