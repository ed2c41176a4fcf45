package server_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/security/authn"
	"github.com/pilot-api/pilot-api/security/identity"
	"github.com/pilot-api/pilot-api/server"
)

// unsure proves the users of governed. Each result is void at once, so every look at a token
// is a verification.
type unsure struct {
	epoch atomic.Uint64
	looks chan string // receives the user of each look that somebody waits for
}

func (f *unsure) Epoch() uint64 { return f.epoch.Add(1) }

func (f *unsure) Verify(_ context.Context, token string) (identity.Identity, time.Time, error) {
	user, is := strings.CutPrefix(token, "token-of-the-user-")
	if !is {
		return identity.Identity{}, time.Time{}, authn.ErrOtherToken
	}
	select {
	case f.looks <- user:
	default:
	}
	who := identity.Identity{Name: user, Groups: []string{identity.Authenticated}, By: identity.ByTokenFile}
	if user == "root" {
		who.Groups = append(who.Groups, identity.Masters)
	}
	return who, time.Now().Add(time.Hour), nil
}

// TestRunningWatchesOutliveWrongTokens checks that a watch goes on while others at its address
// send wrong tokens, and that another look at its proof counts as no request.
func TestRunningWatchesOutliveWrongTokens(t *testing.T) {
	outside.Slow(t)
	users, reg := &unsure{looks: make(chan string)}, prometheus.NewRegistry()
	w := governed(t, func(o *server.Options) {
		o.Authn = authn.New(authn.Options{Tokens: []authn.TokenVerifier{users}, Registry: reg})
	})
	ended := w.watchAs(rulesIn("shop")+"?watch=true", ed)
	for range 50 {
		w.do("GET", rulesIn("shop"), "", "Authorization: Bearer wrong-token-of-nobody")
	}
	before := gathered(t, reg)
	for range 3 {
		select {
		case <-users.looks:
		case <-ended:
			t.Fatal("the watch has ended")
		case <-time.After(15 * time.Second):
			t.Fatal("nobody looks at the proof of the watch")
		}
	}
	if after := gathered(t, reg); after != before {
		t.Errorf("requests were counted while a watch ran:\n%s\nbefore it:\n%s", after, before)
	}
	select {
	case <-ended:
		t.Error("the watch has ended")
	default:
	}
}

// gathered returns the counts of proofs as text.
func gathered(t *testing.T, reg *prometheus.Registry) string {
	t.Helper()
	all, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(all)
}
