package ca_test

import (
	"context"
	"crypto/elliptic"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pilot-api/pilot-api/security/ca"
	"github.com/pilot-api/pilot-api/store/etcd/document"
	"github.com/pilot-api/pilot-api/store/etcd/etcdtest"
)

// TestRotationOfARoot goes through the rotation of a root that two servers share, forward and
// back: what workloads trust and what signs at each step, which steps are refused, and that no
// certificate outlives the trust in its root.
func TestRotationOfARoot(t *testing.T) {
	client, log, sealer := etcdtest.Start(t).Client(), slog.New(slog.DiscardHandler), sealer(t)
	run := func() (*ca.CA, *ca.Shared) {
		c := newCA(t, ca.Options{})
		shared := ca.NewShared(c, document.New(client, "/test", "ca", log), ca.StoreKey{Sealer: sealer}, log)
		ctx, stop := context.WithCancel(context.Background())
		ended := make(chan struct{})
		go func() { defer close(ended); _ = shared.Run(ctx) }()
		t.Cleanup(func() { stop(); <-ended })
		return c, shared
	}
	one, shared := run()
	other, _ := run()
	// until waits until a server has a number of roots, of which one signs.
	until := func(c *ca.CA, roots, signer int) ca.Status {
		for {
			_, changed := c.Trust()
			if s := c.Status(); len(s.Authorities) == roots && s.Authorities[signer].Signs {
				return s
			}
			<-changed
		}
	}
	text := request(t, onCurve(t, elliptic.P256()), nil)
	signedBy := func(c *ca.CA, life time.Duration) string {
		t.Helper()
		issued, err := c.Sign(t.Context(), text, reviews, life)
		if err != nil {
			t.Fatal(err)
		}
		return ca.Name(issued.Issuer)
	}
	nobody := func(string) []string { return nil }
	first := until(one, 1, 0).Authorities[0].Name
	until(other, 1, 0)
	for _, step := range []ca.Step{ca.Sign, ca.Drop} {
		if err := shared.Rotate(t.Context(), step); !errors.Is(err, ca.ErrNoStep) {
			t.Errorf("%s at first: %v", step, err)
		}
	}
	if by := signedBy(other, time.Hour); by != first {
		t.Errorf("signed by %s", by)
	}

	do := func(step ca.Step) {
		t.Helper()
		if err := shared.Rotate(t.Context(), step); err != nil {
			t.Fatal(step, err)
		}
	}
	do(ca.Add)
	second := until(other, 2, 0).Authorities[1].Name
	if by := signedBy(other, time.Hour); by != first {
		t.Errorf("after add signs %s, want %s", by, first)
	}
	if got := one.Blocking(ca.Sign, func(root string) []string { return []string{"without " + root} }); !slices.Equal(got, []string{"without " + second}) {
		t.Errorf("sign is blocked by %q", got)
	}
	do(ca.Cancel)
	until(other, 1, 0)
	do(ca.Add)
	second = until(other, 2, 0).Authorities[1].Name
	do(ca.Sign)
	until(other, 2, 1)
	if by := signedBy(other, time.Hour); by != second {
		t.Errorf("after sign signs %s, want %s", by, second)
	}
	if got := one.Blocking(ca.Drop, nobody); len(got) != 1 || !strings.Contains(got[0], "certificates that "+first+" signed count until") {
		t.Errorf("drop is blocked by %q", got)
	}
	do(ca.Cancel)
	until(other, 2, 0)
	if by := signedBy(other, time.Minute); by != first {
		t.Errorf("after cancel signs %s, want %s", by, first)
	}
	do(ca.Sign)
	do(ca.Drop)
	if last := until(other, 1, 0); last.Authorities[0].Name != second || last.Next != ca.Add {
		t.Errorf("at the end: %+v", last)
	}
}

// TestARootSignsNothingAfterItsTurn checks that a server which has not heard that another root
// signs cannot sign a certificate that outlives what all servers know of the old root.
func TestARootSignsNothingAfterItsTurn(t *testing.T) {
	client, log, sealer := etcdtest.Start(t).Client(), slog.New(slog.DiscardHandler), sealer(t)
	late, present := newCA(t, ca.Options{}), newCA(t, ca.Options{})
	lateShared, shared := ca.NewShared(late, document.New(client, "/test", "ca", log), ca.StoreKey{Sealer: sealer}, log), ca.NewShared(present, document.New(client, "/test", "ca", log), ca.StoreKey{Sealer: sealer}, log)
	read := func(c *ca.CA, s *ca.Shared) {
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); _ = s.Run(ctx) }()
		for {
			trust, changed := c.Trust()
			if trust != nil {
				break
			}
			<-changed
		}
		stop()
		<-ended
	}
	read(present, shared)
	read(late, lateShared)
	text := request(t, onCurve(t, elliptic.P256()), nil)
	if _, err := late.Sign(t.Context(), text, reviews, time.Hour); err != nil {
		t.Fatal(err)
	}
	for _, step := range []ca.Step{ca.Add, ca.Sign} {
		if err := shared.Rotate(t.Context(), step); err != nil {
			t.Fatal(err)
		}
	}
	known := present.Status().Authorities[0].LastEnd
	if _, err := late.Sign(t.Context(), text, reviews, 2*time.Hour); !errors.Is(err, ca.ErrNoIssuer) {
		t.Errorf("%v, want none: it would end after %v", err, known)
	}
	if left := time.Until(known); left < time.Hour-time.Minute || left > 90*time.Minute {
		t.Errorf("certificates of the old root are known to count for %v", left)
	}
}
