package mesh

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// ServiceKey names a set of instances: host, port names, label sets. Its text is
// "host", "host|port" or "host|port|k1=v1,k2=v2". Several port names are joined by
// ",", several label sets by ";". The host is a service's KeyHost. The network of
// callers, if any, is a fourth part.
type ServiceKey struct {
	Hostname  string
	Ports     []string
	LabelSets []Labels
	Network   string
}

// NewServiceKey returns the key of one port and at most one label set. The port of
// an external service is named external-<PROTOCOL>-<number>.
func NewServiceKey(s *Service, p *Port, labels Labels) ServiceKey {
	name := p.Name
	if s.External {
		name = fmt.Sprintf("external-%s-%d", p.Protocol, p.Number)
	}
	return ServiceKey{Hostname: s.KeyHost()}.With(name, labels)
}

// With returns the key of the same host with this port and at most one label set.
func (k ServiceKey) With(port string, labels Labels) ServiceKey {
	k.Ports, k.LabelSets = nil, nil
	if port != "" {
		k.Ports = []string{port}
	}
	if len(labels) > 0 {
		k.LabelSets = []Labels{labels}
	}
	return k
}

// maxAlternatives is the maximum number of ports, and of label sets, in a parsed
// key: each instance of the host is compared with all of them.
const maxAlternatives = 16

// ParseServiceKey parses the text form. It never fails: a text that is invalid, or
// has more than 16 ports or label sets, names no instances.
func ParseServiceKey(text string) ServiceKey {
	parts := strings.SplitN(text, "|", 4)
	for i, separator := range []string{",", ";"} {
		if i+1 < len(parts) && strings.Count(parts[i+1], separator) >= maxAlternatives {
			return ServiceKey{}
		}
	}
	key := ServiceKey{Hostname: parts[0]}
	if len(parts) > 1 && parts[1] != "" {
		key.Ports = strings.Split(parts[1], ",")
	}
	if len(parts) > 2 && parts[2] != "" {
		for _, set := range strings.Split(parts[2], ";") {
			key.LabelSets = append(key.LabelSets, parseLabels(set))
		}
	}
	if len(parts) > 3 {
		key.Network = parts[3]
	}
	return key
}

func parseLabels(text string) Labels {
	labels := Labels{}
	for _, pair := range strings.Split(text, ",") {
		if name, value, _ := strings.Cut(pair, "="); name != "" {
			labels[name] = value
		}
	}
	return labels
}

func (k ServiceKey) String() string {
	text := k.Hostname
	if len(k.Ports) > 0 || len(k.LabelSets) > 0 || k.Network != "" {
		text += "|" + strings.Join(k.Ports, ",")
	}
	if len(k.LabelSets) > 0 || k.Network != "" {
		sets := make([]string, len(k.LabelSets))
		for i, set := range k.LabelSets {
			sets[i] = set.String()
		}
		text += "|" + strings.Join(sets, ";")
	}
	if k.Network != "" {
		text += "|" + k.Network
	}
	return text
}

// String returns "k1=v1,k2=v2", sorted; a label with an empty value is only its
// name.
func (l Labels) String() string {
	pairs := make([]string, 0, len(l))
	for name, value := range maps.All(l) {
		if value != "" {
			name += "=" + value
		}
		pairs = append(pairs, name)
	}
	slices.Sort(pairs)
	return strings.Join(pairs, ",")
}
