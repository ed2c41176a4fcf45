package mesh

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spiffe/go-spiffe/v2/spiffeid"
	"go.yaml.in/yaml/v3"
)

// The take… functions store the value of one setting. They return what is required
// of the value, or "" if it is valid.

func shown(value *yaml.Node) string {
	switch value.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	}
	if value.Tag == "!!str" {
		return strconv.Quote(value.Value)
	}
	return value.Value
}

func takePort(to *int) func(*yaml.Node) string {
	return func(n *yaml.Node) string {
		port, err := strconv.Atoi(n.Value)
		if n.Tag != "!!int" || err != nil || port < 0 || port > 65535 {
			return "must be a port number from 0 to 65535"
		}
		*to = port
		return ""
	}
}

// maxParts keeps sums of costs in the range of an int.
const maxParts = 1_000_000_000

func takeParts(to *int) func(*yaml.Node) string {
	return func(n *yaml.Node) string {
		parts, err := strconv.Atoi(n.Value)
		if n.Tag != "!!int" || err != nil || parts < 1 || parts > maxParts {
			return "must be a number of parts from 1 to " + strconv.Itoa(maxParts)
		}
		*to = parts
		return ""
	}
}

func takeProtocol(to *Protocol) func(*yaml.Node) string {
	return func(n *yaml.Node) string {
		protocol, ok := ParseProtocol(n.Value)
		if !ok {
			return "must be a protocol, such as HTTP or TCP"
		}
		*to = protocol
		return ""
	}
}

func takeDuration(to *time.Duration) func(*yaml.Node) string {
	return func(n *yaml.Node) string {
		d, err := time.ParseDuration(n.Value)
		if n.Tag != "!!str" || err != nil || d < time.Millisecond || d%time.Millisecond != 0 {
			return "must be a duration of whole milliseconds, 1ms at least, such as 250ms or 1.5s"
		}
		*to = d
		return ""
	}
}

func takeBool(to *bool) func(*yaml.Node) string {
	return func(n *yaml.Node) string {
		if n.Tag != "!!bool" || n.Decode(to) != nil {
			return "must be true or false"
		}
		return ""
	}
}

func takeOneOf[T ~string](to *T, known ...T) func(*yaml.Node) string {
	return func(n *yaml.Node) string {
		if n.Tag != "!!str" || !slices.Contains(known, T(n.Value)) {
			names := make([]string, len(known))
			for i, name := range known {
				names[i] = string(name)
			}
			return "must be " + strings.Join(names, " or ")
		}
		*to = T(n.Value)
		return ""
	}
}

func takeString(to *string) func(*yaml.Node) string {
	return func(n *yaml.Node) string {
		if n.Tag != "!!str" {
			return "must be a text"
		}
		*to = n.Value
		return ""
	}
}

// takeTrustDomain reads the name of a trust domain, as in SPIFFE IDs, or "".
func takeTrustDomain(to *string) func(*yaml.Node) string {
	return func(n *yaml.Node) string {
		domain, err := spiffeid.TrustDomainFromString(n.Value)
		if n.Tag != "!!str" || n.Value != "" && (err != nil || domain.Name() != n.Value) {
			return "must be a trust domain, as in cluster.local"
		}
		*to = n.Value
		return ""
	}
}
