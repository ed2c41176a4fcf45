package authn

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Bounds of the revoked tokens that have not ended. A ServiceAccount that is deleted ends any
// number of tokens.
const (
	mostRevokedOfAccount   = 100
	mostRevokedOfNamespace = 1000
	mostRevoked            = 10000
)

// RevokedToken is a token of a ServiceAccount that ends before its time.
type RevokedToken struct {
	Namespace string
	UID       string // of the account
	ID        string // the claim jti
}

// longestLife is longer than the life of any token.
const longestLife = 366 * 24 * time.Hour

// tokenID is the form of an ID: a random text, and the end of the token in Unix seconds, in
// hexadecimal.
var tokenID = regexp.MustCompile(`^[A-Z2-7]{26}-([0-9a-f]{1,10})$`)

// newTokenID returns the ID of a token with an end.
func newTokenID(random string, end time.Time) string { return fmt.Sprintf("%s-%x", random, end.Unix()) }

// end returns the end of the token. The ID has it, so that the server can forget a revoked
// token then.
func (r RevokedToken) end() (time.Time, error) {
	parts := tokenID.FindStringSubmatch(r.ID)
	if parts == nil {
		return time.Time{}, fmt.Errorf("%w: no token has the ID %q", ErrNoToken, r.ID)
	}
	seconds, err := strconv.ParseInt(parts[1], 16, 64)
	return time.Unix(seconds, 0), err
}

// ErrNoToken means that no token can have an ID.
var ErrNoToken = errors.New("this is no ID of a token")

// ErrTooManyRevoked means that as many tokens as may are revoked and have not ended.
var ErrTooManyRevoked = errors.New("too many tokens are revoked and have not ended: delete the ServiceAccount and create it again, which ends all of its tokens")

// SharedText is a text that all servers share.
type SharedText interface {
	// Update replaces the text with the result of change, and returns it.
	Update(ctx context.Context, change func(text string) (string, error)) (string, error)
	// Follow calls changed with the text and after each change of it, until ctx ends.
	Follow(ctx context.Context, changed func(text string)) error
}

// revokedTokens are the revoked tokens that have not ended. No token leaves before its end,
// whatever a text says. The zero revokedTokens has none. It is safe for concurrent use.
type revokedTokens struct {
	mu      sync.RWMutex
	ends    map[string]time.Time // by the uid of the account and the ID
	changes atomic.Uint64
}

// has reports whether a token is revoked.
func (r *revokedTokens) has(uid, id string) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	_, is := r.ends[uid+" "+id]
	return is
}

// read adds the tokens of a text, and forgets those that have ended.
func (r *revokedTokens) read(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ends == nil {
		r.ends = map[string]time.Time{}
	}
	for line := range strings.Lines(text) {
		if one, end, ok := readRevoked(line); ok {
			r.ends[one.UID+" "+one.ID] = end
		}
	}
	now := time.Now()
	for key, end := range r.ends {
		if now.After(end) {
			delete(r.ends, key)
		}
	}
	r.changes.Add(1)
}

// readRevoked reads a line of the text.
func readRevoked(line string) (one RevokedToken, end time.Time, ok bool) {
	parts := strings.Fields(line)
	if len(parts) < 3 {
		return one, end, false
	}
	one = RevokedToken{Namespace: parts[0], UID: parts[1], ID: parts[2]}
	end, err := one.end()
	return one, end, err == nil
}

// withRevoked returns a text with one more token, and without those that have ended.
func withRevoked(text string, one RevokedToken, now time.Time) (string, error) {
	end, err := one.end()
	switch {
	case err != nil:
		return "", err
	case end.After(now.Add(longestLife)):
		return "", fmt.Errorf("%w: no token is good until %s", ErrNoToken, end.UTC().Format(time.RFC3339))
	case !now.Before(end):
		return text, nil
	}
	var out strings.Builder
	all, inNamespace, ofAccount := 0, 0, 0
	for line := range strings.Lines(text) {
		other, end, ok := readRevoked(line)
		switch {
		case other == one:
			return text, nil
		case !ok || !now.Before(end):
			continue
		}
		out.WriteString(line)
		all++
		if other.Namespace == one.Namespace {
			inNamespace++
		}
		if other.UID == one.UID {
			ofAccount++
		}
	}
	if ofAccount >= mostRevokedOfAccount || inNamespace >= mostRevokedOfNamespace || all >= mostRevoked {
		return "", ErrTooManyRevoked
	}
	fmt.Fprintf(&out, "%s %s %s\n", one.Namespace, one.UID, one.ID)
	return out.String(), nil
}

// ShareRevoked makes the servers share the revoked tokens in a text. Call it before the first
// use of t.
func (t *AccountTokens) ShareRevoked(text SharedText) { t.shared = text }

// FollowRevoked reads the revoked tokens until ctx ends. It calls read once, when it knows them.
func (t *AccountTokens) FollowRevoked(ctx context.Context, read func()) error {
	return t.shared.Follow(ctx, func(text string) {
		t.revoked.read(text)
		if read != nil {
			read()
			read = nil
		}
	})
}

// Revoke ends a token before its time, at all servers. When it returns, the token proves
// nothing at this one. The error is ErrNoToken, ErrTooManyRevoked, or one of the text.
func (t *AccountTokens) Revoke(ctx context.Context, one RevokedToken) error {
	if t.shared == nil {
		return errors.New("the servers share no list of revoked tokens")
	}
	text, err := t.shared.Update(ctx, func(text string) (string, error) { return withRevoked(text, one, time.Now()) })
	if err == nil {
		t.revoked.read(text)
	}
	return err
}
