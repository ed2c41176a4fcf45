package credential

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/go-jose/go-jose/v4"
)

// The bounds of a JSON Web Key Set.
const (
	// MaxKeySet is the maximum size of its text, in bytes.
	MaxKeySet = 64 << 10
	// MaxPublicKeys is the maximum size of what PublicKeys returns, in bytes.
	MaxPublicKeys = 32 << 10
	// MostKeys is the maximum number of its keys.
	MostKeys = 64
)

const (
	leastRSABits = 2048 // An RSA key with fewer bits is not used.
	longestKeyID = 512  // bytes
)

// keyAlgorithms are the algorithms that a key may name. All of them are asymmetric.
var keyAlgorithms = []string{"", "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}

// PublicKeys reads a JSON Web Key Set and writes its public keys that verify signatures: RSA, P-256, P-384, P-521
// and Ed25519, each with its kid and alg and nothing else. It leaves out keys of other types, for encryption
// and for other algorithms. It refuses a set with a private or symmetric key, with a weak key, with
// too many keys, and one without any key that is left. No error contains a part of the text.
func PublicKeys(text []byte) (string, error) {
	if len(text) > MaxKeySet {
		return "", fmt.Errorf("it has more than %d bytes", MaxKeySet)
	}
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if json.Unmarshal(text, &set) != nil {
		return "", errors.New(`it is no JSON Web Key Set, as {"keys":[…]}`)
	}
	if len(set.Keys) > MostKeys {
		return "", fmt.Errorf("it has %d keys, and at most %d are allowed", len(set.Keys), MostKeys)
	}
	out := jose.JSONWebKeySet{Keys: []jose.JSONWebKey{}}
	for i, one := range set.Keys {
		key, err := publicKey(one)
		switch {
		case err != nil:
			return "", fmt.Errorf("key %d %w", i, err)
		case key != nil:
			out.Keys = append(out.Keys, *key)
		}
	}
	if len(out.Keys) == 0 {
		return "", errors.New("it has no public key that verifies signatures (RSA, EC or Ed25519)")
	}
	written, err := json.Marshal(out)
	switch {
	case err != nil:
		return "", errors.New("it has a key that cannot be written")
	case len(written) > MaxPublicKeys:
		return "", fmt.Errorf("its public keys have more than %d bytes", MaxPublicKeys)
	}
	return string(written), nil
}

// publicKey returns the public key of an entry of a set. It is nil for one that verifies no
// signatures, or is of an unknown type.
func publicKey(text []byte) (*jose.JSONWebKey, error) {
	var head struct {
		Type    string          `json:"kty"`
		Use     string          `json:"use"`
		Private json.RawMessage `json:"d"`
		Secret  json.RawMessage `json:"k"`
	}
	if json.Unmarshal(text, &head) != nil {
		return nil, errors.New("is no JSON Web Key")
	}
	switch {
	case head.Type == "oct" || head.Secret != nil:
		return nil, errors.New("is symmetric: everybody who verifies tokens with it could sign them too")
	case head.Private != nil:
		return nil, errors.New("is private: proxies need the public one")
	case !slices.Contains([]string{"RSA", "EC", "OKP"}, head.Type), head.Use != "" && head.Use != "sig":
		return nil, nil
	}
	var read jose.JSONWebKey
	if read.UnmarshalJSON(text) != nil {
		return nil, errors.New("cannot be read")
	}
	switch key := read.Key.(type) {
	case *rsa.PublicKey:
		if key.N.BitLen() < leastRSABits {
			return nil, fmt.Errorf("has %d bits, and at least %d are needed", key.N.BitLen(), leastRSABits)
		}
	case *ecdsa.PublicKey, ed25519.PublicKey:
	default:
		return nil, nil
	}
	if !slices.Contains(keyAlgorithms, read.Algorithm) {
		return nil, nil
	}
	if len(read.KeyID) > longestKeyID {
		return nil, fmt.Errorf("has a kid of more than %d bytes", longestKeyID)
	}
	return &jose.JSONWebKey{Key: read.Key, KeyID: read.KeyID, Algorithm: read.Algorithm}, nil
}
