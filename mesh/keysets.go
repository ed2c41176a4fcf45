package mesh

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"go.yaml.in/yaml/v3"
	security "istio.io/api/security/v1beta1"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/schema"
)

// MostKeySources is how many key sets the server fetches. RequestAuthentications that need
// others are as if those could not be fetched.
const MostKeySources = 256

// KeySource is where the public keys of an issuer of tokens are. One of the fields is set.
type KeySource struct {
	// URI is the URL of the keys.
	URI string
	// Issuer is the URL of an issuer, which says where its keys are.
	Issuer string
}

// KeySourceOf returns where the keys of a rule are; the zero value if they are in the rule.
func KeySourceOf(rule *security.JWTRule) KeySource {
	switch {
	case rule.GetJwks() != "":
		return KeySource{}
	case rule.GetJwksUri() != "":
		return KeySource{URI: rule.GetJwksUri()}
	}
	return KeySource{Issuer: rule.GetIssuer()}
}

// KeySet is what the server knows of the keys of a source. The zero value means that it has
// not tried yet.
type KeySet struct {
	// Keys are the public keys, as a JSON Web Key Set; "" for none.
	Keys string
	// Problem says why there are none, or no new ones; "" for nothing.
	Problem string
}

// KeySets has what is known of all sources at one moment. A nil value knows nothing. It is
// immutable.
type KeySets struct{ bySource map[KeySource]KeySet }

// NewKeySets returns a value that keeps the map.
func NewKeySets(bySource map[KeySource]KeySet) *KeySets { return &KeySets{bySource} }

// All returns all key sets. The map must not be modified.
func (s *KeySets) All() map[KeySource]KeySet {
	if s == nil {
		return nil
	}
	return s.bySource
}

// Equal reports whether both have the same contents.
func (s *KeySets) Equal(other *KeySets) bool { return maps.Equal(s.All(), other.All()) }

// WithKeys sets the public keys of issuers and returns the snapshot. Only the creator of the
// snapshot may call it, before sharing the snapshot.
func (s *Snapshot) WithKeys(keys *KeySets) *Snapshot {
	s.Keys = keys
	return s
}

// KeySources returns where the keys are that RequestAuthentications need, each with the longest
// time that one waits for them. There are at most MostKeySources. Those of the oldest objects come
// first, so that new objects take no keys away from others.
func KeySources(authentications []*schema.Object) map[KeySource]time.Duration {
	byAge := slices.Clone(authentications)
	slices.SortStableFunc(byAge, compareAge)
	out := map[KeySource]time.Duration{}
	for _, o := range byAge {
		spec, err := o.Spec()
		if err != nil {
			continue
		}
		typed, _ := spec.(*security.RequestAuthentication)
		for _, rule := range typed.GetJwtRules() {
			source := KeySourceOf(rule)
			if _, known := out[source]; source == (KeySource{}) || !known && len(out) >= MostKeySources {
				continue
			}
			out[source] = max(out[source], keyPatience(rule))
		}
	}
	return out
}

// keyPatience returns how long a rule waits for its keys.
func keyPatience(rule *security.JWTRule) time.Duration {
	if d := rule.GetTimeout().AsDuration(); d > 0 {
		return min(d, schema.MostKeyPatience)
	}
	return 5 * time.Second
}

// KeyFetching is how the server fetches the public keys of issuers.
type KeyFetching struct {
	// Addresses are the blocks of addresses from which keys are fetched; none for all but
	// those of the machine and of its link.
	Addresses []string
	// CAFile has the authorities of the servers with keys; "" for those of the system.
	CAFile string
}

// takeKeyFetching reads {addresses, caFile}.
func takeKeyFetching(to *KeyFetching) settingReader {
	return func(f *settingsFile, path string, value *yaml.Node) {
		f.mapping(map[string]settingReader{
			"addresses": takeBlocks(&to.Addresses),
			"caFile":    scalar(takeString(&to.CAFile)),
		})(path, value)
	}
}

// takeBlocks reads a list of CIDR blocks.
func takeBlocks(to *[]string) settingReader {
	return func(f *settingsFile, at string, value *yaml.Node) {
		if value.Kind != yaml.SequenceNode {
			f.report(value, diag.FieldTypeInvalid, at, "must be a list of address blocks such as 10.0.0.0/8, found "+shown(value))
			return
		}
		*to = make([]string, len(value.Content))
		for i, item := range value.Content {
			scalar(func(n *yaml.Node) string {
				block, err := netip.ParsePrefix(n.Value)
				if err != nil {
					return "must be an address block such as 10.0.0.0/8"
				}
				(*to)[i] = block.Masked().String()
				return ""
			})(f, fmt.Sprintf("%s[%d]", at, i), resolved(item))
		}
	}
}
