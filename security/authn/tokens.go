package authn

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"sync"
	"time"

	"github.com/pilot-api/pilot-api/security/identity"
)

const (
	// mostVerified bounds the tokens that are kept. When it is reached, the older half is
	// verified again.
	mostVerified = 16384
	// longestVerified is how long a token counts as verified, whatever its own end is.
	longestVerified = 10 * time.Minute
	// longestUndecided is how long a running watch or stream continues if its token cannot
	// be verified.
	longestUndecided = 10 * time.Minute
)

// verifiedTokens keeps the results of verifying tokens, because most clients send the same
// token with every request. It keeps no token: only its hash under a key that never leaves
// the process.
type verifiedTokens struct {
	key []byte

	mu sync.RWMutex
	// When recent is full, it replaces older.
	recent, older map[[sha256.Size]byte]verifiedToken
}

type verifiedToken struct {
	who    identity.Identity
	until  time.Time // while the result counts
	end    time.Time // of the token, as its source says
	source TokenVerifier
	epoch  uint64
}

func newVerifiedTokens() *verifiedTokens {
	key := make([]byte, sha256.Size)
	_, _ = rand.Read(key) // It never fails.
	return &verifiedTokens{key: key, recent: map[[sha256.Size]byte]verifiedToken{}}
}

func (v *verifiedTokens) hash(token string) (sum [sha256.Size]byte) {
	mac := hmac.New(sha256.New, v.key)
	mac.Write([]byte(token))
	mac.Sum(sum[:0])
	return sum
}

// find returns the result of verifying a token before, and whether it still counts. A token
// that was verified once is known until forget, or until many others were verified.
func (v *verifiedTokens) find(token string) (was verifiedToken, known, counts bool) {
	sum := v.hash(token)
	v.mu.RLock()
	was, known = v.recent[sum]
	if !known {
		was, known = v.older[sum]
	}
	v.mu.RUnlock()
	return was, known, known && time.Now().Before(was.until) && was.source.Epoch() == was.epoch
}

// forget removes a token that proves nothing any more.
func (v *verifiedTokens) forget(token string) {
	sum := v.hash(token)
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.recent, sum)
	delete(v.older, sum)
}

// keep remembers a result, which counts until end or longestVerified. epoch is that of the
// source before it verified the token.
func (v *verifiedTokens) keep(token string, who identity.Identity, end time.Time, source TokenVerifier, epoch uint64) {
	until := end
	if latest := time.Now().Add(longestVerified); until.After(latest) {
		until = latest
	}
	sum := v.hash(token)
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.recent) >= mostVerified/2 {
		v.recent, v.older = map[[sha256.Size]byte]verifiedToken{}, v.recent
	}
	v.recent[sum] = verifiedToken{who, until, end, source, epoch}
}
