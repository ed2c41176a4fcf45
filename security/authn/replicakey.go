package authn

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/pilot-api/pilot-api/security/identity"
)

// replicaPrefix begins the tokens of replicas.
const replicaPrefix = "pilot-replica."

// replicaLife is how long such a token counts.
const replicaLife = time.Minute

// ReplicaKey signs and proves the tokens with which the replicas of a server ask each
// other. They share the key in their store. A program that can read it there can also write
// everything there.
//
// The zero ReplicaKey has no key yet, and accepts no token. It is safe for concurrent use.
type ReplicaKey struct{ key atomic.Pointer[[]byte] }

// Set sets the key, which must have 32 random bytes.
func (k *ReplicaKey) Set(key []byte) { k.key.Store(&key) }

type replicaClaims struct {
	Name string `json:"sub"`
	End  int64  `json:"exp"` // in seconds since 1970
}

// Token returns a token of a replica, "" if there is no key yet.
func (k *ReplicaKey) Token(name string) string {
	key := k.key.Load()
	if key == nil {
		return ""
	}
	claims, _ := json.Marshal(replicaClaims{name, time.Now().Add(replicaLife).Unix()}) // A text and a number always encode.
	body := base64.RawURLEncoding.EncodeToString(claims)
	return replicaPrefix + body + "." + base64.RawURLEncoding.EncodeToString(signed(*key, body))
}

func signed(key []byte, body string) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(replicaPrefix + body))
	return mac.Sum(nil)
}

// Epoch implements TokenVerifier.
func (k *ReplicaKey) Epoch() uint64 { return 0 }

// Verify implements TokenVerifier.
func (k *ReplicaKey) Verify(_ context.Context, token string) (identity.Identity, time.Time, error) {
	rest, is := strings.CutPrefix(token, replicaPrefix)
	if !is {
		return identity.Identity{}, time.Time{}, ErrOtherToken
	}
	key := k.key.Load()
	if key == nil {
		return identity.Identity{}, time.Time{}, fmt.Errorf("%w: the key of the replicas is not known yet", ErrUndecided)
	}
	body, signature, _ := strings.Cut(rest, ".")
	given, err := base64.RawURLEncoding.DecodeString(signature)
	if err != nil || !hmac.Equal(given, signed(*key, body)) {
		return identity.Identity{}, time.Time{}, errors.New("its signature is not that of a replica")
	}
	text, err := base64.RawURLEncoding.DecodeString(body)
	var claims replicaClaims
	if err == nil {
		err = json.Unmarshal(text, &claims)
	}
	end := time.Unix(claims.End, 0)
	switch {
	case err != nil:
		return identity.Identity{}, time.Time{}, errors.New("it cannot be read")
	case !time.Now().Before(end):
		return identity.Identity{}, time.Time{}, errors.New("it has ended; are the clocks of the replicas alike?")
	}
	return identity.Identity{
		Name: identity.Reserved + "replica:" + claims.Name, Groups: []string{identity.Replicas, identity.Authenticated}, By: identity.ByReplicaKey,
	}, end, nil
}
