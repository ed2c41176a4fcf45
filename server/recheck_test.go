package server_test

import (
	"github.com/pilot-api/pilot-api/server/servertest"

	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/security/authn"
	"github.com/pilot-api/pilot-api/security/identity"
	"github.com/pilot-api/pilot-api/server"
	"github.com/pilot-api/pilot-api/server/proxyauth"
	"github.com/pilot-api/pilot-api/store/cache"
	"github.com/pilot-api/pilot-api/store/memory"
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
	ended := watchAs(w, rulesIn("shop")+"?watch=true", ed)
	for range 50 {
		w.Do("GET", rulesIn("shop"), "", "Authorization: Bearer wrong-token-of-nobody")
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

// away can verify no token.
type away struct{}

func (away) Epoch() uint64 { return 0 }

func (away) Verify(context.Context, string) (identity.Identity, time.Time, error) {
	return identity.Identity{}, time.Time{}, fmt.Errorf("%w: nobody is there", authn.ErrUndecided)
}

// TestTokenThatCannotBeVerified checks that a client learns that it should keep its token and try
// again.
func TestTokenThatCannotBeVerified(t *testing.T) {
	tokens := authn.New(authn.Options{Tokens: []authn.TokenVerifier{away{}}})
	w := servertest.Start(t, func(o *server.Options) {
		o.Authn, o.Proxies = tokens, proxyauth.New(proxyauth.Options{Tokens: tokens})
		o.Discovery = discovery.New(discovery.Options{Source: cache.New(memory.New(), cache.Options{})})
	})
	a := w.Want(503, "GET", rulesIn("shop"), "", ed)
	if a.Header.Get("Retry-After") == "" || a.Header.Get("WWW-Authenticate") != "" || a.Failure(t).Reason != metav1.StatusReasonServiceUnavailable {
		t.Errorf("%v %s", a.Header, a.Text)
	}
	if a := w.Want(503, "GET", "/v1/registration", "", ed); !strings.Contains(a.Text, proxyauth.ErrUndecided.Error()) {
		t.Errorf("a poll: %s", a.Text)
	}
}
